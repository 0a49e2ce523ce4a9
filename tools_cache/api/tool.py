"""The core types of tools: definition, call, result envelope. Frozen and validated; no I/O.

The envelope has `ok` and either `data` or `error` (docs/control-api.md, "The answer of a call");
other forms (MCP `isError`, the REST API's `success`) exist only in adapters.
"""

# ruff: noqa: PLC0414 - names that others import from here

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tools_cache.api import handed
from tools_cache.api.handed import Json as Json
from tools_cache.api.wearer import NO_TEXTS, WearerTexts
from tools_cache.errors import (
    RETRYABLE as RETRYABLE,
    ErrorCode as ErrorCode,
    ErrorType as ErrorType,
    ToolError as ToolError,
    ToolFailure as ToolFailure,
    type_of as type_of,
)

if TYPE_CHECKING:  # only the tools that use them load them
    import logging

    from tools_cache.api import services
    from tools_cache.api.calendars import Calendars
    from tools_cache.api.history import History
    from tools_cache.api.knowledge import Knowledge

ENVELOPE_VERSION: Final = "1.0.0"
MAX_PENDING_TTL_S: Final = 7 * 86_400.0
MAX_CACHE_TTL_S: Final = 30 * 86_400.0
CAN_ANSWER: Final = "canAnswer"
"""Key in `ToolCall.input`: the methods of the questions that its caller takes; without it all."""
MAX_RATE_CALLS: Final = 100_000
MAX_RATE_WINDOW_S: Final = 86_400.0
FAREWELL: Final = "farewell_spoken"
"""`after` of an intent: it is carried out once the wearer got the answer it came with."""
Turn = tuple[str, str, str]
"""Names one turn: (user id, session, turn id). Two sessions may use the same turn id."""


class CallOrigin(StrEnum):
    """Who asked."""

    CLI = "cli"
    MCP = "mcp"
    CLOUD = "cloud"
    GLASSES = "glasses"
    VOICE = "voice"


class Mode(StrEnum):
    """How the caller communicates; set when a session is created and never changed."""

    TEXT = "text"
    VOICE = "voice"


class Source(StrEnum):
    """Where a tool runs, and so where its calls go."""

    LOCAL = "local"
    GLASSES = "glasses"
    CLOUD = "cloud"
    UPSTREAM = "mcp"


class SideEffects(StrEnum):
    NONE = "none"
    READ_ONLY = "read_only"
    WRITES = "writes"


class ExecutionType(StrEnum):
    """How a tool produces its answer."""

    GATEWAY = "gateway"
    EXTERNAL = "external"
    SPACE = "space"
    INTERNAL = "internal"


class Delivery(StrEnum):
    """How far a result got on its way to the wearer."""

    NONE = "none"
    QUEUED = "queued"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    SHOWN = "shown"
    SPOKEN = "spoken"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    DROPPED = "dropped"


class DeliveryReport(Struct, frozen=True):
    """How far a result got, why not further, and which ability was missing (`display→speech`)."""

    state: Delivery
    reason: str = ""
    downgrade: str = ""

    def to_json(self) -> str | dict[str, str]:
        """Return `"shown"`, or `{state, reason?, downgrade?}` if there is more to report."""
        if not (self.reason or self.downgrade):
            return self.state.value
        extra = {"reason": self.reason, "downgrade": self.downgrade}
        return {"state": self.state.value, **{k: v for k, v in extra.items() if v}}

    @classmethod
    def from_json(cls, value: Json) -> "DeliveryReport":
        """Inverse of `to_json`. Raises ValueError."""
        if isinstance(value, str):
            return cls(Delivery(value))
        if not isinstance(value, dict):
            raise ValueError("delivery must be a word or an object")
        return cls(
            Delivery(value.get("state", "none")),
            str(value.get("reason", "")),
            str(value.get("downgrade", "")),
        )


