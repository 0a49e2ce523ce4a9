"""The JSON layers of a Mentra Live: messages of the two applications, commands of the chip between
them, and long messages in parts.

An application's message travels as text inside the chip's JSON: `{"C": "<text>"}`. A chip command
is `{"C": "cs_batv", "B": …}`. A message of more than 400 bytes is cut into parts of its text, each
a message of its own (M26 `MessageChunker.java`). Later builds cut above 200 bytes, and shorten keys
(NEW): that is understood, but not said.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_live.wire import MAX_JSON, refuse

LONG: Final = 400
"""Bytes of a wrapped message above which it is cut."""
PART: Final = 300
"""Bytes of text in one part, as far as its frame then fits the glasses' buffer."""
MAX_FRAME: Final = MAX_JSON - 12
"""Bytes of a wrapped part: the glasses' buffer less the frame around it."""
MAX_TEXT: Final = 16 * 1024
"""Bytes of a message of many parts."""
MAX_PARTS: Final = 256
SESSIONS: Final = 10
SESSION_S: Final = 30.0
"""Messages that may be incomplete at a time, and for how many seconds (M26)."""

KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "t": "type",
        "r": "requestId",
        "ts": "timestamp",
        "s": "status",
        "k": "kind",
        "src": "source",
        "w": "width",
        "h": "height",
        "br": "bitrate",
        "f": "fps",
        "df": "droppedFrames",
        "du": "duration",
        "tc": "temperatureC",
    }
)
"""Short key → the key it stands for (NEW); others are written out."""
SHORT_PART: Final = "ck"
_PART_KEYS: Final = {"id": "chunkId", "c": "chunk", "n": "total", "d": "data"}
"""A part of a message as later builds cut it, and its keys."""

Json = Mapping[str, Any]


class ChipCommand(Struct, frozen=True):
    """A command or answer of the Bluetooth chip."""

    name: str
    body: Json


def encode(message: Json) -> str:
    """Return the JSON text. The glasses look for `##` and `$$`, wherever they are, so neither may
    be in a text.
    """
    plain = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("$$", "$\\u0024").replace("##", "#\\u0023")


