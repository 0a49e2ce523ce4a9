"""How a host types at the prompt: Lua on Frame and Halo, MicroPython on Monocle.

Sources of the latter: MicroPython's raw prompt as Monocle's firmware has it (monocle-micropython:
main.c, lib/brilliant.py, lib/example_upload_file.py), and brilliant-monocle-driver 0.1.3.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from firmware_bridge.codecs.frame.wire import BREAK, PRINTED, PROMPT, RESET, upload
from firmware_bridge.packets import ChannelPacket, channel_of

MODULE: Final = "glassd_app"
RAW_MODE: Final = b"\x01"
END: Final = b"\x04"
"""Ends what is typed, what it printed, and its error."""
READY: Final = "\x04"
"""Text that says that a statement has ended without an error."""
ERROR: Final = "error: "
"""Begins the text that says how one ended."""
MAX_LINE: Final = 1024
"""Bytes of a line that is not whole yet; of a longer one the end counts."""
PIECE_BYTES: Final = 100
"""Bytes of a file in one statement, as in the maker's example; its prompt keeps 1024."""


class Prompt(Protocol):
    """`stop`: packets that stop what runs, with a pause after each. `file`: of our program.
    `start`: what is typed to run it. `breaks`: ends of the texts that a break leaves.
    """

    stop: tuple[bytes, ...]
    file: str
    start: str
    breaks: tuple[str, ...]

    def type(self, statement: str, max_packet: int) -> list[bytes]:
        """Return the packets of a statement."""

    def upload(self, text: str, max_packet: int) -> Iterator[tuple[str, str]]:
        """Yield each statement that stores our program, and the text that must answer it."""

    def read(self, packet: bytes) -> list[str]:
        """Return the texts that a packet brings, each whole."""

    def is_error(self, text: str) -> bool:
        """Return whether a text ends a program, or a statement at the prompt."""


class LuaPrompt:
    """Each packet is a statement, or a text."""

    stop: tuple[bytes, ...] = (BREAK, RESET, BREAK)
    file = f"{MODULE}.lua"
    start = f"require('{MODULE}')"
    breaks: tuple[str, ...] = ("break signal", "interrupted")

    def type(self, statement: str, max_packet: int) -> list[bytes]:  # noqa: ARG002 - the protocol's
        return [statement.encode()]

    def upload(self, text: str, max_packet: int) -> Iterator[tuple[str, str]]:
        return upload(self.file, text, max_packet)

    def read(self, packet: bytes) -> list[str]:
        return [packet.decode("utf-8", "replace")]

    def is_error(self, text: str) -> bool:
        """Lua begins an error with the place, unless a module could not be loaded."""
        loading = "module '" in text and ("not found" in text or "error loading" in text)
        return text.startswith(("[string", MODULE)) or loading or text.endswith(self.breaks)


class RawPrompt:
    """A stream each way, cut anywhere. A statement is answered by OK, what it printed, END, its
    error, END, and a sign that the next is awaited.
    """

    stop: tuple[bytes, ...] = tuple(
        ChannelPacket(each, PROMPT) for each in (BREAK, BREAK, RAW_MODE)
    )
    file = f"{MODULE}.py"
    start = (
        f"import gc, sys\nsys.modules.pop('{MODULE}', None)\ngc.collect()\n"
        f"import {MODULE}\n{MODULE}.run()"
    )
    breaks: tuple[str, ...] = ("KeyboardInterrupt:",)

    def __init__(self) -> None:
        self._line = b""
        self._awaits_ok = False
        """Whether what comes is of an earlier statement, which nobody waits for."""
        self._is_error = False

    def type(self, statement: str, max_packet: int) -> list[bytes]:
        self._line, self._awaits_ok, self._is_error = b"", True, False
        data = statement.replace("\n", "\r\n").encode() + END
        pieces = (data[at : at + max_packet] for at in range(0, len(data), max_packet))
        return [ChannelPacket(piece, PROMPT) for piece in pieces]

    def upload(self, text: str, max_packet: int) -> Iterator[tuple[str, str]]:  # noqa: ARG002 - the protocol's
        yield f"f=open('{self.file}','wb')", READY
        data = text.encode()
        for at in range(0, len(data), PIECE_BYTES):
            yield f"f.write({data[at : at + PIECE_BYTES]!r})", READY
        yield "f.close()", READY

    def read(self, packet: bytes) -> list[str]:
        if channel_of(packet) != PRINTED:
            return []
        self._line += packet
        if self._awaits_ok:
            _, ok, rest = self._line.partition(b"OK")
            self._awaits_ok, self._line = not ok, rest if ok else self._line[-1:]
        texts = list(self._texts()) if not self._awaits_ok else []
        self._line = self._line[-MAX_LINE:]
        return texts

    def _texts(self) -> Iterator[str]:
        """Yield whole lines of what is printed, and how the statement ended."""
        while True:
            printed, end, after = self._line.partition(END)
            if not self._is_error:
                *lines, printed = printed.split(b"\r\n")
                yield from (line.decode("utf-8", "replace") for line in lines)
                self._line = printed + end + after
            if not end:
                return
            self._line = after
            if self._is_error:
                problem = printed.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
                yield ERROR + problem if problem else READY
            elif printed:
                yield printed.decode("utf-8", "replace")
            self._is_error = not self._is_error

    def is_error(self, text: str) -> bool:
        return text.startswith(ERROR)
