"""One MCP server: connected when it is needed, closed when it was not used for a while, called with
deadlines. Calls never raise for a server's fault.

It can be used alone: `async with serving(config) as server: outcome = await server.call(…)`.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from edge.core.backoff import Backoff, Chance
from edge.mcp.client.call import ToolRequest, call_tool
from edge.mcp.client.connection import (
    MAX_TTL_S,
    MIN_TTL_S,
    ConnectionProblem,
    ServerConnection,
    describe,
)
from edge.mcp.client.held import (
    HOLD_S,
    OVER,
    ServerQuestion,
    answer_of,
    new_state,
    question_of,
)
from edge.mcp.client.models import (
    CallFault,
    Json,
    McpServer,
    OnProgress,
    Outcome,
    ServerNews,
    Status,
    UpstreamTool,
    fault,
    state_of,
)
from edge.mcp.client.request_trace import RequestTrace
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout, timeout_at

MAX_CALLS: Final = 32
"""At once, at one server: each may hold an answer of `max_answer_bytes`."""
SILENT: Final = 3
"""Calls in a row without an answer; then the connection is replaced."""
MAX_INSTRUCTIONS: Final = 4000
RELIST_S: Final = 1.0
"""After a listing, before the next."""
FEW: Final = 8
"""Changes in a row that are nothing unusual; from then on each pause is twice the last one."""
MOST_RELIST_S: Final = 60.0
"""Each new list is stored and sent to the cloud: a server that changes its list all the time does
that once a minute.
"""

if TYPE_CHECKING:
    from edge.mcp.client.oauth import Authorizer, Browser

log = logging.getLogger(__name__)
Sending = Callable[[], Awaitable[None]]


@asynccontextmanager
async def serving(config: McpServer, **options: Any) -> AsyncGenerator["McpServerClient"]:
    """Yield a `McpServerClient` with these options, and end its connection on leaving."""
    failed: Exception | None = None
    async with asyncio.TaskGroup() as group:
        server = McpServerClient(config, group, **options)
        try:
            yield server
        except Exception as e:  # noqa: BLE001 - raised below, not as a group's
            failed = e
        finally:
            server.close()
    if failed is not None:
        raise failed


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that waits for the answer to a question."""

    connection: ServerConnection
    request: ToolRequest
    task: asyncio.Task[Outcome]
    question: ServerQuestion
    timer: asyncio.TimerHandle

    def give_up(self) -> None:
        """End it: nobody brought an answer."""
        self.timer.cancel()
        self.question.cancel()
        self.task.cancel()