def expand(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with all keys written out; a key that is there already counts."""
    if "t" not in message or "type" in message:
        return message
    keys = {**KEYS, **_PART_KEYS} if message["t"] == SHORT_PART else KEYS
    known = {keys[key]: value for key, value in message.items() if key in keys}
    return known | {key: value for key, value in message.items() if key not in keys}


def wrap(message: Json, *, wake: bool = False) -> bytes:
    """Return a message to the glasses; `wake`: their main processor is woken for it."""
    return encode({"C": encode(message), **({"W": 1} if wake else {})}).encode()


def wrap_answer(message: Json) -> bytes:
    """Return a message of the glasses."""
    return encode({"C": encode(message), "V": 1, "B": {}}).encode()


def chip(name: str, body: object = "", *, version: bool = False) -> bytes:
    """Return a command for the chip, or its answer."""
    return encode({"C": name, **({"V": 1} if version else {}), "B": body}).encode()


def read(payload: bytes) -> Json | ChipCommand:
    """Return the message of a JSON frame, its keys written out. Raises `RemoteViolation`."""
    outer = _object(payload)
    if outer is None:
        raise refuse("a JSON frame without an object")
    outer = expand(outer)
    if "type" in outer and "C" not in outer:
        return outer
    command = outer.get("C")
    if not isinstance(command, str):
        raise refuse("a JSON frame with neither type nor C")
    inner = expand(_object(command) or {})
    if isinstance(inner.get("type"), str):
        return inner
    body = outer.get("B")
    if isinstance(body, bool):  # older chips are switched by a bare yes or no
        body = {"enable": body}
    return ChipCommand(command, body if isinstance(body, dict) else _object(body) or {})


def is_part(kind: str) -> bool:
    """Return whether a message is a part of a longer one."""
    return kind in ("chunked_msg", SHORT_PART)


def _object(text: object) -> dict[str, Any] | None:
    """Return the JSON object that a text holds; None if it holds none."""
    if not isinstance(text, str | bytes):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def number(value: object, low: int, high: int) -> int | None:
    """Return a JSON number, or text of digits, within these bounds; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        return None
    return value


def flag(value: object) -> bool | None:
    """Return a JSON boolean, or one that is written as 0 or 1; None for anything else."""
    if isinstance(value, bool):
        return value
    digit = number(value, 0, 1)
    return None if digit is None else digit == 1


def text(message: Json, key: str, default: str = "") -> str:
    """Return a text of a message, of at most 200 characters."""
    value = message.get(key)
    return value[:200] if isinstance(value, str) else default


def parts(message: Json, mid: int, *, wake: bool = False) -> list[bytes]:
    """Return the wrapped message, in parts if it is long."""
    whole = wrap(message, wake=wake)
    if len(whole) <= LONG:
        return [whole]
    pieces = list(_pieces(encode(message), mid))
    last = len(pieces) - 1
    return [
        wrap(_part(mid, at, len(pieces), piece, last=at == last), wake=wake and at == 0)
        for at, piece in enumerate(pieces)
    ]


def _part(mid: int, at: int, total: int, data: str, *, last: bool) -> Json:
    part = {"type": "chunked_msg", "chunkId": f"chunk_{mid}_0", "chunk": at, "total": total}
    return {**part, "data": data, **({"mId": mid} if last else {})}


def _pieces(whole: str, mid: int) -> Iterator[str]:
    """Cut a text between characters; quotes grow when they are wrapped, so some parts are short."""
    while whole:
        piece = whole.encode()[:PART].decode(errors="ignore")
        while len(wrap(_part(mid, MAX_PARTS, MAX_PARTS, piece, last=True), wake=True)) > MAX_FRAME:
            piece = piece[: len(piece) * 3 // 4]
        yield piece
        whole = whole[len(piece) :]


class Joiner:
    """Joins the parts of long messages, within limits."""

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[float, int, dict[int, str]]] = {}

    def join(self, message: Json, now: float) -> Json | None:
        """Return a message that is no part as it is; of a part, the message that it completes, if
        it does. Raises `RemoteViolation`.
        """
        if not is_part(text(message, "type")):
            return message
        whole = self.add(message, now)
        return None if whole is None or is_part(text(whole, "type")) else whole

    def add(self, part: Json, now: float) -> Json | None:
        """Add a part; return the message when it is whole. Raises `RemoteViolation`."""
        total = number(part.get("total"), 1, MAX_PARTS)
        at = number(part.get("chunk"), 0, MAX_PARTS)
        name, data = text(part, "chunkId"), part.get("data")
        if not name or total is None or at is None or at >= total or not isinstance(data, str):
            raise refuse("a part of a message that is none")
        old = self._sessions.get(name)
        if old is None or old[1] != total:
            old = self._begin(name, total, now)
        pieces = old[2]
        pieces[at] = data
        if sum(map(len, pieces.values())) > MAX_TEXT:
            del self._sessions[name]
            raise refuse(f"a message of more than {MAX_TEXT} characters")
        if len(pieces) < total:
            return None
        del self._sessions[name]
        message = _object("".join(pieces[index] for index in range(total)))
        if message is None:
            raise refuse("the parts of a message do not make one")
        return expand(message)

    def _begin(self, name: str, total: int, now: float) -> tuple[float, int, dict[int, str]]:
        self._sessions.pop(name, None)
        for old in [
            each for each, (since, _, _) in self._sessions.items() if now - since > SESSION_S
        ]:
            del self._sessions[old]
        while len(self._sessions) >= SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        made: tuple[float, int, dict[int, str]] = (now, total, {})
        self._sessions[name] = made
        return made
