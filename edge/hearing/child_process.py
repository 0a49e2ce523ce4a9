"""The parent's end of the child that recognises words: its pipes, and what waits for it."""

import asyncio
import contextlib
import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

from edge.hearing.child_messages import MAX_FRAME, BadChildMessage, Message, unpack
from firmware_bridge.deadlines import timeout

IN_PIPE_S: Final = 3.0
"""Seconds of sound given to the child that it has not handled; the rest waits here."""
WAITING_S: Final = 15.0
"""Seconds of sound that wait for the child; of more, the oldest is dropped. A child on a small
machine needs 5 s to load its model.
"""
_IN_PIPE: Final = 256
_WAITING: Final = 4096
"""The same in messages: chunks can be empty."""
_END_S: Final = 10.0
"""A killed process is gone at once, unless it waits for a disk."""
_EXIT_S: Final = 1.0
"""A process that ends closes its pipes shortly before."""
_LENGTH: Final = struct.Struct(">I")

_log: Final = logging.getLogger(__name__)


class RecogniserProcess(asyncio.SubprocessProtocol):
    """One process, used once. `receive` gets its messages; `ended` is called when it is gone or
    useless, with the reason.
    """

    def __init__(self, receive: Callable[[Message], None], ended: Callable[[str], None]) -> None:
        self._receive = receive
        self._ended = ended
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._killing: asyncio.TimerHandle | None = None
        self._incoming = bytearray()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._waiting_s = 0.0
        self._in_pipe: deque[float] = deque()
        self._in_pipe_s = 0.0
        self.is_given_up = False
        self.dropped_s = 0.0
        """Seconds of sound that were dropped because too much waited."""
        self.last_message_at = asyncio.get_running_loop().time()
        """Loop time of its last message, or of when it had handled everything."""

    async def start(self, command: Sequence[str]) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.subprocess_exec(
            lambda: self,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        if self.is_given_up:  # before it started
            self.kill()
        self._flush()

    @property
    def pid(self) -> int:
        assert self._transport is not None
        return int(self._transport.get_pid())

    @property
    def is_gone(self) -> bool:
        return self._exited.is_set()

    @property
    def is_behind(self) -> bool:
        """Whether something waits for it."""
        return bool(self._in_pipe or self._waiting)

    def send(self, body: bytes, seconds: float = 0.0) -> None:
        """Send a message; `seconds` of sound may be dropped, other messages never are."""
        if not self.is_behind:
            self.last_message_at = asyncio.get_running_loop().time()
        self._waiting.append((body, seconds))
        self._waiting_s += seconds
        self._flush()
        while self._waiting_s > WAITING_S or len(self._waiting) > _WAITING:
            if not self._drop_oldest():
                break

    def give_up(self) -> None:
        """End it; nothing is received from it any more."""
        self.is_given_up = True
        self.kill()

    def drop_sound(self) -> None:
        """Send no more of what waits here."""
        self._waiting.clear()
        self._waiting_s = 0.0

    def kill(self) -> None:
        """End it; fine when it has ended."""
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()

    async def wait(self) -> None:
        """Wait until a killed child is gone."""
        if self._transport is None:
            return
        try:
            async with timeout(_END_S):
                await self._exited.wait()
        except TimeoutError:
            _log.warning("the recogniser (pid %d) does not end", self.pid)
        self._transport.close()

    # -------------------------------------------------------------- asyncio.SubprocessProtocol

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        del fd
        self._incoming += data
        self.last_message_at = asyncio.get_running_loop().time()
        try:
            while not self.is_given_up and (body := self._next_frame()) is not None:
                self._handle(unpack(body))
        except BadChildMessage as e:
            _log.warning("the recogniser wrote nonsense: %s; killed", e)
            self._fail("the recogniser wrote something that cannot be read")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A child that reads or writes no more is of no use. Most have ended: their exit code is
        known in a moment, unless they are killed before.
        """
        del fd, exc
        if self._killing is None:
            self._killing = asyncio.get_running_loop().call_later(_EXIT_S, self.kill)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, and all it wrote was read."""
        del exc
        assert self._transport is not None
        code = self._transport.get_returncode() or 0
        self._fail(f"the recogniser ended ({f'signal {-code}' if code < 0 else f'code {code}'})")
        if self._killing is not None:
            self._killing.cancel()
        self._transport.close()
        self._exited.set()

    # --------------------------------------------------------------

    def _next_frame(self) -> bytes | None:
        if len(self._incoming) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._incoming)
        if size > MAX_FRAME:
            raise BadChildMessage(f"a message of {size} bytes")
        end = _LENGTH.size + size
        if len(self._incoming) < end:
            return None
        body = bytes(self._incoming[_LENGTH.size : end])
        del self._incoming[:end]
        return body

    def _handle(self, message: Message) -> None:
        if message["do"] != "heard":
            self._receive(message)
            return
        count = message.get("count")
        if not isinstance(count, int) or not 0 < count <= len(self._in_pipe):
            raise BadChildMessage("it heard more than it was sent")
        self._in_pipe_s -= sum(self._in_pipe.popleft() for _ in range(count))
        self._flush()

    def _flush(self) -> None:
        """Write what fits; a message that alone is too long is written when nothing else is in the
        pipe.
        """
        if self._transport is None or self.is_given_up:
            return
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        while self._waiting and len(self._in_pipe) < _IN_PIPE:
            body, seconds = self._waiting[0]
            if self._in_pipe and self._in_pipe_s + seconds > IN_PIPE_S:
                return
            self._waiting.popleft()
            self._waiting_s -= seconds
            self._in_pipe.append(seconds)
            self._in_pipe_s += seconds
            with contextlib.suppress(RuntimeError):  # uvloop's, for a pipe whose reader has died
                pipe.write(_LENGTH.pack(len(body)) + body)

    def _drop_oldest(self) -> bool:
        for at, (_, seconds) in enumerate(self._waiting):
            if seconds:
                del self._waiting[at]
                self._waiting_s -= seconds
                self.dropped_s += seconds
                return True
        return False

    def _fail(self, why: str) -> None:
        if not self.is_given_up:
            self.give_up()
            self._ended(why)