class McpServerClient:
    """`report` gets the news, `chance` spreads attempts to connect, `tools` were found by an
    earlier process. Its tasks run in `group`, and end soon after `close`.
    """

    def __init__(
        self,
        config: McpServer,
        group: asyncio.TaskGroup,
        *,
        report: Callable[[ServerNews], None] = lambda _: None,
        chance: Chance = random.random,
        tools: tuple[UpstreamTool, ...] | None = None,
        browser: "Browser | None" = None,
    ) -> None:
        self.config = config
        self.in_progress = 0
        self.news = ServerNews(server=config.id, status=Status.DISCONNECTED, tools=tools)
        self._group = group
        self._report = report
        self._held: dict[str, HeldCall] = {}
        """Calls that wait for an answer to the server's question, by its request state."""
        self._backoff = Backoff(chance, first_s=1.0, most_s=300.0)
        self._authorizer = _authorizer(config, browser)
        self._current: ServerConnection | None = None
        self._problem: ConnectionProblem | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._relisting: asyncio.Task[None] | None = None
        self._changes, self._rested_at = 0, -math.inf
        self._closed = False
        self._legacy = config.era == "legacy"
        self._not_before = 0.0
        self._silent = 0

    # -------------------------------------------------------------- requests

    def start(self) -> None:
        """Connect now, in the background, and again with growing delays while that fails."""
        if self._current is None and not self._closed:
            self._open()

    def refresh(self) -> None:
        """List the tools again, connecting if need be."""
        self._not_before = 0.0
        if self._current is not None and self._current.open:
            self._current.mark_stale()
        else:
            self.start()

    def authorize(self, code: str, state: str, iss: str | None = None) -> None:
        """Pass on what a browser came back with; whether it is accepted is news."""
        if self._authorizer is None or not self._authorizer.complete(code, state, iss):
            log.debug("%s: nothing waits for an authorisation", self.config.id)

    def close(self) -> None:
        """End the connection, the timers and the tasks."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for state in list(self._held):
            self._give_up(state)
        if self._relisting is not None:
            self._relisting.cancel()
        if self._current is not None:
            self._current.close()

    @property
    def resting(self) -> bool:
        """No connection, none under way and none planned."""
        return self._current is None and "retry" not in self._timers and not self.in_progress

    async def connected(self, timeout_s: float) -> ConnectionProblem | None:
        """Connect if needed; return the problem, if there is one."""
        found = await self._connect(_now() + timeout_s)
        return found if isinstance(found, ConnectionProblem) else None

    async def call(
        self,
        tool: str,
        args: Mapping[str, Json],
        *,
        timeout_s: float,
        call_id: str = "",
        idempotent: bool = False,
        retry: bool = True,
        input: Mapping[str, Json] | None = None,
        sending: Sending | None = None,
        on_progress: OnProgress | None = None,
    ) -> Outcome:
        """Call a tool by the name it has there, with its arguments as they are. `sending` is
        awaited before anything is sent. Cancelling cancels it at the server. `retry`: send it again
        if it was not sent or is `idempotent`.
        """
        if state := state_of(input):
            return await self._go_on(state, input or {}, timeout_s, sending)
        if self.in_progress >= MAX_CALLS:
            return fault(CallFault.UNSENT, f"{MAX_CALLS} calls are under way at this server")
        self.in_progress += 1
        self._restart_idle_timer()
        try:
            ends_at = _now() + timeout_s
            request = ToolRequest(tool, args, call_id, input, on_progress)
            outcome = await self._call(request, ends_at, sending)
            lost = CallFault.LOST if idempotent else CallFault.UNSENT
            if retry and request.trace.tried and outcome.fault in {CallFault.UNSENT, lost}:
                log.debug("%s: sent again: %s", self.config.id, outcome.message)
                request = replace(request, trace=RequestTrace())
                outcome = replace(await self._call(request, ends_at, sending), attempts=2)
        finally:
            self.in_progress -= 1
            self._restart_idle_timer()
        self._replace_if_silent(outcome)
        return outcome

    # -------------------------------------------------------------- one call

    async def _call(self, request: ToolRequest, ends_at: float, sending: Sending | None) -> Outcome:
        found = await self._connect(ends_at)
        if isinstance(found, ConnectionProblem):
            return _fault_of(found)
        request.trace.tried = True
        if sending is not None:
            await sending()
        task = self._group.create_task(call_tool(found, request))
        return await self._end_of(task, found, request, ends_at)

    async def _end_of(
        self,
        task: asyncio.Task[Outcome],
        found: ServerConnection,
        request: ToolRequest,
        ends_at: float,
    ) -> Outcome:
        """Wait for the end of a call, or for what an older server asks within it."""
        asked, held = asyncio.ensure_future(request.questions.get()), False
        try:
            left_s = max(0.0, ends_at - _now())
            await asyncio.wait({task, asked}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if held := asked.done() and not task.done():
                return self._hold(task, found, request, asked.result())
        finally:
            if asked.done() and not held:
                asked.result().cancel()
            asked.cancel()
            if not (held or task.done()):
                # This notifies the server. It is not awaited: a server that does not read would
                # block it.
                task.cancel()
        if task.done() and not task.cancelled():
            outcome = task.result()
            stdio_lost = outcome.fault is CallFault.LOST and self.config.command
            if stdio_lost or outcome.fault is CallFault.UNSENT:
                found.abandon()  # it is dead, even if it has not noticed yet
            return outcome
        if (problem := found.problem) is not None:
            found.stop_waiting()
            return _fault_of(problem)
        message = "the server did not answer in time and was asked to stop; it may have been done"
        return fault(CallFault.TIMEOUT, message)

    def _hold(
        self,
        task: asyncio.Task[Outcome],
        connection: ServerConnection,
        request: ToolRequest,
        question: ServerQuestion,
    ) -> Outcome:
        """Return the question; the call waits for its answer, and is not forgotten as idle."""
        state = new_state()
        timer = asyncio.get_running_loop().call_later(HOLD_S, self._give_up, state)
        self._held[state] = HeldCall(connection, request, task, question, timer)
        task.add_done_callback(lambda _: question.cancel())
        self.in_progress += 1
        return question_of(question, state)

    def _give_up(self, state: str) -> None:
        log.debug("%s: nobody answered what it asked", self.config.id)
        self._held.pop(state).give_up()
        self.in_progress -= 1
        self._restart_idle_timer()

    async def _go_on(
        self, state: str, given: Mapping[str, Json], timeout_s: float, sending: Sending | None
    ) -> Outcome:
        """Bring the answer to a call that waits for it, and wait for its end."""
        if state not in self._held:
            return fault(CallFault.DENIED, OVER)
        try:
            answer = answer_of(given)
        except ValidationError as e:
            why = "the input is no answer to what the server asked, and was not sent"
            return fault(CallFault.INVALID, f"{why}: {describe(e)}")
        held = self._held.pop(state)
        held.timer.cancel()
        try:
            if sending is not None:
                await sending()
            held.question.settle(answer)
            outcome = await self._end_of(
                held.task, held.connection, held.request, _now() + timeout_s
            )
        except asyncio.CancelledError:
            held.give_up()
            raise
        finally:
            self.in_progress -= 1
            self._restart_idle_timer()
        self._replace_if_silent(outcome)
        return outcome

    async def _connect(self, ends_at: float) -> ServerConnection | ConnectionProblem:
        while True:
            connection = self._current
            if connection is None or connection.over:
                if self._closed:
                    return ConnectionProblem(CallFault.UNSENT, "the server is no longer configured")
                if self._problem is not None and _now() < self._not_before:
                    return self._problem
                connection = self._open()
            try:
                async with timeout_at(ends_at):
                    await connection.settled.wait()
            except TimeoutError:
                return ConnectionProblem(CallFault.UNSENT, "it was not connected in time")
            if connection.open:
                return connection
            if connection.problem is not None and self._current in (None, connection):
                return connection.problem

    def _replace_if_silent(self, outcome: Outcome) -> None:
        """Close the connection of a server that did not answer `SILENT` calls in a row."""
        self._silent = self._silent + 1 if outcome.fault is CallFault.TIMEOUT else 0
        if self._silent >= SILENT and not self.in_progress and self._current is not None:
            log.debug("%s: does not answer; connected again", self.config.id)
            self._silent = 0
            self._current.close()

    # -------------------------------------------------------------- the connection

    def _open(self) -> ServerConnection:
        self._stop("retry")
        connection = ServerConnection(
            self.config,
            on_change=self._update,
            legacy=self._legacy,
            authorizer=self._authorizer,
        )
        self._current = connection
        self._group.create_task(self._run(connection))
        self._update()
        return connection

    async def _run(self, connection: ServerConnection) -> None:
        began = _now()
        await connection.run()
        if connection.session_known:
            self._legacy = connection.legacy  # from now on without a probe
        if self._current is not connection:
            return
        self._current = None
        died_of_probe = connection.probing and connection.lost and not connection.too_slow
        if died_of_probe and self.config.command and not self._legacy:
            self._legacy = True
            self._open()
            return
        lost = connection.problem or ConnectionProblem(CallFault.LOST, connection.why)
        self._problem = lost if connection.lost else None
        self._update()
        if self._problem is None:
            return
        if self._problem.kind is not CallFault.AUTH:
            pause = self._backoff.after(_now() - began)
            self._not_before = _now() + (pause if connection.problem is not None else 0.0)
            self._set_timer("retry", pause, self.start)
        elif connection.known:
            # It was authorised once: a new connection asks for a new address. The pause is for
            # servers that refuse one thing again and again.
            self._set_timer("retry", self._backoff.after(_now() - began), self.start)

    def _update(self) -> None:
        """Start what the state requires, and report the state if it changed."""
        connection = self._current
        if connection is not None and connection.open:
            if connection.stale.is_set() and self._relisting is None and not self._closed:
                self._relisting = self._group.create_task(self._relist())
            if "idle" not in self._timers:
                self._restart_idle_timer()
            if connection.listing.ttl_s and "ttl" not in self._timers:
                ttl_s = min(MAX_TTL_S, max(MIN_TTL_S, connection.listing.ttl_s))
                self._set_timer("ttl", ttl_s, self._expire_list)
        news = _news(self.news, connection, self._problem)
        if news != self.news:
            self.news = news
            self._report(news)

    def _restart_idle_timer(self) -> None:
        self._set_timer("idle", self.config.idle_s, self._close_idle)

    def _close_idle(self) -> None:
        if self.in_progress == 0 and self._current is not None and self._current.open:
            idle_s, id_ = self.config.idle_s, self.config.id
            log.debug("%s: not used for %g s; disconnected until the next call", id_, idle_s)
            self._current.close()

    async def _relist(self) -> None:
        """List the tools again, until they do not change meanwhile."""
        try:
            await asyncio.sleep(0)
            while (
                (connection := self._current) is not None
                and connection.open
                and connection.stale.is_set()
            ):
                connection.stale.clear()
                try:
                    async with timeout(self.config.start_timeout_s):
                        await connection.list_tools()
                except Exception as e:  # noqa: BLE001 - whatever a server brings the SDK to raise must not affect the other servers
                    log.debug("%s: its tools cannot be listed again: %s", self.config.id, e)
                self._update()
                await asyncio.sleep(self._pause())
        finally:
            self._relisting = None

    def _pause(self) -> float:
        again = _now() - self._rested_at < 2 * MOST_RELIST_S
        self._changes, self._rested_at = self._changes + 1 if again else 0, _now()
        return min(MOST_RELIST_S, RELIST_S * 2.0 ** max(0, min(self._changes - FEW, 10)))

    def _expire_list(self) -> None:
        """List again after the server's time to live; an idle server is listed when connected."""
        if self._current is not None and self._current.open:
            self._current.mark_stale()

    def _set_timer(self, name: str, after_s: float, then: Callable[[], None]) -> None:
        """Set the one timer of this name, or move it."""
        self._stop(name)
        if not self._closed:

            def due() -> None:
                self._timers.pop(name, None)
                then()

            self._timers[name] = asyncio.get_running_loop().call_later(after_s, due)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()