class RateLimit(Struct, frozen=True):
    """At most `calls` within any `window_s` seconds."""

    calls: int
    window_s: float

    def __post_init__(self) -> None:
        if not 1 <= self.calls <= MAX_RATE_CALLS:
            raise ValueError(f"calls: must be 1 to {MAX_RATE_CALLS}")
        if not 0 < self.window_s <= MAX_RATE_WINDOW_S:
            raise ValueError(
                f"window: must be more than 0 and at most {MAX_RATE_WINDOW_S:.0f} seconds"
            )


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool as it is active: MCP fields, our policy metadata, where it runs.

    `raw` is the author's whole definition with unknown fields; listings return it unchanged.
    `open_to_cloud`: its author declares that it neither reads nor changes anything private.
    """

    name: str
    description: str
    input_schema: Mapping[str, Json]
    source: Source
    version: str = "0"
    category: str = "utility"
    side_effects: SideEffects = SideEffects.WRITES
    idempotent: bool = False
    requires_confirmation: str = "never"
    allowed_modes: frozenset[Mode] = frozenset(Mode)
    latency_budget_ms: int = 4000
    timeout_s: float = 30.0
    queueable: bool = False
    queue_ttl_s: float = 3600.0
    execution_type: ExecutionType = ExecutionType.GATEWAY
    endpoint: str = ""
    visible: bool | None = None
    custom_ui: str = ""
    pending_ttl_s: float = 3600.0
    cache_ttl_s: float | None = None
    rate_limit: RateLimit | None = None
    available_when: Mapping[str, bool] = field(default_factory=dict)
    activation_phrases: tuple[str, ...] = ()
    local_phrases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    open_to_cloud: bool = False
    for_programs: bool = False
    """True for a tool that only the cloud and other tools call: no model and no person does."""
    how_to_check: str = ""
    """How a caller finds out whether a call was done when nobody knows; "" if there is no way."""
    own: bool = False
    """True for a tool that the owner wrote (`tools.d`, `[tools] packages`)."""
    wearer: WearerTexts = NO_TEXTS
    raw: Mapping[str, Json] = field(default_factory=dict)

    @property
    def read_only(self) -> bool:
        return self.side_effects is not SideEffects.WRITES

    @property
    def shipped(self) -> bool:
        """Is it a tool that glassd comes with?"""
        return self.source in (Source.LOCAL, Source.GLASSES) and not self.own

    @property
    def asynchronous(self) -> bool:
        """Is a call answered `pending` at once, its result handed in later?"""
        unanswered = self.execution_type is ExecutionType.EXTERNAL and not self.endpoint
        return unanswered or self.execution_type is ExecutionType.SPACE


class ToolCall(Struct, frozen=True, kw_only=True):
    """One request, identified end to end by `call_id` (UUIDv7 as text).

    `ttl_s`: seconds of its lifetime left. `session`: "" is a session of its own. `ordinal`: its
    position within the model's message. `replayed`: sent again after a reconnect. `depth`: number
    of tools it was called `through`, which names the last of them. `input`: what a tool of another
    server asked for, sent with the same call again. `scope`: which other servers' tools its caller
    may use, as read by `edge.core.tools.scope`; None: all. `present`: whether the wearer gets the
    answer; None: decided by tool and origin (`edge.core.visibility`). Calls made by this one have
    the same origin, scope and `present`.
    """

    call_id: str
    tool: str
    args: Mapping[str, Json]
    origin: CallOrigin
    mode: Mode = Mode.TEXT
    turn_id: str = ""
    user_id: str = "local"
    ttl_s: float = 40.0
    idempotency_key: str | None = None
    session: str = ""
    provider_call_id: str | None = None
    ordinal: int | None = None
    replayed: bool = False
    depth: int = 0
    through: str = ""
    input: Mapping[str, Json] | None = None
    scope: Mapping[str, Json] | None = None
    present: bool | None = None

    @property
    def answers(self) -> dict[str, Json]:
        """The answers in `input`, without what only says who can be asked."""
        return {key: given for key, given in (self.input or {}).items() if key != CAN_ANSWER}

    @property
    def turn(self) -> Turn | None:
        """The turn of this call; None if it is a turn of its own."""
        return (self.user_id, self.session, self.turn_id) if self.turn_id else None


_ERROR_KEYS: Final = {
    "suggestion": "suggestion",
    "details": "details",
    "confirmation_request": "confirmation_request",
    "retry_after_ms": "retryAfterMs",
    "partial_side_effects": "partialSideEffects",
    "idempotency_required": "idempotencyRequired",
}


class ToolResponse(Struct, frozen=True, kw_only=True):
    """The answer to a call: data or error, intents, render hints, meta (docs/control-api.md)."""

    data: Json = None
    error: ToolError | None = None
    intents: tuple[Mapping[str, Json], ...] = ()
    render: Mapping[str, Json] | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.error is None

    @classmethod
    def failure(cls, code: ErrorCode, message: str, **extra: Any) -> "ToolResponse":
        return cls(error=ToolError.of(code, message, **extra))

    def with_meta(self, **more: Json) -> "ToolResponse":
        """Return it with additional meta; a None value removes its key."""
        return replace(self, meta={**self.meta, **{k: v for k, v in more.items() if v is not None}})

    def to_json(self) -> dict[str, Json]:
        """Return the envelope as JSON."""
        out: dict[str, Json] = {"ok": self.ok}
        if self.error is None:
            out["data"] = self.data
        else:
            e = self.error
            out["error"] = {
                "type": e.type.value,
                "code": e.code.value,
                "message": e.message,
                "retryable": e.retryable,
            }
            for attr, key in _ERROR_KEYS.items():
                value = getattr(e, attr)
                if value is not None and value is not False:
                    out["error"][key] = value
            if e.type is ErrorType.AUTH:
                out["error"]["reauthRequired"] = True  # retrying does not help, signing in does
        if self.intents:
            out["intents"] = [dict(i) for i in self.intents]
        if self.render is not None:
            out["render"] = dict(self.render)
        out["meta"] = dict(self.meta)
        return out

    @classmethod
    def from_json(cls, value: Json) -> "ToolResponse":
        """Validate an envelope from outside. Raises ValueError naming the invalid field."""
        if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
            raise ValueError("ok: must be true or false")
        common: dict[str, Any] = {
            "intents": tuple(_objects(value, "intents")),
            "render": _object(value, "render"),
            "meta": _object(value, "meta") or {},
        }
        if value["ok"]:
            if value.get("error") is not None:
                raise ValueError("error: must be absent when ok is true")
            return cls(data=value.get("data"), **common)
        return cls(error=_error_from(value.get("error")), **common)


def _error_from(value: Json) -> ToolError:
    if not isinstance(value, dict):
        raise ValueError("error: must be an object when ok is false")
    for key in ("type", "message"):
        if not isinstance(value.get(key), str):
            raise ValueError(f"error.{key}: must be a string")
    try:
        kind = ErrorType(value["type"])
    except ValueError:
        raise ValueError(
            f"error.type: {value['type'][:40]!r} is not one of the closed set"
        ) from None
    try:
        code = ErrorCode(value.get("code") or kind.value)
    except ValueError:
        code = _DEFAULT_CODE[kind]
    return ToolError(
        type=kind,
        code=code,
        message=value["message"][:2000],
        retryable=value.get("retryable") is True,
        suggestion=value.get("suggestion"),
        details=value.get("details"),
        confirmation_request=value.get("confirmation_request"),
        retry_after_ms=value.get("retryAfterMs"),
        partial_side_effects=value.get("partialSideEffects") is True,
        idempotency_required=value.get("idempotencyRequired") is True,
    )


_DEFAULT_CODE: Final = {
    **{t: ErrorCode(t.value) for t in ErrorType if t.value in ErrorCode.__members__},
    ErrorType.VALIDATION: ErrorCode.INVALID_ARGUMENTS,
    ErrorType.NOT_FOUND: ErrorCode.TOOL_NOT_FOUND,
    ErrorType.TRANSIENT: ErrorCode.NETWORK_ERROR,
    ErrorType.PERMANENT: ErrorCode.TOOL_UNAVAILABLE,
    ErrorType.CONFIRMATION_EXPIRED: ErrorCode.EXPIRED,
}


def _object(value: Mapping[str, Json], key: str) -> dict[str, Json] | None:
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{key}: must be an object")
    return found


def _objects(value: Mapping[str, Json], key: str) -> list[dict[str, Json]]:
    found = value.get(key) or []
    if not isinstance(found, list) or not all(isinstance(i, dict) for i in found):
        raise ValueError(f"{key}: must be a list of objects")
    return found


# ------------------------------------------------------------------ what a handler may use


class Named(NamedTuple):
    """What an argument stands for, as a person who is asked for a yes reads it in its place:
    `mail: Lunch, from Anna`.
    """

    label: str
    words: str
    """Different for each thing that the argument could name."""


class ToolContext(Protocol):
    """The services of one call. A handler can use nothing else: no radio, no socket, no path.

    A function gets all of it as `ctx`; a class gets the services that its constructor names. A
    service that is not available here raises `ToolFailure`.
    """

    @property
    def call(self) -> ToolCall: ...
    @property
    def storage(self) -> handed.ToolStorage: ...
    @property
    def db(self) -> handed.Database: ...
    @property
    def files(self) -> handed.Files: ...
    @property
    def kv(self) -> handed.KV: ...
    @property
    def alarms(self) -> handed.Alarms: ...
    @property
    def display(self) -> handed.Display: ...
    @property
    def audio(self) -> handed.Audio: ...
    @property
    def cloud(self) -> handed.Cloud: ...
    @property
    def clock(self) -> handed.Clock: ...
    @property
    def session(self) -> handed.Session: ...
    @property
    def voice_active(self) -> bool:
        """True while there is a voice session."""

    @property
    def audit(self) -> handed.Audit: ...
    @property
    def config(self) -> handed.Config: ...
    @property
    def glasses_do(self) -> handed.Deeds: ...
    @property
    def glasses_ask(self) -> handed.Questions: ...
    @property
    def captions(self) -> handed.Captions: ...
    @property
    def camera(self) -> handed.Camera: ...
    @property
    def microphone(self) -> handed.Microphone: ...
    @property
    def knowledge(self) -> "Knowledge": ...
    @property
    def calendars(self) -> "Calendars": ...
    @property
    def history(self) -> "History": ...
    @property
    def pictures(self) -> handed.Pictures: ...
    @property
    def reminders(self) -> "services.Reminders": ...
    @property
    def workers(self) -> "services.Workers": ...
    @property
    def toolbox(self) -> handed.Toolbox: ...
    @property
    def wearer(self) -> handed.Wearer: ...
    @property
    def log(self) -> "logging.Logger":
        """Named `glassd.tool.PACKAGE:NAME`."""

    def now(self) -> float:
        """Wall clock, seconds since 1970."""

    def glasses(self) -> Mapping[str, Json]:
        """What is known of the glasses now: `{state, ready, stale, model, firmware, battery, worn,
        can, lens, gestures}`; a model of "" means none were ever connected, `can` lists their
        abilities (`camera`, `display` …), `lens` is `{width, height, lines, bitmap}` where there is
        one, `gestures` what the wearer can do.
        """

    def network(self) -> Mapping[str, Json]:
        """Whether the cloud is reachable: `{state: up | down | not configured, reason}`."""

    async def attach(self, data: bytes, kind: str) -> Json:
        """Return the content block of a photo or sound, for `meta.content` of the result; `kind` is
        its MIME type. A caller of the cloud gets a link to an upload, if its cloud takes uploads.
        Raises `ToolFailure` NOT_ACCEPTED: more than 130 kB, and not uploaded.
        """

    async def progress(self, text: str) -> None:
        """Report to the caller how far the call is."""

    async def call_tool(self, tool: str, args: Mapping[str, Json]) -> "ToolResponse":
        """Call another tool within this turn and its budgets, at most three deep."""
