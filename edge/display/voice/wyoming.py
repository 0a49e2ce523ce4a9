"""Client of a Wyoming text-to-speech server, as Home Assistant's voices are (piper and others).

Used by the child process of the voice only, so it may wait. The protocol has no password and no
encryption: it belongs on this machine or a trusted network.
"""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

from edge.display.voice import sound

PORT: Final = 10200
_MAX_HEADER: Final = 64 * 1024
_MAX_DATA: Final = 1024 * 1024
_MAX_PAYLOAD: Final = 1024 * 1024
MAX_SOUND: Final = 16 * 1024 * 1024
"""Bytes of one sentence: almost three minutes at 48 kHz."""
_MAX_EVENTS: Final = 100_000
_RATES: Final = range(8000, 48001)


class WyomingFault(Exception):
    """The server did not do what was asked; the text says what it did."""


class ServerAway(WyomingFault):
    """It cannot be reached, or does not answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is: a host and a port, or the path of a socket."""

    host: str = ""
    port: int = PORT
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `tcp://host:port` or `unix:///path`. Raises ValueError."""
        parts = urlsplit(text)
        if parts.scheme == "unix" and parts.path and not parts.netloc:
            return cls(path=parts.path)
        if parts.scheme == "tcp" and parts.hostname and parts.path in ("", "/"):
            return cls(host=parts.hostname, port=PORT if parts.port is None else parts.port)
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


def voices(address: Address, limit_s: float) -> Mapping[str, str]:
    """Return the languages the server speaks (`de`, `zh`), each with its first voice's name."""
    with _Conversation(address, limit_s) as server:
        server.send("describe")
        found: dict[str, str] = {}
        for program in _list(server.receive("info"), "tts"):
            for voice in _list(program, "voices"):
                installed, name = voice.get("installed", True), voice.get("name")
                if not installed or not isinstance(name, str):
                    continue
                for language in voice.get("languages") or ():
                    found.setdefault(str(language).replace("_", "-").partition("-")[0], name)
        return found


def speak(text: str, voice: str, address: Address, limit_s: float) -> bytes:
    """Return speech as mono PCM of 16 bits at `sound.RATE`. Raises `WyomingFault`."""
    with _Conversation(address, limit_s) as server:
        server.send("synthesize", {"text": text, "voice": {"name": voice}})
        form = server.receive("audio-start")
        rate: Any = form.get("rate")
        width, channels = form.get("width"), form.get("channels")
        if rate not in _RATES or width != 2 or channels not in (1, 2):
            raise WyomingFault(f"it sends {rate} Hz, {width} bytes, {channels} channels")
        pcm = bytearray()
        for _ in range(_MAX_EVENTS):
            kind, _data, payload = server.next()
            if kind == "audio-stop":
                samples = sound.mixed(sound.from_bytes(bytes(pcm)), channels)
                return sound.resampled(samples, rate).tobytes()
            pcm += payload if kind == "audio-chunk" else b""
            if len(pcm) > MAX_SOUND:
                break
        raise WyomingFault("it does not stop")


class _Conversation:
    """One connection with one deadline."""

    def __init__(self, address: Address, limit_s: float) -> None:
        self._until = time.monotonic() + limit_s
        try:
            self._socket = address.connect(limit_s)
        except OSError as e:
            raise ServerAway(f"cannot connect: {e.strerror or e}") from None
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        line = json.dumps({"type": kind, "data": data or {}}) + "\n"
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(line.encode())
        except OSError as e:
            raise ServerAway(f"cannot send: {e.strerror or e}") from None

    def receive(self, wanted: str) -> Mapping[str, Any]:
        """Return the data of the next event of this kind."""
        for _ in range(_MAX_EVENTS):
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
            raise WyomingFault(str(data.get("text", "an error without a text"))[:200])
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


def _list(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
