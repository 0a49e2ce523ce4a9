"""The daemon's handle to its MCP servers: runs the child process that holds them, sends it calls,
and yields their news.

It does not load MCP's SDK: that takes 67 MiB, which the child needs while a server is in use and
gives back when all are idle. A call never raises for a server's or the child's fault: every fault
is an `Outcome`.
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
    PASSED_ON,
    CallFault,
    Json,
    McpServer,
    OnProgress,
    Outcome,
    ServerNews,
    ServerProgress,
    Status,
    fault,
)
from edge.runtime.first_completed import race
from edge.runtime.logs import clean
from firmware_bridge.deadlines import timeout

GRACE_S: Final = 5.0
"""The child answers within a call's time; one that has not after this much more is stuck, and is
killed.
"""
END_S: Final = 6.0
"""Closing its servers takes the child at most 2 + 2 s (their own grace, then SIGTERM)."""
MAX_LINE: Final = 400
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
INHERITED: Final = PASSED_ON.union(
    ("PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"), _PROXIES, map(str.upper, _PROXIES)
)
"""All that the child gets of the daemon's environment; servers get `PASSED_ON` only."""

log = logging.getLogger(__name__)


class _PendingCall:
    """`answer` becomes its outcome, or None if the child died; `go` wakes it when there is a
    child.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.on_progress = on_progress
        self.go = asyncio.Event()
        self.announced = False
        """Whether the child reported that it sends the call, so it may be done."""
        self.reset()

    def reset(self) -> None:
        """Prepare for a (new) child."""
        self.written = False
        self.answer: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()

    def settle(self, outcome: Outcome | None) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)
        self.go.set()


class UpstreamClient:
    """One per daemon; `run` is its service. The child gets `INHERITED` of `environment`."""

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
        self._has_news = asyncio.Event()
        self._needed = asyncio.Event()
        self._pipe: asyncio.StreamWriter | None = None
        self._absent = ""
        """Why there can be no child; "" if there can, as found when servers were configured."""
        self._child: asyncio.subprocess.Process | None = None
        self._calls: dict[str, _PendingCall] = {}
        self._in_progress: Counter[str] = Counter()
        self._trouble = False
        self._last_line = ""
        """The last line that the child wrote to stderr."""
        self._stale: set[str] = set()
        """Servers to list again as soon as there is a child."""
        self._read_all = False
        """Whether everything was read that the child wrote, up to its end."""
        self._idle = False
        """Whether the child reported that its servers are idle."""
        self._unneeded = asyncio.Event()
        """Set when this child ends because nothing needs it."""

    # -------------------------------------------------------------- for the daemon

    async def run(self) -> None:
        """Run the child while it is needed, until cancelled."""
        while True:
            await self._needed.wait()
            began = self._now()
            if await self._run_child():
                continue
            pause = self._backoff.after(self._now() - began)
            level, why = logging.DEBUG if self._trouble else logging.WARNING, self._last_line
            log.log(level, "MCP: the child ended (%s); next in %.1f s", why or "no output", pause)
            self._trouble = True
            await asyncio.sleep(pause)

    async def configure(self, servers: Iterable[McpServer]) -> None:
        """Use these servers from now on; one that did not change keeps its connection."""
        new = {server.id: server for server in servers}
        for gone in [key for key, old in self._servers.items() if new.get(key) != old]:
            self._news.pop(gone, None)
            self._fresh.pop(gone, None)
            self._stale.discard(gone)
        self._servers = new
        self._absent = _absent() if new else ""
        if self._absent:
            for name in new:
                self._publish(
                    ServerNews(server=name, status=Status.DISCONNECTED, error=self._absent)
                )
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
        """Call a tool by its server's id and the name it has there. Raises nothing but
        cancellation, which cancels the call at the server. `idempotent`: it may be sent again when
        it is unknown whether it was done.
        """
        if server_id not in self._servers:
            return fault(CallFault.UNSENT, f"no MCP server {clean(server_id, 60)} is configured")
        if self._absent:
            return fault(CallFault.UNSENT, self._absent)
        if call_id in self._calls:
            return fault(CallFault.UNSENT, "a call of this id is already under way")
        pending = self._calls[call_id] = _PendingCall(on_progress)
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
                return await self._try(pending, request, self._now() + timeout_s)
        except TimeoutError:
            return self._end_late(pending)
        except asyncio.CancelledError:
            self._write({"do": "cancel", "id": call_id})
            raise
        except frames.BadFrame as e:
            return fault(CallFault.UNSENT, f"the arguments cannot be sent: {e}")
        finally:
            del self._calls[call_id]
            self._in_progress[server_id] -= 1
            self._release_if_idle()

    async def cancel(self, call_id: str) -> None:
        """Cancel a call, which then soon returns an `Outcome` (its result, if that was quicker)."""
        pending = self._calls.get(call_id)
        if pending is None:
            return
        if pending.written:
            self._write({"do": "cancel", "id": call_id})
        else:
            pending.settle(fault(CallFault.CANCELLED, "cancelled before it was sent"))

    async def refresh(self, server_id: str) -> None:
        """List the tools again, connecting if needed; the outcome is news."""
        if server_id in self._servers and not self._absent:
            self._stale.add(server_id)
            self._needed.set()
            await self._send({"do": "refresh", "server": server_id})

    async def authorize(
        self, server_id: str, code: str, state: str, *, iss: str | None = None
    ) -> None:
        """Pass on what the browser came back with; whether it is accepted is news."""
        await self._send(
            {"do": "authorize", "server": server_id, "code": code, "state": state, "iss": iss}
        )

    async def events(self) -> AsyncIterator[ServerNews]:
        """Yield the latest news of each server as they change, without end; for one listener."""
        while True:
            while self._fresh:
                yield self._fresh.pop(next(iter(self._fresh)))
            self._has_news.clear()
            await self._has_news.wait()

    def news(self) -> Mapping[str, ServerNews]:
        """Return the latest news of each configured server that had any."""
        return dict(self._news)

    def in_progress(self, server_id: str) -> int:
        """Return how many calls of this server are under way."""
        return self._in_progress[server_id]

    # -------------------------------------------------------------- one call

    async def _try(
        self, pending: _PendingCall, request: Mapping[str, Any], ends_at: float
    ) -> Outcome:
        """Send it to the child; again if that died and the call was not sent or is idempotent."""
        lost = "the process that holds the MCP connections died"
        for attempt in (1, 2):
            outcome = await self._send_call(pending, {**request, "attempt": attempt}, ends_at)
            if outcome is not None:
                return replace(outcome, attempts=max(outcome.attempts, attempt))
            if pending.announced and not request["idempotent"]:
                return fault(CallFault.LOST, f"{lost} during the call; it may have been done")
            pending.reset()
        kind = CallFault.LOST if pending.announced else CallFault.UNSENT
        return fault(kind, f"{lost} twice during the call", attempts=2)

    async def _send_call(
        self, pending: _PendingCall, request: Mapping[str, Any], ends_at: float
    ) -> Outcome | None:
        self._needed.set()
        while self._pipe is None and not pending.answer.done():
            pending.go.clear()
            await pending.go.wait()
        if not pending.answer.done():
            self._write({**request, "timeout_s": max(0.0, ends_at - self._now())})
            pending.written, self._idle = True, False
        return await pending.answer

    def _end_late(self, pending: _PendingCall) -> Outcome:
        """The child keeps deadlines: one that missed this one is stuck."""
        if pending.written and self._child is not None:
            log.warning("MCP: the child does not answer and is killed")
            _kill(self._child)
        if pending.announced:
            return fault(CallFault.TIMEOUT, "no answer in time; it may have been done")
        return fault(CallFault.UNSENT, "no MCP connection in time")

    # -------------------------------------------------------------- the child process

    async def _run_child(self) -> bool:
        """Run one child from start to end; return whether it ended because nothing needs it."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                start_new_session=True,  # a terminal's Ctrl-C goes to the daemon only
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as e:
            log.warning("MCP: the child cannot be started: %s", e)
            return False
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child, self._pipe, self._idle, self._read_all = child, child.stdin, False, False
        self._unneeded.clear()
        try:
            self._write(self._configuration())
            for pending in self._calls.values():
                pending.go.set()
            await race(self._listen(child.stdout), self._log(child.stderr), _wait(self._unneeded))
        except frames.BadFrame as e:
            log.warning("MCP: the child sent a bad frame: %s", e)
            _kill(child)
        finally:
            self._child = self._pipe = None
            try:
                await _end(child, self._end_s)
            finally:
                self._settle_lost(unneeded=self._unneeded.is_set())
        return self._unneeded.is_set()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while (frame := await frames.read(stream)) is not None:
            try:
                self._handle(frame)
            except (KeyError, TypeError, ValueError) as e:
                raise frames.BadFrame(f"{type(e).__name__}: {e}") from None
        self._read_all = True

    async def _log(self, stream: asyncio.StreamReader) -> None:
        """Log what the child and its servers write to stderr, in bounded and clean lines."""
        rest = b""
        while chunk := await stream.read(4096):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                lines, rest = [*lines, rest], b""
            for line in filter(None, map(bytes.strip, lines)):
                self._last_line = clean(line.decode(errors="replace"), MAX_LINE)
                log.debug("%s", self._last_line)
        await asyncio.Event().wait()  # the end of stdout is the end

    def _release_if_idle(self) -> None:
        """Let the child end if all servers are idle and no call is under way."""
        disconnected = self._news.keys() == self._servers.keys() and all(
            n.status is Status.DISCONNECTED for n in self._news.values()
        )
        if self._idle and disconnected and not self._calls and not self._stale:
            log.debug("MCP: all servers are idle; the child ends")
            self._needed.clear()
            self._unneeded.set()
            self._pipe = None  # later calls are for the next child: nothing reads this one's answer

    def _handle(self, frame: frames.Frame) -> None:
        what = frame["say"]
        if what == "idle":
            self._idle = True
            self._release_if_idle()
        elif what == "news":
            self._publish(frames.news_of(frame["news"]))
        elif (pending := self._calls.get(frame["id"])) is None:
            return
        elif what == "sending":
            pending.announced = True
        elif what == "outcome":
            pending.settle(frames.outcome_of(frame["outcome"]))
        elif what == "progress" and pending.on_progress is not None:
            pending.on_progress(ServerProgress(**frame["progress"]))

    def _publish(self, news: ServerNews) -> None:
        if news.server not in self._servers:
            return  # it was just removed
        if news.status is Status.CONNECTED and self._trouble:
            self._trouble = False
            log.info("MCP: the child is back")
        if news.status is not Status.DISCONNECTED or news.error:
            self._stale.discard(news.server)
        self._news[news.server] = self._fresh[news.server] = news
        self._has_news.set()

    def _settle_lost(self, *, unneeded: bool) -> None:
        """The child is gone: end its calls, and mark its servers disconnected."""
        self._idle = False
        for pending in list(self._calls.values()):
            if pending.written:
                # its last frames were not read: one may have announced this call
                pending.announced |= not self._read_all
                pending.settle(None)
        error = "the process that holds the connections ended; it is started again"
        error = "" if unneeded else error
        for news in list(self._news.values()):
            if not unneeded or news.status is not Status.DISCONNECTED:
                self._publish(
                    replace(news, status=Status.DISCONNECTED, error=error, authorize_url="")
                )

    def _configuration(self) -> dict[str, Any]:
        """Servers whose tools are known are connected by their first call, the others at once."""
        known = {key for key, news in self._news.items() if news.tools is not None}
        wait = known - self._stale
        return {
            "do": "configure",
            "servers": [
                {"config": frames.plain(server), "start": id_ not in wait}
                for id_, server in self._servers.items()
            ],
            "tools": {key: frames.plain(self._news[key].tools) for key in known},
        }

    def _write(self, frame: Mapping[str, Any]) -> None:
        """Write without waiting, if there is a child. Raises `BadFrame`."""
        data = frames.pack(frame)
        if self._pipe is not None and not self._pipe.is_closing():
            # uvloop raises it for a pipe whose reader has just died: its calls are settled then
            with suppress(RuntimeError):
                self._pipe.write(data)

    async def _send(self, frame: Mapping[str, Any]) -> None:
        self._write(frame)
        pipe = self._pipe
        if pipe is not None:
            try:
                async with timeout(GRACE_S):
                    await pipe.drain()
            except (TimeoutError, ConnectionError):
                log.debug("MCP: the child does not read")


def _absent() -> str:
    """Return why there can be no child; "" if there can."""
    missing = find_spec("mcp") is None
    return "the MCP SDK is missing on this machine: install glassd[mcp]" if missing else ""


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _end(child: asyncio.subprocess.Process, end_s: float) -> None:
    """Close its pipe and wait for its end; kill it after `end_s`, or when cancelled."""
    try:
        if child.stdin is not None:
            child.stdin.close()
        async with timeout(end_s):
            await _drain(child)
    except TimeoutError:
        log.warning("MCP: the child did not end within %g s", end_s)
    finally:
        if child.returncode is None:
            _kill(child)
            await _drain(child)


async def _drain(child: asyncio.subprocess.Process) -> None:
    """Wait for its end, reading on: a full pipe would keep it from ending."""
    assert child.stdout is not None
    assert child.stderr is not None
    for stream in (child.stdout, child.stderr):
        while await stream.read(65536):
            continue
    await child.wait()


def _kill(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        child.kill()
