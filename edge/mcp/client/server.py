"""One MCP server: connected when it is needed, closed when nobody used it for a while, asked with
deadlines.

Usable alone: `async with serving(config) as server: outcome = await server.call(…)`. Refuses to
know other servers and the daemon. Calls never raise for a server's fault.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcp.client.session import ElicitationFnT

from edge.core.backoff import Backoff, Chance
from edge.mcp.client.call import Ask, ask
from edge.mcp.client.connection import MAX_TTL_S, MIN_TTL_S, ConnectionProblem, ServerConnection
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
)
from edge.mcp.client.request_trace import RequestTrace
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout, timeout_at

MAX_CALLS: Final = 32
"""At once, at one server: each may hold an answer of `max_answer_bytes`."""
SILENT: Final = 3
"""Calls in a row that got no answer; then the server gets a new start."""
MAX_INSTRUCTIONS: Final = 4000
RELIST_S: Final = 1.0
"""After a listing, before the next."""
FEW: Final = 8
"""Changes one after the other that are nothing odd; from then on each rest is twice as long as
the last.
"""
MOST_RELIST_S: Final = 60.0
"""Each new list is written to the disk and told to the cloud: a server that plays with its own
does it once a minute.
"""

if TYPE_CHECKING:
    from edge.mcp.client.oauth import Authorizer, Browser

log = logging.getLogger(__name__)
Tell = Callable[[ServerNews], None]
Sending = Callable[[], Awaitable[None]]


@asynccontextmanager
async def serving(config: McpServer, **parts: Any) -> AsyncGenerator["McpServerClient"]:
    """Give a server to call; its connection has ended when this is left. `parts` are those of
    `McpServerClient`.
    """
    failed: Exception | None = None
    async with asyncio.TaskGroup() as group:
        server = McpServerClient(config, group, **parts)
        try:
            yield server
        except Exception as e:  # noqa: BLE001 - raised below, not as a group's
            failed = e
        finally:
            server.close()
    if failed is not None:
        raise failed


class McpServerClient:
    """`tell` hears the news, `chance` spreads attempts to connect, `tools` are what an earlier
    process found. Its tasks live in `group`, and end soon after `close`.
    """

    def __init__(
        self,
        config: McpServer,
        group: asyncio.TaskGroup,
        *,
        tell: Tell = lambda _: None,
        chance: Chance = random.random,
        tools: tuple[UpstreamTool, ...] | None = None,
        elicit: ElicitationFnT | None = None,
        browser: "Browser | None" = None,
    ) -> None:
        self.config = config
        self.in_progress = 0
        self.news = ServerNews(server=config.id, status=Status.DISCONNECTED, tools=tools)
        self._group = group
        self._tell = tell
        self._elicit = elicit
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

    # -------------------------------------------------------------- what it is asked

    def start(self) -> None:
        """Connect now, in the background; and again, later and later, while that fails."""
        if self._current is None and not self._closed:
            self._open()

    def refresh(self) -> None:
        """List the tools again, connecting if need be."""
        self._not_before = 0.0
        if self._current is not None and self._current.open:
            self._current.outdated()
        else:
            self.start()

    def authorize(self, code: str, state: str, iss: str | None = None) -> None:
        """Hand over what a browser came back with; whether it was good is news (S1-48)."""
        if self._authorizer is None or not self._authorizer.complete(code, state, iss):
            log.debug("%s: nothing waits for an authorisation", self.config.id)

    def close(self) -> None:
        """End the connection and everything that waits; the group then runs empty."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        if self._relisting is not None:
            self._relisting.cancel()
        if self._current is not None:
            self._current.close()

    @property
    def resting(self) -> bool:
        """No connection, none under way and none planned."""
        return self._current is None and "retry" not in self._timers and not self.in_progress

    async def connected(self, timeout_s: float) -> ConnectionProblem | None:
        """Connect if need be; says what is in the way."""
        found = await self._connected(_now() + timeout_s)
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
        """Call a tool by the name it has there, arguments as they are (S1-25). `sending` is awaited
        before it may be sent. Cancelling cancels it at the server. `retry`: once more, when it was
        provably unsent or is `idempotent`.
        """
        if self.in_progress >= MAX_CALLS:
            return fault(CallFault.UNSENT, f"{MAX_CALLS} calls are under way at this server")
        self.in_progress += 1
        self._used()
        try:
            ends_at = _now() + timeout_s
            asked = Ask(tool, args, call_id, input, on_progress)
            outcome = await self._once(asked, ends_at, sending)
            if retry and asked.flight.tried and _again(outcome, idempotent=idempotent):
                log.debug("%s: sent once more: %s", self.config.id, outcome.message)
                outcome = replace(
                    await self._once(replace(asked, flight=RequestTrace()), ends_at, sending),
                    attempts=2,
                )
        finally:
            self.in_progress -= 1
            self._used()
        self._count(outcome)
        return outcome

    # -------------------------------------------------------------- one call

    async def _once(self, asked: Ask, ends_at: float, sending: Sending | None) -> Outcome:
        found = await self._connected(ends_at)
        if isinstance(found, ConnectionProblem):
            return fault(found.kind, found.message, authorize_url=found.authorize_url)
        asked.flight.tried = True
        if sending is not None:
            await sending()
        task = self._group.create_task(ask(found, asked))
        try:
            await asyncio.wait({task}, timeout=max(0.0, ends_at - _now()))
        finally:
            if not task.done():
                # which tells the server; not waited for, as one that does not read would hold us up
                task.cancel()
        if task.done() and not task.cancelled():
            outcome = task.result()
            if outcome.fault is CallFault.UNSENT or (
                outcome.fault is CallFault.LOST and self.config.command
            ):
                found.abandon()  # it is dead, even where it does not know yet
            return outcome
        if (problem := found.problem) is not None:
            found.unwanted()
            return fault(problem.kind, problem.message, authorize_url=problem.authorize_url)
        return fault(
            CallFault.TIMEOUT,
            "the server did not answer in time and was told to stop; it may have been done",
        )

    async def _connected(self, ends_at: float) -> ServerConnection | ConnectionProblem:
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

    def _count(self, outcome: Outcome) -> None:
        """A server that lets call after call pass may never answer again: it gets a new start."""
        self._silent = self._silent + 1 if outcome.fault is CallFault.TIMEOUT else 0
        if self._silent >= SILENT and not self.in_progress and self._current is not None:
            log.debug("%s: answers nothing; it gets a new start", self.config.id)
            self._silent = 0
            self._current.close()

    # -------------------------------------------------------------- the connection

    def _open(self) -> ServerConnection:
        self._stop("retry")
        connection = ServerConnection(
            self.config,
            on_change=self._changed,
            legacy=self._legacy,
            elicit=self._elicit,
            authorizer=self._authorizer,
        )
        self._current = connection
        self._group.create_task(self._live(connection))
        self._changed()
        return connection

    async def _live(self, connection: ServerConnection) -> None:
        began = _now()
        await connection.run()
        if connection.session_known:
            self._legacy = connection.legacy  # the era of a server is found once
        if self._current is not connection:
            return
        self._current = None
        if (
            connection.probing
            and connection.lost
            and not connection.too_slow
            and self.config.command
            and not self._legacy
        ):
            self._legacy = True  # it died of a question it did not know
            self._open()
            return
        self._problem = (
            (connection.problem or ConnectionProblem(CallFault.LOST, connection.why))
            if connection.lost
            else None
        )
        self._changed()
        if connection.known and self._problem is not None and self._problem.kind is CallFault.AUTH:
            # It knew us and does no more: the new connection asks for a new address. Some know us
            # for all but one thing, for ever.
            self._later("retry", self._backoff.after(_now() - began), self.start)
        elif self._problem is not None and self._problem.kind is not CallFault.AUTH:
            pause = self._backoff.after(_now() - began)
            self._not_before = _now() + (pause if connection.problem is not None else 0.0)
            self._later("retry", pause, self.start)

    def _changed(self) -> None:
        """Tell how it fares, if that is another than was told."""
        connection = self._current
        if connection is not None and connection.open:
            if connection.stale.is_set():
                self._relist()
            if "idle" not in self._timers:
                self._used()
            if connection.listing.ttl_s and "ttl" not in self._timers:
                self._later(
                    "ttl", min(MAX_TTL_S, max(MIN_TTL_S, connection.listing.ttl_s)), self._outlived
                )
        news = _news(self.news, connection, self._problem)
        if news != self.news:
            self.news = news
            self._tell(news)

    def _used(self) -> None:
        """Begin the idle time anew (S1-29)."""
        self._later("idle", self.config.idle_s, self._idle)

    def _idle(self) -> None:
        if self.in_progress == 0 and self._current is not None and self._current.open:
            log.debug(
                "%s: nobody used it for %g s; disconnected until the next call",
                self.config.id,
                self.config.idle_s,
            )
            self._current.close()

    def _relist(self) -> None:
        if self._relisting is None and not self._closed:
            self._relisting = self._group.create_task(self._relisted())

    async def _relisted(self) -> None:
        """List again, and once more when it changed meanwhile."""
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
                except Exception as e:  # noqa: BLE001 - whatever a server brings the SDK to raise costs its list, not the other servers
                    log.debug("%s: its tools cannot be listed again: %s", self.config.id, e)
                self._changed()
                await asyncio.sleep(self._pause())
        finally:
            self._relisting = None

    def _pause(self) -> float:
        again = _now() - self._rested_at < 2 * MOST_RELIST_S
        self._changes, self._rested_at = self._changes + 1 if again else 0, _now()
        return min(MOST_RELIST_S, RELIST_S * 2.0 ** max(0, min(self._changes - FEW, 10)))

    def _outlived(self) -> None:
        """The list is as old as its server lets it become; a server that rests lists again when
        it is connected.
        """
        if self._current is not None and self._current.open:
            self._current.outdated()

    def _later(self, name: str, after_s: float, then: Callable[[], None]) -> None:
        """One timer of each name; setting it again moves it."""
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


def _again(outcome: Outcome, *, idempotent: bool) -> bool:
    """S1-31: once more when it provably never left, or may be repeated."""
    return outcome.fault is CallFault.UNSENT or (outcome.fault is CallFault.LOST and idempotent)


def _news(
    before: ServerNews, connection: ServerConnection | None, problem: ConnectionProblem | None
) -> ServerNews:
    """What is to be told of a server in this state; the tools of one that is gone stay."""
    if connection is not None and connection.settled.is_set():
        problem = connection.problem
    elif connection is not None:
        return replace(before, status=Status.LOADING, error="", authorize_url="")
    if problem is not None:
        status = Status.AUTHORIZING if problem.kind is CallFault.AUTH else Status.DISCONNECTED
        return replace(
            before, status=status, error=problem.message, authorize_url=problem.authorize_url
        )
    if connection is None or connection.over:
        return replace(before, status=Status.DISCONNECTED, error="", authorize_url="")
    listing, session = connection.listing, connection.session
    info = session.server_info
    return replace(
        before,
        status=Status.CONNECTED,
        error="",
        authorize_url="",
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

    return oauth.Authorizer(config, browser) if oauth.wanted(config) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
