"""One MCP server as a child process, with a clean environment, a process group and bounded pipes.
All that it starts ends with it; it ends with this process, even if that is killed.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edge.mcp.client.line_reader import CHUNK
from edge.mcp.client.models import PASSED_ON, McpServer
from firmware_bridge.deadlines import timeout

GRACE_S: Final = 2.0
"""Time to end after its stdin closed, and again after SIGTERM."""
MAX_LINE: Final = 400
LINES: Final = 200
"""Lines of stderr a second; more are dropped."""
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)


class Process:
    """Started by `start`; `stdin` is a non-blocking descriptor, `stdout` a reader."""

    def __init__(
        self, child: asyncio.subprocess.Process, stdin: int, stdout: "Pipe", stderr: "Pipe"
    ) -> None:
        self._child = child
        self._stderr = stderr
        self._stdout = stdout
        self.stdin = stdin
        self.stdout = stdout.reader

    @classmethod
    async def start(cls, server: McpServer) -> "Process":
        """Raises OSError if there is no such program or folder."""
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        ours_err, theirs_err = os.pipe()
        # proxies may contain a password: a server that needs one gets it in `env`
        passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            with warnings.catch_warnings():
                # Python warns of forks beside threads; between fork and exec this one makes one
                # system call and takes no lock.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = await asyncio.create_subprocess_exec(
                    server.command,
                    *server.args,
                    stdin=theirs_in,
                    stdout=theirs_out,
                    stderr=theirs_err,
                    start_new_session=True,
                    env=passed_on | dict(server.env),
                    cwd=server.cwd or None,
                    preexec_fn=_die_with_parent,
                )
        except BaseException:
            for end in (ours_in, ours_out, ours_err):
                os.close(end)
            raise
        finally:
            for end in (theirs_in, theirs_out, theirs_err):
                os.close(end)
        os.set_blocking(ours_in, False)
        return cls(child, ours_in, await Pipe.open(ours_out), await Pipe.open(ours_err))

    async def read_stderr(self, log_line: Callable[[str], None]) -> None:
        """Pass on its stderr line by line, bounded in length and number."""
        loop, rest, budget, second = asyncio.get_running_loop(), b"", LINES, 0.0
        while chunk := await self._stderr.reader.read(CHUNK):
            if loop.time() - second >= 1:
                budget, second = LINES, loop.time()
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                whole, rest = [*whole, rest], b""
            for line in whole[:budget]:
                log_line(line[:MAX_LINE].decode(errors="replace"))
            budget = max(0, budget - len(whole))

    @property
    def ending(self) -> str:
        """How it ended, for people; "" while it runs."""
        code = self._child.returncode
        if code is None:
            return ""
        return f"ended by signal {-code}" if code < 0 else f"ended with {code}"

    async def stop(self) -> None:
        """End it and all that it started: close stdin, SIGTERM, SIGKILL. May be called twice."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1
        try:
            if not await self.wait(GRACE_S):
                self._signal(signal.SIGTERM)
                await self.wait(GRACE_S)
        finally:
            self._signal(signal.SIGKILL)
            self._stdout.transport.close()
            self._stderr.transport.close()
        await self.wait(GRACE_S)

    async def wait(self, within_s: float) -> bool:
        """Return whether it ends within this time."""
        try:
            async with timeout(within_s):
                await self._child.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


@dataclass(frozen=True, slots=True)
class Pipe:
    """The reading end of a pipe; its reader has a bounded buffer."""

    transport: asyncio.BaseTransport
    reader: asyncio.StreamReader

    @classmethod
    async def open(cls, descriptor: int) -> "Pipe":
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=CHUNK)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        return cls(transport, reader)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
