"""Values that the daemon and the child process exchange: servers, their state, outcomes of calls.
A server's fault is an `Outcome`, never an exception.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

Json = Any
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

PASSED_ON: Final = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
)
"""All of the daemon's environment that a server gets."""
AUTHORIZE_S: Final = 600.0
"""How long a person has to authorise; then the server is asked for a new address."""


class Status(StrEnum):
    """A server that is disconnected without an `error` is idle: the next call connects it."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    LOADING = "loading"
    AUTHORIZING = "authorizing"


class CallFault(StrEnum):
    """Why a call has no result of its tool."""

    UNSENT = "unsent"
    """The server never got it: it cannot be started or reached, is too busy, or is unknown."""
    LOST = "lost"
    """Sent, then the connection ended: it may have been done."""
    TIMEOUT = "timeout"
    """Sent and not answered in time; the server was asked to stop."""
    TOO_LARGE = "too_large"
    INVALID = "invalid"
    """The answer is not MCP, is null, or does not match the tool's own schema."""
    AUTH = "auth"
    """A person must authorise (`authorize_url`, if there is one), or the secret is wrong."""
    DENIED = "denied"
    """The server refused (HTTP 403)."""
    FAILED = "failed"
    """A protocol error; `code` is its JSON-RPC code (-32602: the tool is unknown)."""
    CANCELLED = "cancelled"


HELD: Final = "glassd-held:"
"""How the request state begins of a question that an older server asks within a call."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """One configured server: `command` (stdio) or `url` (streamable HTTP), never both. Secrets
    are in `env`, `headers`, `bearer` and `client_secret`, and in no `repr`.
    """

    id: str
    """Routing key."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to `PASSED_ON`."""
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer: str = field(default="", repr=False)
    ca_file: str = ""
    """Certificate authorities to trust instead of the machine's. TLS is always verified."""
    oauth: bool = True
    """Whether to follow a demand for authorisation (HTTP without `bearer` only)."""
    redirect_uri: str = "http://127.0.0.1:8765/callback"
    """Where the browser is sent with `code` and `state`. Nothing need listen there: a person can
    copy the address.
    """
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    client_metadata_url: str = ""
    """CIMD: the client id as a document on the web, for authorisation servers that take it."""
    tokens_file: str = ""
    """OAuth tokens, mode 0600; "" keeps them in memory."""
    idle_s: float = 1800.0
    """A connection that is not used for so long is closed; the next call opens it again."""
    start_timeout_s: float = 30.0
    """`npx` and `uvx` download a package at their first start."""
    max_answer_bytes: int = 4 * 1024 * 1024
    """One message of a server: an image of 3 MB as base64."""
    max_tools: int = 512
    """The largest published servers have about a hundred."""
    era: str = ""
    """"" probes for a modern server first; `legacy` sends `initialize` at once."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError(f"mcp server {self.id}: give either command or url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"mcp server {self.id}: url must begin with https:// or http://")


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """One tool as its server lists it. Its schemas are bounded and compile; its annotations are
    claims.
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
    """The state of a server. `tools` is None until they were listed once; the last list stays
    when the server is gone.
    """

    server: str
    status: Status
    error: str = ""
    """Why it is not connected, or wants authorisation: one sanitised line; "" when it is idle."""
    tools: tuple[UpstreamTool, ...] | None = None
    notes: tuple[str, ...] = ()
    """What was left out of the list, and why."""
    authorize_url: str = ""
    title: str = ""
    version: str = ""
    """The server's own name and version, to show."""
    instructions: str = ""
    protocol: str = ""
    """Revision in use, such as 2026-07-28."""

    @property
    def available(self) -> bool:
        """Whether a call is worth trying: connected, or idle."""
        return self.status is Status.CONNECTED or (
            self.status is Status.DISCONNECTED and not self.error
        )


@dataclass(frozen=True, slots=True)
class ServerProgress:
    """How far a running call is; at most ten a second."""

    call_id: str
    progress: float
    total: float | None = None
    message: str = ""


OnProgress = Callable[[ServerProgress], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a call. Exactly one of: a result (`is_error` if the tool says that it failed), a
    question (`input_requests`), no result (`fault`).
    """

    content: tuple[Mapping[str, Json], ...] = ()
    """Content blocks, verbatim."""
    structured: Json = None
    """structuredContent that matches the output schema, or the JSON object in the only text block.
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
    """The server asks back: call again with `input={"inputResponses": …, "requestState": …}`."""
    request_state: str | None = None
    attempts: int = 1
    """2 if it was sent again after a lost connection."""

    @property
    def ok(self) -> bool:
        return self.fault is None and not self.is_error and self.input_requests is None


def state_of(given: Mapping[str, Json] | None) -> str:
    """Return the state of a held call from what a caller brings; "" if it brings none."""
    state = (given or {}).get("requestState")
    return state if isinstance(state, str) and state.startswith(HELD) else ""


def fault(kind: CallFault, message: str, **more: Any) -> Outcome:
    """Return the outcome of a call without a result."""
    return Outcome(is_error=True, fault=kind, message=message, **more)
