"""Writes an HCI recording byte by byte, as the tap would: for showing that the judge of the air
finds what was planted.
"""

import struct
import uuid
from typing import Any

import msgpack

from tests.chaos.tap import CLOSED, HEAD, OPENED, TO_CONTROLLER, TO_HOST
from tests.e2e.independent_decoder import RX, TX

HANDLE, RX_AT, TX_AT = 0x40, 3, 5


class Doctored:
    """A recording under construction: `link()` connects anew, then `show` and `sound` are said
    and answered.
    """

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._out = self._in = self._n = 0
        self._moment = 0.0
        self._put(OPENED, b"")

    def link(self, at: float = 0.0) -> "Doctored":
        if self._n:
            self._put(TO_HOST, bytes([4, 0x05, 4, 0, HANDLE, 0, 0x13]))
        self._out = self._in = 0
        self._moment = at
        self._put(TO_HOST, bytes([4, 0x3E, 19, 0x01, 0, HANDLE, 0, *bytes(15)]))
        found = b"".join(
            struct.pack("<HBH", at - 1, 0x12, at) + uuid.UUID(name).bytes[::-1]
            for at, name in ((RX_AT, RX), (TX_AT, TX))
        )
        self._att(TO_HOST, bytes([0x09, 21]) + found)
        return self

    def show(self, scene: str, page: int = 1, *, drawn: int = 9) -> "Doctored":
        self._say(
            {
                "t": "show",
                "n": self._next(),
                "scene": scene,
                "page": page,
                "pages": 2,
                "lines": [[0, "words"]],
            }
        )
        self._hear({"t": "done", "re": self._n, "drawn": drawn})
        return self

    def sound(self, token: str) -> "Doctored":
        self._say({"t": "audio_start", "n": self._next(), "stream": self._n, "format": "pcm16"})
        self._hear({"t": "done", "re": self._n})
        self._say(
            {
                "t": "audio",
                "stream": self._n,
                "index": 0,
                "frames": [token.encode().ljust(16, b".") * 40],
            }
        )
        return self

    def end(self) -> bytes:
        self._put(CLOSED, b"")
        return bytes(self.bytes)

    def _next(self) -> int:
        self._n += 1
        return self._n

    def _say(self, message: dict[str, Any]) -> None:
        self._att(TO_CONTROLLER, struct.pack("<BH", 0x52, RX_AT) + _frame(self._out, message))
        self._out += 1

    def _hear(self, message: dict[str, Any]) -> None:
        self._att(TO_HOST, struct.pack("<BH", 0x1B, TX_AT) + _frame(self._in, message))
        self._in += 1

    def _att(self, what: int, pdu: bytes) -> None:
        l2cap = struct.pack("<HH", len(pdu), 4) + pdu
        boundary = 0b10 if what == TO_HOST else 0b00
        self._put(what, struct.pack("<BHH", 2, HANDLE | boundary << 12, len(l2cap)) + l2cap)

    def _put(self, what: int, data: bytes) -> None:
        self.bytes += HEAD.pack(self._moment, 1, what, len(data)) + data


def _frame(number: int, message: dict[str, Any]) -> bytes:
    """PROFILE.md §2-4: one DATA frame that is first and last of its message."""
    body = msgpack.packb(message)
    whole = struct.pack("<I", len(body)) + body
    return struct.pack("<BBHH", 1, 3, number, len(whole)) + whole
