"""Validates submitted apps: their tools field by field, with legacy ones converted.

Returns clean documents, or every mistake with its field and fix; stores nothing.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import rfc8785
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationError,
)

from edge.devcloud.http.guard import is_off_limits
from edge.devcloud.sdk import CATEGORIES
from tools_cache.api.tool import (
    MAX_CACHE_TTL_S,
    MAX_PENDING_TTL_S,
    MAX_RATE_CALLS,
    MAX_RATE_WINDOW_S,
    Json,
)
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.names import check_local_name
from tools_cache.registry.documents import Url, WearerDocument
from tools_cache.registry.legacy import migrate
from tools_cache.schema import check_schema

log = logging.getLogger(__name__)

MAX_TOOLS: Final = 200
"""Tools of one app; a thousand apps of five tools are the largest registry tested."""
_PACKAGE: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")

HardwareType = Literal[
    "CAMERA", "DISPLAY", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI", "EXIST"
]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class _OpenModel(BaseModel):
    """Unknown keys are kept: they belong to the author and go to the edge unchanged."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Extensions(_OpenModel):
    activationPhrases: list[Text] | None = Field(default=None, max_length=50)  # noqa: N815 - the wire's own names
    category: str | None = None
    wearer: WearerDocument | None = None


class _Execution(_OpenModel):
    url: Url | None = None
    webhookUrl: Url | None = None  # noqa: N815


class _Rate(_OpenModel):
    calls: Annotated[StrictInt, Field(ge=1, le=MAX_RATE_CALLS)]
    window: Annotated[float, Field(gt=0, le=MAX_RATE_WINDOW_S)]


class _ToolModel(_OpenModel):
    name: Text
    description: Text
    inputSchema: dict[str, Any]  # noqa: N815
    mentraExtensions: _Extensions | None = None  # noqa: N815
    version: Text = "0"
    category: str | None = None
    sideEffects: Literal["none", "read_only", "writes"] = "writes"  # noqa: N815
    idempotent: StrictBool = False
    requiresConfirmation: Literal["never", "always", "policy"] = "never"  # noqa: N815
    allowedModes: list[Literal["text", "voice"]] | None = Field(default=None, min_length=1)  # noqa: N815
    latencyBudgetMs: Annotated[int, Field(gt=0, le=60_000)] | None = None  # noqa: N815
    timeoutS: Annotated[float, Field(gt=0, le=30)] | None = None  # noqa: N815
    queueable: StrictBool = False
    queue_ttl_s: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    executionType: Literal["gateway", "external", "space", "internal"] = "gateway"  # noqa: N815
    execution: _Execution | None = None
    pendingTtlS: Annotated[float, Field(ge=1, le=MAX_PENDING_TTL_S)] | None = None  # noqa: N815
    cacheTtlS: Annotated[float, Field(ge=1, le=MAX_CACHE_TTL_S)] | None = None  # noqa: N815
    rateLimit: _Rate | None = None  # noqa: N815
    availableWhen: dict[Literal["glasses", "uplink", "worn"], StrictBool] | None = None  # noqa: N815


class _Hardware(_OpenModel):
    type: HardwareType
    level: Literal["REQUIRED", "OPTIONAL"]
    description: str | None = None


class _Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    packageName: str | None = None  # noqa: N815
    name: Text | None = None
    publicUrl: (  # noqa: N815
        Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#]+[^\s?#]*$", max_length=500)]
        | None
    ) = None
    apiKeyHash: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{8,200}$")] | None = None  # noqa: N815
    hardwareRequirements: list[_Hardware] | None = Field(default=None, max_length=20)  # noqa: N815
    tools: list[dict[str, Any]] = Field(max_length=MAX_TOOLS)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One problem of a submission."""

    field: str
    problem: str
    fix: str


class BadSubmission(ValueError):
    """A rejected submission; nothing of it is stored. `mistakes` names every field to correct."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("; ".join(f"{m.field}: {m.problem}" for m in mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class AppSubmission:
    """A valid submission. None means "not given": an update keeps the previous value."""

    package: str
    tools: tuple[dict[str, Json], ...]
    name: str | None = None
    public_url: str | None = None
    api_key_hash: str | None = None
    hardware: tuple[dict[str, Json], ...] | None = None


