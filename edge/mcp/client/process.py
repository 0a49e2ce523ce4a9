"""One MCP server as a child process: a clean environment, its own process group, pipes we own.
Knows no MCP.

Whatever it forks ends with it, and all of it ends with us: also when we are killed.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import warnings
from collections.abc import Callable
from typing import Final

from edge.mcp.client.line_reader import CHUNK
from edge.mcp.client.models import McpServer
from firmware_bridge.deadlines import timeout

PASSED_ON: Final = (
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
)
"""All of our environment that a server gets; proxies may carry a password, so who needs one
says so in `env`.
"""
GRACE_S: Final = 2.0
"""Time to end after its stdin closed, and again after SIGTERM."""
MAX_LINE: Final = 400
LINES: Final = 200
"""Of stderr, a second; what is more is dropped."""
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
        """Raises OSError when there is no such program or folder."""
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = (
            os.pipe(),
            os.pipe(),
            os.pipe(),
        )
        try:
            with warnings.catch_warnings():
                # Python warns of forks beside threads; between fork and exec ours makes one system
                # call and takes no lock.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = await asyncio.create_subprocess_exec(
                    server.command,
                    *server.args,
                    stdin=theirs_in,
                    stdout=theirs_out,
                    stderr=theirs_err,
                    start_new_session=True,
                    env=environment(server),
                    cwd=server.cwd or None,
                    preexec_fn=_die_with_us,
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

    async def tell_stderr(self, say: Callable[[str], None]) -> None:
        """Hand over what it writes to stderr, line by line, bounded in length and in number."""
        loop, rest, budget, second = asyncio.get_running_loop(), b"", LINES, 0.0
        while chunk := await self._stderr.reader.read(CHUNK):
            if loop.time() - second >= 1:
                budget, second = LINES, loop.time()
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                whole, rest = [*whole, rest], b""
            for line in whole[:budget]:
                say(line[:MAX_LINE].decode(errors="replace"))
            budget = max(0, budget - len(whole))

    @property
    def ending(self) -> str:
        """How it ended, for a person; "" while it runs."""
        code = self._child.returncode
        if code is None:
            return ""
        return f"ended by signal {-code}" if code < 0 else f"ended with {code}"

    async def stop(self) -> None:
        """End it and all it forked: stdin closed, SIGTERM, SIGKILL, each with its grace.
        Callable twice.
        """
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1
        try:
            if not await self.ended(GRACE_S):
                self._signal(signal.SIGTERM)
                await self.ended(GRACE_S)
        finally:
            self._signal(signal.SIGKILL)
            self._stdout.close()
            self._stderr.close()
        await self.ended(GRACE_S)

    async def ended(self, within_s: float) -> bool:
        """Say whether it ended within this time."""
        try:
            async with timeout(within_s):
                await self._child.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


class Pipe:
    """The reading end of a pipe, with a reader that holds back who writes too much."""

    def __init__(self, transport: asyncio.BaseTransport, reader: asyncio.StreamReader) -> None:
        self._transport = transport
        self.reader = reader

    @classmethod
    async def open(cls, descriptor: int) -> "Pipe":
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=CHUNK)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        return cls(transport, reader)

    def close(self) -> None:
        self._transport.close()


def environment(server: McpServer) -> dict[str, str]:
    """What a server finds in its environment: the machine's plain words and its own settings."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict(server.env)


def _die_with_us() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
