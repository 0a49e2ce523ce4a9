"""A child process that answers requests: started at first need, replaced when it is stuck.

For libraries that hold the GIL, or that should not stay in the daemon's memory. The child reads
and writes frames (u32 length, big endian, then the bytes) and ends by itself when it is idle.
"""

import asyncio
import contextlib
import errno
import logging
import struct
from collections.abc import Sequence
from typing import Final

from firmware_bridge.deadlines import timeout

_log: Final = logging.getLogger(__name__)
START_S: Final = 20.0
"""For the first answer of a child: it loads its libraries first, on a busy machine slowly."""


class ResidentWorker:
    """One child at most, one request at a time. `ask` may be called again after any failure."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        deadline_s: float,
        start_s: float = START_S,
        max_answer: int,
    ) -> None:
        self._name = name
        self._command = tuple(command)
        self._deadline_s = deadline_s
        self._start_s = start_s
        self._max_answer = max_answer
        self._child: asyncio.subprocess.Process | None = None
        self._has_answered = False
        self._dying: list[asyncio.subprocess.Process] = []
        self._turn = asyncio.Lock()
        self._closes = 0
        """How often it was closed: a request from before a close starts no child after it."""

    async def ask(self, request: bytes) -> bytes:
        """Exchange a request for an answer; a child that ended meanwhile is replaced once.

        Raises TimeoutError (the child was stuck and is killed), EOFError (it ended without an
        answer, or was closed meanwhile), other OSErrors (it cannot be started, or its answer is
        too long).
        """
        closes = self._closes
        async with self._turn:
            try:
                return await self._exchange(request, closes)
            except (EOFError, ConnectionError):
                _log.debug("%s: the child was gone; starting another", self._name)
            try:
                return await self._exchange(request, closes)
            except ConnectionError as e:
                raise EOFError(f"{self._name}: the child ended") from e

    async def close(self) -> None:
        """End the child and what is asked of it; fine when there is none."""
        self._closes += 1
        self._drop()
        async with self._turn:  # what was asked before has ended now
            dying, self._dying = self._dying, []
            for child in dying:
                await child.wait()

    async def _exchange(self, request: bytes, closes: int) -> bytes:
        limit_s = self._deadline_s if self._has_answered and self._is_alive() else self._start_s
        try:
            async with timeout(limit_s):
                self._check_open(closes)
                child = await self._alive()
                self._check_open(closes)
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdin.write(struct.pack(">I", len(request)) + request)
                await child.stdin.drain()
                (size,) = struct.unpack(">I", await child.stdout.readexactly(4))
                self._check_size(size)
                answer = await child.stdout.readexactly(size)
        except TimeoutError:
            self._drop()
            _log.warning("%s: stuck for %.1f s; killed", self._name, limit_s)
            raise
        except BaseException:
            # half an answer may still be in the pipe: this child cannot be used again
            self._drop()
            raise
        self._has_answered = True
        return answer

    def _check_open(self, closes: int) -> None:
        if closes != self._closes:
            raise EOFError(f"{self._name}: closed meanwhile")

    def _check_size(self, size: int) -> None:
        if size > self._max_answer:
            raise OSError(errno.EMSGSIZE, f"{self._name}: an answer of {size} bytes")

    def _is_alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    async def _alive(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._has_answered = False
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            _log.debug("%s: child %d started", self._name, self._child.pid)
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        self._dying = [c for c in self._dying if c.returncode is None] + [child]