def _fault_of(problem: ConnectionProblem) -> Outcome:
    return fault(problem.kind, problem.message, authorize_url=problem.authorize_url)


def _news(
    before: ServerNews, connection: ServerConnection | None, problem: ConnectionProblem | None
) -> ServerNews:
    """Return the news of a server in this state; the last list of tools stays."""
    plain = replace(before, error="", authorize_url="")
    if connection is not None and connection.settled.is_set():
        problem = connection.problem
    elif connection is not None:
        return replace(plain, status=Status.LOADING)
    if problem is not None:
        status = Status.AUTHORIZING if problem.kind is CallFault.AUTH else Status.DISCONNECTED
        return replace(
            before, status=status, error=problem.message, authorize_url=problem.authorize_url
        )
    if connection is None or connection.over:
        return replace(plain, status=Status.DISCONNECTED)
    listing, session = connection.listing, connection.session
    info = session.server_info
    return replace(
        plain,
        status=Status.CONNECTED,
        tools=listing.tools,
        notes=tuple(listing.notes),
        title=clean(info.title or info.name, 80) if info else "",
        version=clean(info.version, 40) if info else "",
        instructions=(session.instructions or "")[:MAX_INSTRUCTIONS],
        protocol=session.protocol_version or "",
    )


def _authorizer(config: McpServer, browser: "Browser | None") -> "Authorizer | None":
    if not config.url or not config.oauth:
        return None
    from edge.mcp.client import oauth  # noqa: PLC0415 - only for servers that may ask for it

    return oauth.Authorizer(config, browser) if oauth.supports(config) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
