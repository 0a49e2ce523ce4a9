"""One connection to one MCP server, from opening to its end; used once.

`run` holds it in one task, as the SDK's contexts require. `settled` is set when it is open, has
failed, or waits for a person's authorisation; `problem` says which.
"""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from edge.mcp.client.held import ServerQuestion
from edge.mcp.client.listing import Listing
from edge.mcp.client.models import AUTHORIZE_S, CallFault, McpServer
from edge.mcp.client.request_trace import TRACE, RequestTrace
from edge.mcp.client.session import US, Dispatcher, McpSession, agree
from edge.mcp.client.stdio import stdio_wire
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout

_STEP_UP: Final = 403
MIN_TTL_S: Final = 60.0
MAX_TTL_S: Final = 24 * 3600.0
MAX_MESSAGE: Final = 300
GIVEN_UP_S: Final = 30.0
"""Seconds in which a server may still ask for a call that was given up."""

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
    """`on_change` is called when `settled`, `problem` or `listing` changed, and when `stale` is
    set: the tools should be listed again.
    """

    def __init__(
        self,
        config: McpServer,
        *,
        on_change: Callable[[], None],
        legacy: bool = False,
        authorizer: "Authorizer | None" = None,
    ) -> None:
        self.config = config
        self.settled = asyncio.Event()
        self.problem: ConnectionProblem | None = None
        self.listing = Listing(config.max_tools)
        self.stale = asyncio.Event()
        self.lost = True
        """Whether it ended by itself, not by `close`."""
        self._over = asyncio.Event()
        self._legacy = legacy
        self.calls: list[asyncio.Queue[ServerQuestion]] = []
        """Of each call under way, where its questions go."""
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
        """What the server last asked a person for when nobody knew for which of its calls."""
        self.given_up_at = -math.inf
        """When a call of it last ended without its answer."""

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
        """Whether the protocol's version is known."""
        return self._session is not None and self._session.protocol_version is not None

    @property
    def legacy(self) -> bool:
        return (
            self._session is not None
            and self._session.protocol_version not in MODERN_PROTOCOL_VERSIONS
        )

    @property
    def why(self) -> str:
        """Why it ended, for people."""
        return self._why() or "the connection ended"

    def close(self) -> None:
        """End it soon, also while it is being opened."""
        self.lost = False
        self._over.set()
        if self._deadline is not None and not self.known:
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def abandon(self) -> None:
        """End it as lost: it was found dead."""
        self._over.set()

    async def run(self) -> None:
        """Open it, hold it until it ends, close it. Raises nothing but cancellation."""
        trace = RequestTrace()
        TRACE.set(trace)
        try:
            async with self._wire() as (read, write):
                self._dispatcher = Dispatcher(read, write)
                async with McpSession(
                    dispatcher=self._dispatcher,
                    client_info=US,
                    message_handler=self._on_message,
                    list_roots_callback=_no_roots,
                    elicitation_callback=self._ask,
                ) as session:
                    await self._open(session)
                    async with asyncio.TaskGroup() as group:
                        follower = group.create_task(self._follow(session))
                        await self._over.wait()
                        follower.cancel()
        except Exception as e:  # noqa: BLE001 - a server may break the SDK in any way; it is reported as its fault
            self._fail(e, trace)
        finally:
            self._over.set()
            if not self.settled.is_set():
                self._settle(ConnectionProblem(CallFault.UNSENT, "closed before it was open"))

    @asynccontextmanager
    async def _wire(self) -> AsyncGenerator[tuple[Any, Any]]:
        if self.config.command:
            async with stdio_wire(self.config, ended=self._over, log_line=self._log_line) as wire:
                self._why = lambda: wire.why
                yield wire.read, wire.write
        else:
            from edge.mcp.client.http import http_wire  # noqa: PLC0415 - httpx2 is only for servers on the network

            flow = None
            if self._authorizer is not None:
                flow = self._authorizer.flow(wait=self.wait_for_person, resume=self.resume)
            async with http_wire(self.config, flow) as streams:
                yield streams

    async def _open(self, session: McpSession) -> None:
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
            self._dispatcher.keep_valid = listing.keep_valid
            await listing.read(self.session)
        self.listing = listing

    # -------------------------------------------------------------- authorisation

    def wait_for_person(self, url: str, status: int) -> None:
        """Wait for a person who opens this address. A connection that is being opened gets a later
        deadline. In an open one only a call that needs more rights waits (403); a connection that
        is no longer authorised (401) ends.
        """
        message = "authorisation is needed: open the address that `glassd servers` shows"
        if self.known and status != _STEP_UP:
            url = ""  # it is void with this connection; the next one has its own
            self._over.set()
        elif self._deadline is not None and not self.known:
            self._deadline.reschedule(asyncio.get_running_loop().time() + AUTHORIZE_S)
        self._settle(ConnectionProblem(CallFault.AUTH, message, url))

    def resume(self) -> None:
        """Go on: the person has authorised."""
        if self.known:
            self._settle(None)
        elif self._deadline is not None:
            ends_at = asyncio.get_running_loop().time() + self.config.start_timeout_s
            self._deadline.reschedule(ends_at)

    def stop_waiting(self) -> None:
        """Go on without more rights: the call that needed them has ended."""
        if self.known and not self.over:
            self._settle(None)

    # -------------------------------------------------------------- events

    def _settle(self, problem: ConnectionProblem | None) -> None:
        self.problem = problem
        self.settled.set()
        self._on_change()

    def _fail(self, error: BaseException, trace: RequestTrace) -> None:
        cause = _first(error)
        self.too_slow = isinstance(cause, TimeoutError)
        if not self.open:
            self._settle(ConnectionProblem(*self._problem_of(cause, trace)))
            return
        log.debug("%s: the connection ended: %r", self.config.id, cause)
        self._why = self._why if self._why() else lambda: describe(cause)

    def _problem_of(self, cause: BaseException, trace: RequestTrace) -> tuple[CallFault, str]:
        """Return why it could not be opened."""
        if not self.lost:
            return CallFault.UNSENT, "closed before it was open"
        if self.too_slow and self.problem is not None:
            again = "`glassd servers refresh` asks again"
            return CallFault.AUTH, f"nobody authorised it in time: {again}"
        if trace.fault is not None and not isinstance(cause, OSError):
            explained = trace.fault is not CallFault.AUTH or isinstance(cause, MCPError)
            return trace.fault, trace.message + ("" if explained else f": {describe(cause)}")
        if self.too_slow:
            return CallFault.UNSENT, f"did not start within {self.config.start_timeout_s:g} s"
        if isinstance(cause, ValidationError):
            return CallFault.INVALID, f"speaks no MCP: {describe(cause)}"
        if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
            return CallFault.UNSENT, self.why
        return CallFault.UNSENT, describe(cause)

    async def _follow(self, session: ClientSession) -> None:
        """Listen for changes of the list of tools, if a modern server announces them."""
        capabilities = session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        if self.legacy or tools is None or not tools.list_changed:
            return
        try:
            async with listen(session, tools_list_changed=True) as changes:
                async for _ in changes:
                    self.mark_stale()
        except (MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError) as e:
            log.debug("%s: changes of its tools cannot be followed: %s", self.config.id, e)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.mark_stale()

    async def _ask(
        self,
        context: ClientRequestContext,  # noqa: ARG002
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        """An older server asks within a call, and does not say which: with several under way, or
        one given up just now that it may still be busy with, nobody knows whose caller is meant.
        """
        alone = len(self.calls) == 1 and monotonic() - self.given_up_at > GIVEN_UP_S
        if alone and not self.calls[0].full():
            question = ServerQuestion(params)
            self.calls[0].put_nowait(question)
            return await question.answer
        self.declined = clean(params.message, MAX_MESSAGE) or "something"
        return types.ElicitResult(action="decline")

    def mark_stale(self) -> None:
        self.stale.set()
        self._on_change()

    def _log_line(self, line: str) -> None:
        log.debug("[%s] %s", self.config.id, clean(line, 400))


async def _no_roots(context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG001 - the SDK's form
    return types.ListRootsResult(roots=[])


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe(error: BaseException) -> str:
    """Return an error as one line for people."""
    text = str(error) or type(error).__name__
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        text = f"{'.'.join(map(str, first['loc'][-3:]))}: {first['msg']}"
    elif isinstance(error, OSError):
        why = f"cannot be started: {error.strerror or error}: {error.filename or ''}"
        text = why.rstrip(": ")
    return clean(text, MAX_MESSAGE)
