"""HTTP over a connected unix socket, for the client of the control API: one request, its answer.

Not http.client: it loads the parser of e-mail and TLS, 15 ms of a verb that ends after 60.
"""

import socket
from typing import Final

MAX_HEAD_LINE: Final = 16 * 1024
MAX_HEADERS: Final = 100
NO_CONTENT: Final = 204
CHUNK: Final = 64 * 1024
_HEX: Final = frozenset("0123456789abcdef")
_WITH_LENGTH: Final = frozenset({"POST", "PUT"})


class BadAnswer(ValueError):
    """What came is no HTTP."""


def head(method: str, path: str, headers: dict[str, str], body: bytes | None) -> bytes:
    """Return the first lines of a request. Raise ValueError for a path that cannot be sent."""
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"not a path: {path[:80]!r}")
    lines = {"Host": "localhost", "Accept-Encoding": "identity", **headers}
    if body is not None or method in _WITH_LENGTH:
        lines["Content-Length"] = str(len(body or b""))
    rows = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())]
    return ("\r\n".join(rows) + "\r\n\r\n").encode()


class Answer:
    """The answer that comes on a socket: its status, and a body that is read piece by piece."""

    def __init__(self, connected: socket.socket) -> None:
        self._file = connected.makefile("rb")
        self.status = 0
        self.headers: dict[str, str] = {}
        """By their names in small letters."""
        self._chunked = False
        self._left: int | None = 0
        """Bytes of the body, or of its chunk, that are still to come; None: until the end."""

    def read_head(self) -> None:
        """Read up to the body. Raise OSError and `BadAnswer`."""
        version, _, rest = self._head_line().partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise BadAnswer("no status line")
        self.status = int(rest[:3])
        self.headers = self._read_headers()
        if self.status == NO_CONTENT:
            return
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length", "")
        self._left = 0 if self._chunked else int(length) if length.isdecimal() else None

    def close(self) -> None:
        self._file.close()

    def read(self, most: int) -> bytes:
        """Return the rest of the body, or its next `most` bytes. Raise OSError and `BadAnswer`."""
        parts, wanted = [], most
        while wanted:
            if not (part := self._file.read(self._room(min(wanted, CHUNK)))):
                break
            self._count(part)
            parts.append(part)
            wanted -= len(part)
        if wanted and self._left:
            raise ConnectionError("the answer ended too soon")
        return b"".join(parts)

    def readline(self, most: int) -> bytes:
        """Return the next line of the body, at most `most` bytes of it; b"" at its end."""
        line = b""
        while not line.endswith(b"\n") and len(line) < most:
            if not (part := self._file.readline(self._room(most - len(line)))):
                break
            self._count(part)
            line += part
        return line

    def _count(self, part: bytes) -> None:
        if self._left is not None:
            self._left -= len(part)
        if self._chunked and not self._left:
            self._head_line()  # the end of the chunk

    def _room(self, wanted: int) -> int:
        """Return how many of `wanted` bytes may be read at once: 0 at the end of the body."""
        if self._chunked and not self._left:
            size = self._head_line().partition(";")[0]
            if not size or set(size.lower()) - _HEX:
                raise BadAnswer("no size of a chunk")
            self._left = int(size, 16)
            self._chunked = bool(self._left)
        return wanted if self._left is None else min(wanted, self._left)

    def _read_headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while line := self._head_line():
            name, _, value = line.partition(":")
            found[name.strip().lower()] = value.strip()
            if len(found) > MAX_HEADERS:
                raise BadAnswer("too many headers")
        return found

    def _head_line(self) -> str:
        raw = self._file.readline(MAX_HEAD_LINE)
        if not raw.endswith(b"\n"):
            raise ConnectionError("the answer ended too soon")
        return raw.decode("latin-1").strip()
