"""Pydantic models of incoming documents: registry, app, tool. Strict; unknown fields are kept.

Only `manifest.py` uses them and converts them to the frozen classes of `api/tool.py`. Names on the
wire are camelCase.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.alias_generators import to_camel

from tools_cache.api.tool import (
    MAX_CACHE_TTL_S,
    MAX_PENDING_TTL_S,
    MAX_RATE_CALLS,
    MAX_RATE_WINDOW_S,
)
from tools_cache.api.wearer import MAX_TEXT, MAX_UNDO_ARGS

MAX_PHRASES: Final = 32
MAX_NEEDS: Final = 16
MAX_ADVICE: Final = 200


def _null_is_empty(value: Any) -> Any:
    """Treat null as an empty list: `activationPhrases: null` occurs in MentraOS documents."""
    return [] if value is None else value


def _null_is_nothing(value: Any) -> Any:
    return {} if value is None else value


def _tri_state(value: Any) -> Any:
    """Accept true and false, which older documents used before `policy` existed."""
    return {True: "always", False: "never"}[value] if isinstance(value, bool) else value


_SLOT: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_STEPS: Final = r"(\.[^.\s]+)+"


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of printable text")
    return text.strip()


def _without_slots(text: str) -> str:
    if "{{" in text:
        raise ValueError("takes no {{…}}: the arguments are shown below the question")
    return text


def _of_arguments(text: str) -> str:
    _check_slots(text, "input")
    return text


def _of_both(args: Any) -> Any:
    for text in _texts(args):
        _check_slots(text, "input", "data")
    return args


def _check_slots(text: str, *roots: str) -> None:
    path = re.compile(f"(?:{'|'.join(roots)}){_STEPS}")
    for found in _SLOT.findall(text):
        if not path.fullmatch(found):
            there = " and ".join(f"{{{{{root}.NAME}}}}" for root in roots)
            raise ValueError(f"{{{{{found}}}}} is not a placeholder; there is {there}")
    if "{{" in _SLOT.sub("", text):
        raise ValueError("has a {{ without its }}")


def inputs(value: Any) -> set[str]:
    """Return the names of the arguments that templates fill in."""
    paths = (path for text in _texts(value) for path in _SLOT.findall(text))
    return {path.split(".")[1] for path in paths if path.startswith("input.")}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


Number = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=255)]
Url = Annotated[StrictStr, Field(pattern=r"^https?://[^\s/?#]+[^\s]*$", max_length=2000)]
Phrase = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Phrases = Annotated[list[Phrase], BeforeValidator(_null_is_empty), Field(max_length=MAX_PHRASES)]
Language = Annotated[StrictStr, Field(pattern=r"^[a-z]{2,3}(-[A-Z]{2})?$")]
Name = Annotated[StrictStr, Field(min_length=3, max_length=255, pattern=r"^[^:\s]+:[^\s]+$")]

Line = Annotated[StrictStr, Field(max_length=MAX_TEXT), AfterValidator(_one_line)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, alias_generator=to_camel)


class Bounds(_Document):
    """A numeric bound of a capability: at least `min`, at most `max`; no other keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    max: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give min, max, or both")
        return self


Ability = Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.]{0,63}$")]
Wanted = (
    StrictBool
    | StrictInt
    | StrictFloat
    | Annotated[StrictStr, Field(min_length=1, max_length=64)]
    | Bounds
)


class Need(_Document):
    """One entry of `hardwareRequirements`. An unknown type or level is kept and never satisfied.

    `where` checks details of the type: `{"maxTextLines": {"min": 5}, "canDisplayBitmap": true}`. It
    is our extension; MentraOS only has types. So is `instead`: a type that will do as well.
    """

    type: Word
    level: Word = "REQUIRED"
    description: StrictStr | None = None
    where: Annotated[
        dict[Ability, Wanted], BeforeValidator(_null_is_nothing), Field(max_length=16)
    ] = {}
    instead: Word | None = None


class HardwareDocument(_Document):
    """Wrapper to validate the per-tool hardware extension."""

    list: Annotated[list[Need], Field(max_length=32)]