def check_submission(package: str, body: Json) -> AppSubmission:
    """Check `POST /api/apps/:packageName/tools`. Raises BadSubmission."""
    mistakes = []
    if not _PACKAGE.fullmatch(package) or len(package) > 200:
        fix = "use a reverse domain name such as com.example.calc"
        mistakes.append(Mistake("packageName", f"is {package[:80]!r}", fix))
    document = {"tools": body} if isinstance(body, list) else body
    try:
        parsed = _Submission.model_validate(document)
    except ValidationError as e:
        raise BadSubmission(mistakes + _mistakes(e, "")) from None
    if parsed.packageName not in (None, package):
        fix = f"send it to /api/apps/{parsed.packageName}/tools"
        mistakes.append(Mistake("packageName", f"is {str(parsed.packageName)[:80]!r}", fix))
    mistakes += _bad_url(parsed.publicUrl)
    tools: list[dict[str, Json]] = []
    for i, submitted in enumerate(parsed.tools):
        try:
            tools.append(migrate(submitted))
        except BadDefinition as e:
            fix = "send an MCP definition with inputSchema"
            mistakes.append(Mistake(f"tools[{i}].parameters", str(e), fix))
        else:
            mistakes += check_tool(tools[-1], f"tools[{i}]") or _bad_undo(
                package, tools[-1], f"tools[{i}]"
            )
    mistakes += _doubles(tools)
    if mistakes:
        raise BadSubmission(mistakes)
    hardware = parsed.hardwareRequirements
    return AppSubmission(
        package,
        tuple(_known_category(t) for t in tools),
        parsed.name,
        parsed.publicUrl,
        parsed.apiKeyHash,
        None if hardware is None else tuple(h.model_dump(exclude_none=True) for h in hardware),
    )


def _bad_url(url: str | None) -> list[Mistake]:
    """Check an app's address: this machine and private networks are allowed, but not addresses that
    serve cloud credentials.
    """
    try:
        host = urlsplit(url or "").hostname or ""
    except ValueError:
        return [Mistake("publicUrl", "is not a URL", "for example http://127.0.0.1:8001")]
    if not is_off_limits(host):
        return []
    problem = f"{host} is a link-local or metadata address"
    return [Mistake("publicUrl", problem, "give the app an address of this machine or its network")]


def check_tool(tool: Mapping[str, Json], at: str) -> list[Mistake]:
    """Return every problem of one definition."""
    try:
        _ToolModel.model_validate(tool)
    except ValidationError as e:
        return _mistakes(e, at)
    mistakes: list[Mistake] = []
    if tool.get("cacheTtlS") is not None and tool.get("sideEffects", "writes") == "writes":
        problem = "only a tool that writes nothing may be answered from a cache"
        fix = "say sideEffects read_only or none, or leave cacheTtlS out"
        mistakes.append(Mistake(f"{at}.cacheTtlS", problem, fix))
    try:
        check_local_name(tool["name"])
    except BadToolName as e:
        mistakes.append(Mistake(f"{at}.name", str(e), "use one printable word without a colon"))
    schema = tool["inputSchema"]
    if schema.get("type") != "object":
        fix = "arguments are always an object"
        mistakes.append(Mistake(f"{at}.inputSchema.type", 'must be "object"', fix))
    try:
        check_schema(schema)
        rfc8785.dumps(dict(tool))
    except BadDefinition as e:
        fix = "send a valid JSON Schema (draft 2020-12)"
        mistakes.append(Mistake(f"{at}.inputSchema", str(e), fix))
    except (rfc8785.CanonicalizationError, RecursionError) as e:
        fix = "use numbers within ±2^53 and valid text"
        mistakes.append(Mistake(at, f"cannot be hashed: {e}", fix))
    return mistakes


def _bad_undo(package: str, tool: Mapping[str, Json], at: str) -> list[Mistake]:
    """Check that a valid tool is taken back by a tool of its own app, as an edge requires."""
    wearer = (tool.get("mentraExtensions") or {}).get("wearer") or {}
    named = (wearer.get("undo") or {}).get("tool")
    if named is None or named.startswith(f"{package}:"):
        return []
    where = f"{at}.mentraExtensions.wearer.undo.tool"
    return [Mistake(where, f"{named[:80]} is another app's", f"name a tool of {package}")]


_OBJECT: Final = frozenset({"model_type", "dict_type"})
_FIXES: Final = {"missing": "add it", "extra_forbidden": "remove it"}


def _mistakes(error: ValidationError, at: str) -> list[Mistake]:
    found = []
    for e in error.errors(include_url=False, include_context=False, include_input=False)[:50]:
        steps = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in e["loc"] if p != "[key]")
        path = f"{at}{''.join(steps)}".lstrip(".") or "body"
        problem = "Input should be an object" if e["type"] in _OBJECT else e["msg"]
        found.append(Mistake(path, problem, _FIXES.get(e["type"], "correct its value")))
    return found


def _doubles(tools: list[dict[str, Json]]) -> list[Mistake]:
    names = [t.get("name") for t in tools]
    return [
        Mistake(
            f"tools[{i}].name", f"{name[:80]!r} is defined twice", "give each tool its own name"
        )
        for i, name in enumerate(names)
        if isinstance(name, str) and name in names[:i]
    ]


def _known_category(tool: dict[str, Json]) -> dict[str, Json]:
    """Replace an unknown category with "other", with a warning."""
    out = dict(tool)
    extensions = out.get("mentraExtensions")
    for holder in (out, extensions := dict(extensions) if isinstance(extensions, dict) else {}):
        if holder.get("category") is not None and holder["category"] not in CATEGORIES:
            category = holder["category"]
            log.warning(
                "tool %s: category %.40r is unknown; treated as other", out["name"], category
            )
            holder["category"] = "other"
    return {**out, "mentraExtensions": extensions} if extensions else out
