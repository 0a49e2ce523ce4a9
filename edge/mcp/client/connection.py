"""One connection to one MCP server, from opening to its end; used once. Refuses to know calls,
idleness and retries.

`run` holds it in one task, as the SDK's contexts want. `settled` is set when it is open, has
failed, or waits for a person's authorisation; `problem` says which.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext, ElicitationFnT
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from edge.mcp.client.listing import Listing
from edge.mcp.client.models import CallFault, McpServer
from edge.mcp.client.request_trace import FLIGHT, RequestTrace
from edge.mcp.client.session import US, Dispatcher, McpSession, agree
from edge.mcp.client.stdio import stdio_wire
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout

AUTHORIZE_S: Final = 600.0
"""As the flow's own patience."""
_STEP_UP: Final = 403
MIN_TTL_S: Final = 60.0
MAX_TTL_S: Final = 24 * 3600.0
MAX_MESSAGE: Final = 300

if TYPE_CHECKING:
    from edge.mcp.client.oauth import Authorizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionProblem:
    """Why there is no connection."""

    kind: CallFault
    message: str
    authorize_url: str = ""


class ServerConnection:
    """`on_change` is called when `settled`, `problem` or `listing` changed, and when the tools
    should be listed again (`stale` is set then).
    """

    def __init__(
        self,
        config: McpServer,
        *,
        on_change: Callable[[], None],
        legacy: bool = False,
        elicit: ElicitationFnT | None = None,
        authorizer: "Authorizer | None" = None,
    ) -> None:
        self.config = config
        self.settled = asyncio.Event()
        self.problem: ConnectionProblem | None = None
        self.listing = Listing(config.max_tools)
        self.stale = asyncio.Event()
        self.lost = True
        """Whether it ended by itself: not because we closed it."""
        self._over = asyncio.Event()
        self._legacy = legacy
        self._elicit = elicit
        self._authorizer = authorizer
        self._on_change = on_change
        self._session: McpSession | None = None
        self._dispatcher: Dispatcher | None = None
        self._why: Callable[[], str] = str
        self._deadline: asyncio.Timeout | None = None
        self.known = False
        """Whether it was open once."""
        self.probing = False
        self.too_slow = False
        self.declined = ""
        """What the server last asked a person for, and was not given."""

    @property
    def session(self) -> ClientSession:
        """Of an open connection only."""
        assert self._session is not None
        return self._session

    @property
    def open(self) -> bool:
        return self.settled.is_set() and self.problem is None and not self._over.is_set()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    @property
    def session_known(self) -> bool:
        """Whether it came as far as to know the era."""
        return self._session is not None and self._session.protocol_version is not None

    @property
    def legacy(self) -> bool:
        return (
            self._session is not None
            and self._session.protocol_version not in MODERN_PROTOCOL_VERSIONS
        )

    @property
    def why(self) -> str:
        """Why it ended, for a person."""
        return self._why() or "the connection ended"

    def close(self) -> None:
        """End it soon, also while it is being opened."""
        self.lost = False
        self._over.set()
        if self._deadline is not None and not self.known:
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def abandon(self) -> None:
        """It was found dead: end it, and let it count as lost."""
        self._over.set()

    async def run(self) -> None:
        """Open it, hold it until it ends, close it. Never raises, but for its own cancellation."""
        flight = RequestTrace()
        FLIGHT.set(flight)
        try:
            async with self._wire() as (read, write):
                self._dispatcher = Dispatcher(read, write)
                async with self._made(self._dispatcher) as session:
                    await self._opened(session)
                    async with asyncio.TaskGroup() as group:
                        follower = group.create_task(self._follow(session))
                        await self._over.wait()
                        follower.cancel()
        except Exception as e:  # noqa: BLE001 - a server may break the SDK in any way; it is told as its fault
            self._fail(e, flight)
        finally:
            self._over.set()
            if not self.settled.is_set():
                self._settle(ConnectionProblem(CallFault.UNSENT, "closed before it was open"))

    @asynccontextmanager
    async def _wire(self) -> AsyncGenerator[tuple[Any, Any]]:
        if self.config.command:
            async with stdio_wire(self.config, ended=self._over, say=self._say_line) as wire:
                self._why = lambda: wire.why
                yield wire.read, wire.write
        else:
            from edge.mcp.client.http import http_wire  # noqa: PLC0415 - httpx2 is only for servers on the network

            auth = (
                None
                if self._authorizer is None
                else self._authorizer.flow(wants=self.wants, authorized=self.authorized)
            )
            async with http_wire(self.config, auth) as streams:
                yield streams

    def _made(self, dispatcher: Dispatcher) -> McpSession:
        return McpSession(
            dispatcher=dispatcher,
            client_info=US,
            message_handler=self._heard,
            list_roots_callback=_no_roots,
            elicitation_callback=self._elicit or self._decline,
        )

    async def _opened(self, session: McpSession) -> None:
        self._session = session
        try:
            async with timeout(self.config.start_timeout_s if self.lost else 0) as self._deadline:
                self.probing = not self._legacy
                await agree(session, legacy=self._legacy)
                self.probing = False
                await self.list_tools()
        finally:
            self._deadline = None
        self.known = True
        self._settle(None)

    async def list_tools(self) -> None:
        """Read the list of tools. Raises what the session raises."""
        capabilities = self.session.server_capabilities
        listing = Listing(self.config.max_tools)
        if capabilities is not None and capabilities.tools is not None:
            assert self._dispatcher is not None
            self._dispatcher.checked = listing.checked
            await listing.read(self.session)
        self.listing = listing

    # -------------------------------------------------------------- authorisation

    def wants(self, url: str, status: int) -> None:
        """A person has to open this address. While it is being opened the deadline waits for them;
        later only a call that needs more rights does (403), and all is begun anew when the server
        knows us no more (401).
        """
        problem = ConnectionProblem(
            CallFault.AUTH,
            "authorisation is needed: open the address that `glassd servers` shows",
            url,
        )
        if self.known and status != _STEP_UP:
            problem = replace(
                problem, authorize_url=""
            )  # which dies with this connection; the next one has its own
            self._over.set()
        elif self._deadline is not None and not self.known:
            self._deadline.reschedule(asyncio.get_running_loop().time() + AUTHORIZE_S)
        self._settle(problem)

    def authorized(self) -> None:
        """They did; go on."""
        if self.known:
            self._settle(None)
        elif self._deadline is not None:
            self._deadline.reschedule(
                asyncio.get_running_loop().time() + self.config.start_timeout_s
            )

    def unwanted(self) -> None:
        """The call that needed more rights has ended without them."""
        if self.known and not self.over:
            self._settle(None)

    # -------------------------------------------------------------- what happens to it

    def _settle(self, problem: ConnectionProblem | None) -> None:
        self.problem = problem
        self.settled.set()
        self._on_change()

    def _fail(self, error: BaseException, flight: RequestTrace) -> None:
        cause = _first(error)
        self.too_slow = isinstance(cause, TimeoutError)
        if self.open:
            log.debug("%s: the connection ended: %r", self.config.id, cause)
            self._why = self._why if self._why() else lambda: words(cause)
            return
        if not self.lost:
            self._settle(ConnectionProblem(CallFault.UNSENT, "closed before it was open"))
        elif isinstance(cause, TimeoutError) and self.problem is not None:
            self._settle(
                ConnectionProblem(
                    CallFault.AUTH,
                    "nobody authorised it in time: `glassd servers refresh` asks again",
                )
            )
        elif flight.fault is not None and not isinstance(cause, OSError):
            more = (
                f": {words(cause)}"
                if flight.fault is CallFault.AUTH and not isinstance(cause, MCPError)
                else ""
            )
            self._settle(ConnectionProblem(flight.fault, flight.message + more))
        elif isinstance(cause, TimeoutError):
            self._settle(
                ConnectionProblem(
                    CallFault.UNSENT, f"did not start within {self.config.start_timeout_s:g} s"
                )
            )
        elif isinstance(cause, ValidationError):
            self._settle(ConnectionProblem(CallFault.INVALID, f"speaks no MCP: {words(cause)}"))
        elif isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
            self._settle(ConnectionProblem(CallFault.UNSENT, self.why))
        else:
            self._settle(ConnectionProblem(CallFault.UNSENT, words(cause)))

    async def _follow(self, session: ClientSession) -> None:
        """Notice that the list of tools is no longer what it was: told by the server, or by its
        time to live.
        """
        capabilities = session.server_capabilities
        try:
            if (
                not self.legacy
                and capabilities is not None
                and capabilities.tools
                and capabilities.tools.list_changed
            ):
                async with listen(session, tools_list_changed=True) as changes:
                    async for _ in changes:
                        self.outdated()
        except (MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError) as e:
            log.debug("%s: no word of changed tools: %s", self.config.id, e)

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.outdated()

    async def _decline(
        self,
        context: ClientRequestContext,  # noqa: ARG002
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        """A handshake server asks within a call, which cannot wait for a person here."""
        self.declined = clean(params.message, MAX_MESSAGE) or "something"
        return types.ElicitResult(action="decline")

    def outdated(self) -> None:
        self.stale.set()
        self._on_change()

    def _say_line(self, line: str) -> None:
        log.debug("[%s] %s", self.config.id, clean(line, 400))


async def _no_roots(context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG001 - the SDK's form
    return types.ListRootsResult(roots=[])


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def words(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return clean(f"{'.'.join(map(str, first['loc'][-3:]))}: {first['msg']}", MAX_MESSAGE)
    if isinstance(error, OSError):
        return clean(
            f"cannot be started: {error.strerror or error}: {error.filename or ''}".rstrip(": "),
            MAX_MESSAGE,
        )
    return clean(str(error) or type(error).__name__, MAX_MESSAGE)
