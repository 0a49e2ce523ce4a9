"""What the daemon and the child that talks to MCP servers say to each other: servers, their news,
calls' outcomes.

Refuses to know the SDK, the registry and the envelope. Everything here is a value: a server's fault
is an `Outcome`, never an exception.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

Json = Any
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

IDLE_S: Final = 1800.0
"""S1-29: a connection nobody used for half an hour is closed; the next call opens it again."""
START_TIMEOUT_S: Final = 30.0
"""`npx` and `uvx` fetch a package at their first start; a start that took this long gives
nobody anything.
"""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""One message of a server: an image of 3 MB as base64."""
MAX_TOOLS: Final = 512
"""Of one server; the largest published ones have about a hundred."""


class Status(StrEnum):
    """S1-36. A server that is disconnected without an `error` only rests: the next call
    connects it.
    """

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    LOADING = "loading"
    AUTHORIZING = "authorizing"


class CallFault(StrEnum):
    """Why a call has no result of its tool."""

    UNSENT = "unsent"
    """The server never got it: cannot be started or reached, too busy, unknown here."""
    LOST = "lost"
    """It was sent and the connection ended: nobody knows whether it was done."""
    TIMEOUT = "timeout"
    """Sent, not answered in time; the server was told to stop."""
    TOO_LARGE = "too_large"
    INVALID = "invalid"
    """The answer is no MCP, is null, or is not what the tool's own schema promises."""
    AUTH = "auth"
    """The server wants a person's authorisation (`authorize_url` where there is one) or another
    secret.
    """
    DENIED = "denied"
    """The server knows us and refuses (HTTP 403)."""
    FAILED = "failed"
    """The server answered with a protocol error; `code` is its JSON-RPC code (-32602: it does
    not know the tool).
    """
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class McpServer:
    """One configured server: `command` (stdio) or `url` (streamable HTTP), never both. Secrets
    stand in `env`, `headers` and `bearer`, already read by the daemon, and are in no `repr`.
    """

    id: str
    """Routing key (S1-24); `name` is for people."""
    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Beside a clean environment (PATH, HOME, LANG and their like): nothing of the daemon's
    reaches a server.
    """
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer: str = field(default="", repr=False)
    ca_file: str = ""
    """Authorities to trust instead of the machine's own. TLS is always verified."""
    oauth: bool = True
    """Follow the server's demand for authorisation (HTTP without `bearer` only)."""
    redirect_uri: str = "http://127.0.0.1:8765/callback"
    """Where the browser is sent with `code` and `state`; nobody need listen there, a person can
    copy both.
    """
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    client_metadata_url: str = ""
    """CIMD: our client id as a document on the web, for authorisation servers that take it."""
    tokens_file: str = ""
    """Where OAuth tokens are kept, mode 0600; "" keeps them in memory."""
    idle_s: float = IDLE_S
    start_timeout_s: float = START_TIMEOUT_S
    max_answer_bytes: int = MAX_ANSWER_BYTES
    max_tools: int = MAX_TOOLS
    era: str = ""
    """"" probes (modern first); `legacy` shakes hands at once."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError(f"mcp server {self.id}: give either command or url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"mcp server {self.id}: url must begin with https:// or http://")


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """One tool as its server tells it (S1-37), checked: schemas are bounded and compile.
    Annotations are only claims.
    """

    name: str
    description: str = ""
    title: str = ""
    input_schema: Mapping[str, Json] = field(default_factory=dict)
    output_schema: Mapping[str, Json] | None = None
    annotations: Mapping[str, Json] = field(default_factory=dict)
    meta: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerNews:
    """How a server fares now. `tools` is None until it was listed once, and keeps the last list
    when it is gone.
    """

    server: str
    status: Status
    error: str = ""
    """Why it is not connected, or wants authorisation: one line for a person, sanitised. ""
    when it only rests.
    """
    tools: tuple[UpstreamTool, ...] | None = None
    notes: tuple[str, ...] = ()
    """What was left out of the list, and why."""
    authorize_url: str = ""
    title: str = ""
    version: str = ""
    """The server's own name and version, for show only."""
    instructions: str = ""
    protocol: str = ""
    """Revision in use, such as 2026-07-28."""

    @property
    def available(self) -> bool:
        """Whether a call is worth trying: connected, or resting."""
        return self.status is Status.CONNECTED or (
            self.status is Status.DISCONNECTED and not self.error
        )


@dataclass(frozen=True, slots=True)
class ServerProgress:
    """What a running call says of how far it is; at most ten a second."""

    call_id: str
    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[ServerProgress], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call. Exactly one of: a result (`fault` None, `input_requests` None;
    `is_error` when the tool says it failed), a question (`input_requests`), no result (`fault`).
    """

    content: tuple[Mapping[str, Json], ...] = ()
    """Content blocks, verbatim."""
    structured: Json = None
    """structuredContent that keeps the tool's output schema, or the JSON object that the one
    text block holds.
    """
    is_error: bool = False
    meta: Mapping[str, Json] = field(default_factory=dict)
    """The server's `_meta`."""
    fault: CallFault | None = None
    message: str = ""
    """One line for a person, sanitised."""
    code: int | None = None
    """JSON-RPC code of a protocol error."""
    authorize_url: str = ""
    input_requests: Mapping[str, Json] | None = None
    """The server asks back (MRTR): call again with `input={"inputResponses": …, "requestState":
    …}`.
    """
    request_state: str | None = None
    attempts: int = 1
    """2 when it was sent again after a lost connection."""

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked."""
        return self.fault is None and not self.is_error and self.input_requests is None


def fault(kind: CallFault, message: str, **more: Any) -> Outcome:
    """Say why there is no result."""
    return Outcome(is_error=True, fault=kind, message=message, **more)
