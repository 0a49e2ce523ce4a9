"""The Wyoming protocol: events as lines of JSON, with sound behind them, to a speech server.

Home Assistant's servers of voices and recognisers speak it. Used by child processes only, so it may
wait. The protocol has no password and no encryption: it belongs on this machine or a trusted
network.
"""

import json
import socket
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

CONNECT_S: Final = 3.0
"""Seconds for reaching a server, on this machine or a near one."""
MAX_EVENTS: Final = 100_000
"""Events of one answer."""
_MAX_HEADER: Final = 64 * 1024
_MAX_DATA: Final = 1024 * 1024
_MAX_PAYLOAD: Final = 1024 * 1024


class WyomingFault(Exception):
    """The server did not do what was asked; the text says what it did."""


class ServerAway(WyomingFault):
    """It cannot be reached, or does not answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is: a host and a port, or the path of a socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str, default_port: int) -> "Address":
        """Read `tcp://host:port` or `unix:///path`. Raises ValueError."""
        parts = urlsplit(text)
        if parts.scheme == "unix" and parts.path and not parts.netloc:
            return cls(path=parts.path)
        if parts.scheme == "tcp" and parts.hostname and parts.path in ("", "/"):
            return cls(host=parts.hostname, port=default_port if parts.port is None else parts.port)
        raise ValueError("must be tcp://host:port or unix:///path")

    def connect(self, limit_s: float) -> socket.socket:
        if not self.path:
            return socket.create_connection((self.host, self.port), timeout=limit_s)
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(limit_s)
            made.connect(self.path)
        except BaseException:
            made.close()
            raise
        return made


class Conversation:
    """One connection with one deadline for all that is said on it."""

    def __init__(self, address: Address, limit_s: float) -> None:
        self._until = time.monotonic() + limit_s
        try:
            self._socket = address.connect(min(limit_s, CONNECT_S))
        except OSError as e:
            raise ServerAway(f"cannot connect: {e.strerror or e}") from None
        except UnicodeError:
            raise ServerAway(f"cannot connect: {address.host!r} is no name of a host") from None
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, kind: str, data: Mapping[str, Any] | None = None, payload: bytes = b"") -> None:
        header: dict[str, Any] = {"type": kind, "data": data or {}}
        if payload:
            header["payload_length"] = len(payload)
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(json.dumps(header).encode() + b"\n" + payload)
        except TimeoutError:
            raise ServerAway("it took too long") from None
        except OSError as e:
            raise ServerAway(f"cannot send: {e.strerror or e}") from None

    def receive(self, wanted: str) -> Mapping[str, Any]:
        """Return the data of the next event of this kind."""
        for _ in range(MAX_EVENTS):
            kind, data, _payload = self.next()
            if kind == wanted:
                return data
        raise WyomingFault(f"it sends no {wanted}")

    def next(self) -> tuple[str, Mapping[str, Any], bytes]:
        """Return the next event; an error of the server is raised."""
        header = _object(self._line())
        data = header.get("data") or {}
        sizes = (header.get("data_length") or 0, header.get("payload_length") or 0)
        for size, most in zip(sizes, (_MAX_DATA, _MAX_PAYLOAD), strict=True):
            if not isinstance(size, int) or not 0 <= size <= most:
                raise WyomingFault(f"it announces {size} bytes")
        if sizes[0]:
            data = {**data, **_object(self._exactly(sizes[0]))}
        payload = self._exactly(sizes[1])
        if header.get("type") == "error":
            raise WyomingFault(plain(str(data.get("text", "an error without a text")))[:200])
        return str(header.get("type")), data, payload

    def _line(self) -> bytes:
        while (end := self._held.find(b"\n")) < 0:
            if len(self._held) > _MAX_HEADER:
                raise WyomingFault("it sends a line without an end")
            self._more()
        return self._take(end + 1)

    def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            self._more()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _more(self) -> None:
        try:
            self._socket.settimeout(self._left())
            part = self._socket.recv(65536)
        except TimeoutError:
            raise ServerAway("it took too long") from None
        except OSError as e:
            raise ServerAway(f"the connection broke: {e.strerror or e}") from None
        if not part:
            raise ServerAway("it closed the connection")
        self._held += part

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise ServerAway("it took too long")
        return left


def plain(text: str) -> str:
    """Return a server's text on one line, without control characters."""
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WyomingFault("it sends something else than Wyoming events")
    data = value.get("data")
    if data is not None and not isinstance(data, dict):
        raise WyomingFault("it sends something else than Wyoming events")
    return value


def objects(value: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in the list `value[key]`; none where there is no such list."""
    found = value.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
