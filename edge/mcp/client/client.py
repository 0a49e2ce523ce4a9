"""The daemon's handle to its MCP servers: keeps the child that holds them, gives it calls, tells
what comes of them.

Refuses to know MCP, and to load its SDK: that costs 67 MiB, which the child pays while a server is
in use and gives back when all rest. A call never raises for a server's or the child's fault: every
fault is an `Outcome`.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

from edge.core.backoff import Backoff, Chance
from edge.mcp.client import frames
from edge.mcp.client.models import (
    NOTHING,
    CallFault,
    Json,
    McpServer,
    OnProgress,
    Outcome,
    ServerNews,
    Status,
    fault,
)
from edge.runtime.first_completed import race
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout

GRACE_S: Final = 5.0
"""The child answers within a call's time; one that has not after this much more is stuck, and
is ended.
"""
END_S: Final = 6.0
"""Closing its servers takes the child at most 2 + 2 s (their own grace, then SIGTERM)."""
MAX_LINE: Final = 400
INHERITED: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "PYTHONPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
)
"""All that the child gets of the daemon's environment; servers get less
(`edge/mcp/client/stdio.py`).
"""

log = logging.getLogger(__name__)


class _Flight:
    """One call under way. `answer` gives its outcome, or None when the child died; `go` wakes
    it when there is a child.
    """

    __slots__ = ("announced", "answer", "go", "handed", "on_progress")

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.on_progress = on_progress
        self.go = asyncio.Event()
        self.announced = False
        self.renew()

    def renew(self) -> None:
        """Get ready to be handed to a (new) child."""
        self.handed = False
        self.answer: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()

    def settle(self, outcome: Outcome | None) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)
        self.go.set()


class UpstreamClient:
    """One per daemon: `run` is its service. `environment` is the daemon's own, of which the
    child gets `INHERITED`.
    """

    def __init__(
        self,
        *,
        chance: Chance,
        now: Callable[[], float],
        environment: Mapping[str, str] = NOTHING,
        command: Sequence[str] = (sys.executable, "-P", "-m", "edge.mcp.client"),
        end_s: float = END_S,
    ) -> None:
        self._now = now
        self._end_s = end_s
        self._command = tuple(command)
        self._environment = {name: environment[name] for name in INHERITED if name in environment}
        self._backoff = Backoff(chance, most_s=30.0)
        self._servers: dict[str, McpServer] = {}
        self._news: dict[str, ServerNews] = {}
        self._fresh: dict[str, ServerNews] = {}
        self._told = asyncio.Event()
        self._needed = asyncio.Event()
        self._pipe: asyncio.StreamWriter | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._flights: dict[str, _Flight] = {}
        self._in_progress: Counter[str] = Counter()
        self._trouble = False
        self._last = ""
        """Line that the child wrote to stderr."""
        self._stale: set[str] = set()
        """To be listed again, as soon as there is a child to do it."""
        self._heard = False
        """Whether all was heard that the child said, up to its end."""
        self._idle = False
        """The child said that its servers rest."""
        self._rests = asyncio.Event()
        """This child ends because nobody needs it."""

    # -------------------------------------------------------------- what the daemon asks

    async def run(self) -> None:
        """Keep the child while it is needed, until cancelled."""
        while True:
            await self._needed.wait()
            began = self._now()
            if await self._life():
                continue
            pause = self._backoff.after(self._now() - began)
            level = logging.DEBUG if self._trouble else logging.WARNING
            log.log(
                level,
                "upstream: the child ended (%s); another in %.1f s",
                self._last or "nothing said",
                pause,
            )
            self._trouble = True
            await asyncio.sleep(pause)

    async def configure(self, servers: Iterable[McpServer]) -> None:
        """These are the servers from now on; one that did not change keeps its connection."""
        new = {server.id: server for server in servers}
        for gone in [key for key, old in self._servers.items() if new.get(key) != old]:
            self._news.pop(gone, None)
            self._fresh.pop(gone, None)
            self._stale.discard(gone)
        self._servers = new
        if new and (absent := _absent()):
            for name in new:
                self._publish(ServerNews(server=name, status=Status.DISCONNECTED, error=absent))
            return
        if new:
            self._needed.set()
        await self._send(self._configuration())

    async def call(
        self,
        server_id: str,
        tool: str,
        args: Mapping[str, Json],
        *,
        call_id: str,
        timeout_s: float,
        idempotent: bool = False,
        input: Mapping[str, Json] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Outcome:
        """Call a tool by its server's id and the name it has there. Never raises, but for its own
        cancellation, which cancels the call at the server. `idempotent`: it may be sent again when
        nobody knows whether it was done.
        """
        if server_id not in self._servers:
            return fault(CallFault.UNSENT, f"no MCP server {clean(server_id, 60)} is configured")
        if absent := _absent():
            return fault(CallFault.UNSENT, absent)
        if call_id in self._flights:
            return fault(CallFault.UNSENT, "a call of this id is already under way")
        flight = self._flights[call_id] = _Flight(on_progress)
        self._in_progress[server_id] += 1
        request = {
            "do": "call",
            "id": call_id,
            "server": server_id,
            "tool": tool,
            "args": dict(args),
            "idempotent": idempotent,
            "input": None if input is None else dict(input),
            "progress": on_progress is not None,
        }
        try:
            async with timeout(timeout_s + GRACE_S):
                return await self._tried(flight, request, self._now() + timeout_s)
        except TimeoutError:
            return self._too_late(flight)
        except asyncio.CancelledError:
            self._say({"do": "cancel", "id": call_id})
            raise
        except frames.BadFrame as e:
            return fault(CallFault.UNSENT, f"the arguments cannot be sent: {e}")
        finally:
            del self._flights[call_id]
            self._in_progress[server_id] -= 1
            self._rest()

    async def cancel(self, call_id: str) -> None:
        """End a call: it gives an `Outcome` of its own soon (cancelled, or its result if that
        was quicker).
        """
        flight = self._flights.get(call_id)
        if flight is None:
            return
        if flight.handed:
            self._say({"do": "cancel", "id": call_id})
        else:
            flight.settle(fault(CallFault.CANCELLED, "cancelled before it was sent"))

    async def refresh(self, server_id: str) -> None:
        """Connect if need be and list the tools again; what comes of it is news."""
        if server_id in self._servers and not _absent():
            self._stale.add(server_id)
            self._needed.set()
            await self._send({"do": "refresh", "server": server_id})

    async def authorize(
        self, server_id: str, code: str, state: str, *, iss: str | None = None
    ) -> None:
        """Hand over what the browser was sent back with (S1-48); whether it was good is news."""
        await self._send(
            {"do": "authorize", "server": server_id, "code": code, "state": state, "iss": iss}
        )

    async def events(self) -> AsyncIterator[ServerNews]:
        """News as they come, of each server the latest; for one listener. Ends never."""
        while True:
            while self._fresh:
                yield self._fresh.pop(next(iter(self._fresh)))
            self._told.clear()
            await self._told.wait()

    def news(self) -> Mapping[str, ServerNews]:
        """The latest of each configured server that was heard of (S1-35)."""
        return dict(self._news)

    def in_progress(self, server_id: str) -> int:
        """How many calls are under way there (S1-28)."""
        return self._in_progress[server_id]

    # -------------------------------------------------------------- one call

    async def _tried(self, flight: _Flight, request: Mapping[str, Any], ends_at: float) -> Outcome:
        """Hand it to the child; once more when that died and the call was provably unsent or
        may be repeated.
        """
        for attempt in (1, 2):
            outcome = await self._once(flight, {**request, "attempt": attempt}, ends_at)
            if outcome is not None:
                return replace(outcome, attempts=max(outcome.attempts, attempt))
            if flight.announced and not request["idempotent"]:
                return fault(
                    CallFault.LOST,
                    "the process that holds the MCP connections died during "
                    "the call; it may have been done",
                )
            flight.renew()
        kind = CallFault.LOST if flight.announced else CallFault.UNSENT
        return fault(
            kind,
            "the process that holds the MCP connections died twice during the call",
            attempts=2,
        )

    async def _once(
        self, flight: _Flight, request: Mapping[str, Any], ends_at: float
    ) -> Outcome | None:
        self._needed.set()
        while self._pipe is None and not flight.answer.done():
            flight.go.clear()
            await flight.go.wait()
        if not flight.answer.done():
            frame = frames.pack({**request, "timeout_s": max(0.0, ends_at - self._now())})
            flight.handed, self._idle = True, False
            self._write(frame)
        return await flight.answer

    def _too_late(self, flight: _Flight) -> Outcome:
        """The child keeps deadlines: one that let this pass is stuck."""
        if flight.handed and self._child is not None:
            log.warning("upstream: the child answers no more; it is ended")
            _kill(self._child)
        if flight.announced:
            return fault(CallFault.TIMEOUT, "no answer in time; it may have been done")
        return fault(CallFault.UNSENT, "no MCP connection in time")

    # -------------------------------------------------------------- the child's life

    async def _life(self) -> bool:
        """One child from start to end; says whether it ended because nobody needs it."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                start_new_session=True,  # a terminal's Ctrl-C is for us to pass on
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as e:
            log.warning("upstream: no child can be started: %s", e)
            return False
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child, self._pipe, self._idle, self._heard = child, child.stdin, False, False
        self._rests.clear()
        try:
            self._say(self._configuration())
            self._wake()
            await race(self._listen(child.stdout), self._log(child.stderr), _when(self._rests))
        except frames.BadFrame as e:
            log.warning("upstream: the child does not keep the form: %s", e)
            _kill(child)
        finally:
            self._child = self._pipe = None
            try:
                await _ended(child, self._end_s)
            finally:
                self._lost(rests=self._rests.is_set())
        return self._rests.is_set()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while (frame := await frames.read(stream)) is not None:
            try:
                if frame["say"] == "idle":
                    self._idle = True
                    self._rest()
                else:
                    self._hear(frame["say"], frame)
            except (KeyError, TypeError, ValueError) as e:
                raise frames.BadFrame(f"{type(e).__name__}: {e}") from None
        self._heard = True

    async def _log(self, stream: asyncio.StreamReader) -> None:
        """What the child and its servers write to stderr, for who debugs: bounded lines,
        cleaned.
        """
        rest = b""
        while chunk := await stream.read(4096):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                lines, rest = [*lines, rest], b""
            for line in filter(None, map(bytes.strip, lines)):
                self._last = clean(line.decode(errors="replace"), MAX_LINE)
                log.debug("%s", self._last)
        await asyncio.Event().wait()  # stdout says when it is over

    def _rest(self) -> None:
        """All servers rest: unless somebody is just calling, the child may go."""
        told = self._news.keys() == self._servers.keys() and all(
            n.status is Status.DISCONNECTED for n in self._news.values()
        )
        if self._idle and told and not self._flights and not self._stale:
            log.debug("upstream: all rest; the child ends")
            self._needed.clear()
            self._rests.set()
            # a call that comes from now on is the next child's: this one may do what nobody hears
            # of
            self._pipe = None

    def _hear(self, said: str, frame: frames.Frame) -> None:
        if said == "news":
            self._publish(frames.news_of(frame["news"]))
            return
        flight = self._flights.get(frame["id"])
        if flight is None:
            return
        if said == "sending":
            flight.announced = True
        elif said == "outcome":
            flight.settle(frames.outcome_of(frame["outcome"]))
        elif said == "progress" and flight.on_progress is not None:
            flight.on_progress(frames.progress_of(frame["progress"]))

    def _publish(self, news: ServerNews) -> None:
        if news.server not in self._servers:
            return  # of a server that was just taken out
        if news.status is Status.CONNECTED and self._trouble:
            self._trouble = False
            log.info("upstream: the child is back")
        if news.status is not Status.DISCONNECTED or news.error:
            self._stale.discard(news.server)
        self._news[news.server] = self._fresh[news.server] = news
        self._told.set()

    def _lost(self, *, rests: bool) -> None:
        """The child is gone: calls hear of it, and servers are disconnected with it."""
        self._idle = False
        for flight in list(self._flights.values()):
            if flight.handed:
                flight.announced |= (
                    not self._heard
                )  # what it said last was not read: it may have said that it sends
                flight.settle(None)
        error = "" if rests else "the process that holds the connections ended; it is started again"
        for news in list(self._news.values()):
            if not rests or news.status is not Status.DISCONNECTED:
                self._publish(
                    replace(news, status=Status.DISCONNECTED, error=error, authorize_url="")
                )

    def _configuration(self) -> dict[str, Any]:
        """Servers whose tools are known are connected by their first call, the others at once."""
        known = {key for key, news in self._news.items() if news.tools is not None}
        rest = known - self._stale
        return {
            "do": "configure",
            "servers": [
                {"config": frames.server_to(s), "start": s.id not in rest}
                for s in self._servers.values()
            ],
            "tools": {key: frames.news_to(self._news[key])["tools"] for key in known},
        }

    def _wake(self) -> None:
        for flight in self._flights.values():
            flight.go.set()

    def _say(self, frame: Mapping[str, Any]) -> None:
        """Write without waiting; nothing happens where there is no child."""
        self._write(frames.pack(frame))

    def _write(self, frame: bytes) -> None:
        if self._pipe is not None and not self._pipe.is_closing():
            with suppress(
                RuntimeError
            ):  # uvloop's word for a pipe whose reader died just now: its calls will hear of it
                self._pipe.write(frame)

    async def _send(self, frame: Mapping[str, Any]) -> None:
        self._say(frame)
        pipe = self._pipe
        if pipe is not None:
            try:
                async with timeout(GRACE_S):
                    await pipe.drain()
            except (TimeoutError, ConnectionError):
                log.debug("upstream: the child does not read")


def _absent() -> str:
    """Why there can be no child; "" when there can."""
    return (
        ""
        if find_spec("mcp") is not None
        else "the MCP SDK is missing on this machine: install glassd[mcp]"
    )


async def _when(event: asyncio.Event) -> None:
    await event.wait()


async def _ended(child: asyncio.subprocess.Process, end_s: float) -> None:
    """See it end: by itself when its pipe closes, else by force. Takes at most `end_s`, also
    when we are cancelled.
    """
    try:
        if child.stdin is not None:
            child.stdin.close()
        async with timeout(end_s):
            await _emptied(child)
    except TimeoutError:
        log.warning("upstream: the child did not end within %g s", end_s)
    finally:
        if child.returncode is None:
            _kill(child)
            await _emptied(child)


async def _emptied(child: asyncio.subprocess.Process) -> None:
    """Wait for its end, reading on: with a full pipe it would not come to it, nor would we hear
    of it.
    """
    assert child.stdout is not None
    assert child.stderr is not None
    for stream in (child.stdout, child.stderr):
        while await stream.read(65536):
            continue
    await child.wait()


def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        child.kill()