class UndoDocument(_Document):
    """How a call is taken back: another tool of the same package, and its arguments."""

    tool: Name
    args: Annotated[
        dict[Word, Any],
        BeforeValidator(_null_is_nothing),
        Field(max_length=MAX_UNDO_ARGS),
        AfterValidator(_of_both),
    ] = {}


class WearerDocument(_Document):
    """Our extension: what the wearer reads of a tool, and how its call is taken back."""

    name: Line = ""
    ask: Annotated[Line, AfterValidator(_without_slots)] = ""
    later: Annotated[Line, AfterValidator(_of_arguments)] = ""
    undo: UndoDocument | None = None


class Extensions(_Document):
    """MentraOS extensions of a tool, and ours."""

    activation_phrases: Phrases = []
    local_phrases: Annotated[
        dict[Language, Phrases], BeforeValidator(_null_is_nothing), Field(max_length=32)
    ] = {}
    category: StrictStr | None = None
    for_programs: StrictBool = False
    """Ours: only the cloud and other tools call it; it is offered to nobody."""
    how_to_check: Annotated[StrictStr, Field(max_length=MAX_ADVICE), AfterValidator(_one_line)] = ""
    """Ours: how a caller finds out what became of a call of which nobody knows."""
    wearer: Annotated[WearerDocument, BeforeValidator(_null_is_nothing)] = WearerDocument()


class InputSchema(_Document):
    type: Literal["object"]


class Execution(_Document):
    """Address of an `external` tool; `webhookUrl` is the older name."""

    url: Url | None = None
    webhook_url: Url | None = None


class RateDocument(_Document):
    """`rateLimit`: at most `calls` in `window` seconds."""

    calls: Annotated[StrictInt, Field(ge=1, le=MAX_RATE_CALLS)]
    window: Annotated[Number, Field(le=MAX_RATE_WINDOW_S)]


class ToolDocument(_Document):
    """One tool: MCP's fields, our policy metadata, MentraOS extensions."""

    name: Word
    description: StrictStr
    input_schema: InputSchema
    version: Annotated[StrictStr, Field(min_length=1, max_length=64)] = "0"
    category: StrictStr | None = None
    side_effects: Literal["none", "read_only", "writes"] = "writes"
    idempotent: StrictBool = False
    requires_confirmation: Annotated[
        Literal["never", "always", "policy"], BeforeValidator(_tri_state)
    ] = "never"
    allowed_modes: Annotated[list[Literal["text", "voice"]], Field(min_length=1)] = [
        "text",
        "voice",
    ]
    latency_budget_ms: Number = 4000
    timeout_s: Number = 30.0
    queueable: StrictBool = False
    queue_ttl_s: Annotated[Number, Field(alias="queue_ttl_s")] = 3600.0
    execution_type: Literal["gateway", "external", "space", "internal"] = "gateway"
    execution: Annotated[Execution, BeforeValidator(_null_is_nothing)] = Execution()
    pending_ttl_s: Annotated[Number, Field(ge=1, le=MAX_PENDING_TTL_S)] = 3600.0
    cache_ttl_s: Annotated[Number, Field(ge=1, le=MAX_CACHE_TTL_S)] | None = None
    rate_limit: RateDocument | None = None
    available_when: Annotated[
        dict[Literal["glasses", "uplink", "worn", "configured"], StrictBool],
        BeforeValidator(_null_is_nothing),
    ] = {}
    depends_on: Annotated[
        list[Name], BeforeValidator(_null_is_empty), Field(max_length=MAX_NEEDS)
    ] = []
    mentra_extensions: Annotated[Extensions, BeforeValidator(_null_is_nothing)] = Extensions()


class AppDocument(_Document):
    """One app; its `tools` are validated one by one elsewhere."""

    package_name: Annotated[StrictStr, Field(min_length=1, max_length=200, pattern="^[^:]+$")]
    name: StrictStr | None = None
    hardware_requirements: Annotated[
        list[Need], BeforeValidator(_null_is_empty), Field(max_length=32)
    ] = []


class Head(_Document):
    """The document without the contents of its apps."""

    version: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    sha256: Annotated[StrictStr, Field(pattern=r"^[0-9a-fA-F]{64}$")]
    envelope_version: StrictStr | None = None
    git_commit: Annotated[StrictStr, Field(max_length=64)] | None = None
    apps: list[Any]
