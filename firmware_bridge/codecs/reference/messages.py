"""Messages of the reference profile ↔ msgpack maps, by one table for both directions.

Every incoming message is validated here; callers need not check again.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # it ships no types

from firmware_bridge.capabilities import MAX_KEYS
from firmware_bridge.codec import Incoming, Role
from firmware_bridge.codecs.reference.photos import MAX_PARTS, PhotoPart
from firmware_bridge.codecs.reference.tiles import MAX_TILES, TileTable
from firmware_bridge.codecs.reference.values import (
    FACTS,
    FLAG,
    FORMAT,
    FRAMES,
    LIMITS,
    LINES,
    MAX_DETAIL_BYTES,
    MAX_FRAMES,
    NAME,
    NUMBER,
    PAGE,
    PHOTO_DATA,
    RATE,
    TILES,
    TURNED,
    U16,
    U32,
    Form,
    Newer,
    integer,
    one_of,
    text,
)
from firmware_bridge.errors import CommandRefused, LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_TEXT_BYTES,
    Answer,
    AudioChunk,
    BatteryChanged,
    CapabilitiesChanged,
    ClearPage,
    Command,
    Done,
    EndAudio,
    EndPrompt,
    Event,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    PhotoFailed,
    PhotoSize,
    Ping,
    Prompt,
    PromptAnswered,
    Reply,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    Transcript,
    UpdatePage,
    WornChanged,
)
from firmware_bridge.sides import Side

VERSION: Final = 1
MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Bytes of one message before it is cut. A full 576 × 136 lens of noise at 4 bits is 39 KiB."""

_MAX_DEPTH: Final = 4
"""Maximum nesting: map → tiles → tile → value."""


class RefusedMessage(Exception):
    """A refused message. `violation` is None where a later profile version may define it."""

    def __init__(
        self, code: str, detail: str, *, number: int | None, violation: Violation | None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail.encode("ascii", "backslashreplace")[:MAX_DETAIL_BYTES].decode()
        self.number = number
        self.violation = violation


# ------------------------------------------------------------------ message types

_REQUIRED: Final = object()


@dataclass(frozen=True, slots=True)
class _Field:
    """One key of a message: the attribute of the same name, its form, its value when absent."""

    name: str
    form: Form
    default: Any = _REQUIRED


@dataclass(frozen=True, slots=True)
class _Word:
    """One message type.

    `answered`: it carries a number `n`. `answer`: it carries `re`. `versioned`: it carries `v`.
    `sender` None: either side sends it.
    """

    name: str
    kind: type
    sender: Role | None
    fields: tuple[_Field, ...] = ()
    answered: bool = False
    answer: bool = False
    versioned: bool = False


def _ask(name: str, kind: type, *fields: _Field, versioned: bool = False) -> _Word:
    return _Word(name, kind, Role.CENTRAL, fields, answered=True, versioned=versioned)


def _reply(name: str, kind: type, *fields: _Field, versioned: bool = False) -> _Word:
    return _Word(name, kind, Role.PERIPHERAL, fields, answer=True, versioned=versioned)


def _event(name: str, kind: type, *fields: _Field) -> _Word:
    return _Word(name, kind, Role.PERIPHERAL, fields)


_SCENE: Final = (_Field("scene", NAME), _Field("page", PAGE, 1))
_CONTENT: Final = (_Field("lines", LINES, ()), _Field("tiles", TILES, ()))
_STREAM: Final = _Field("stream", U16)
_CHUNK: Final = (_STREAM, _Field("index", U32), _Field("frames", FRAMES))
_MEDIUM: Final = PhotoSize.MEDIUM
_OPENING: Final = (_STREAM, _Field("format", FORMAT), _Field("rate", RATE, 16000))

_WORDS: Final = (
    _ask("hello", Hello, _Field("name", NAME), _Field("version", NAME), versioned=True),
    _ask("show", ShowPage, *_SCENE, _Field("pages", PAGE, 1), *_CONTENT),
    _ask("update", UpdatePage, *_SCENE, *_CONTENT),
    _ask("clear", ClearPage),
    _ask("audio_start", StartAudio, *_OPENING, _Field("frame_ms", integer(1, 120), 20)),
    _Word("audio", AudioChunk, Role.CENTRAL, _CHUNK),
    _ask("audio_end", EndAudio, _STREAM, _Field("flush", FLAG, default=False)),
    _ask("mic_start", StartMicrophone, *_OPENING),
    _ask("mic_stop", StopMicrophone, _STREAM),
    _ask(
        "prompt", Prompt, _Field("prompt", U32), _Field("lines", LINES), _Field("timeout_s", NUMBER)
    ),
    _ask("prompt_end", EndPrompt, _Field("prompt", U32, None)),
    _ask("take_photo", TakePhoto, _Field("photo", U32), _Field("size", one_of(PhotoSize), _MEDIUM)),
    _ask("ping", Ping),
    _reply(
        "info",
        GlassesInfo,
        _Field("model", NAME),
        _Field("firmware", NAME),
        _Field("serial", NAME),
        _Field("capabilities", FACTS),
        _Field("limits", LIMITS),
        versioned=True,
    ),
    _reply(
        "done",
        Done,
        _Field("drawn", U32, None),
        _Field("samples", U32, None),
        _Field("clipped", U32, 0),
    ),
    _Word(
        "failed",
        Failed,
        None,
        (_Field("code", NAME), _Field("detail", text(MAX_DETAIL_BYTES), "")),
        answer=True,
    ),
    _event(
        "gesture", Gestured, _Field("gesture", one_of(Gesture)), _Field("side", one_of(Side), None)
    ),
    _event(
        "battery",
        BatteryChanged,
        _Field("level", integer(0, 100)),
        _Field("charging", FLAG, default=False),
    ),
    _event("worn", WornChanged, _Field("worn", FLAG)),
    _event(
        "transcript",
        Transcript,
        _Field("text", text(MAX_TEXT_BYTES)),
        _Field("final", FLAG, default=True),
    ),
    _event("mic", MicrophoneChunk, *_CHUNK),
    _event(
        "photo",
        PhotoPart,
        _Field("photo", U32),
        _Field("data", PHOTO_DATA),
        _Field("part", integer(0, MAX_PARTS - 1), 0),
        _Field("parts", integer(1, MAX_PARTS), 1),
        _Field("turned", TURNED, 0),
    ),
    _event(
        "photo_failed",
        PhotoFailed,
        _Field("photo", U32),
        _Field("detail", text(MAX_DETAIL_BYTES)),
    ),
    _event("answer", PromptAnswered, _Field("prompt", U32), _Field("answer", one_of(Answer))),
    _event("capabilities", CapabilitiesChanged, _Field("capabilities", FACTS)),
)
_BY_KIND: Final = {word.kind: word for word in _WORDS}
_BY_NAME: Final = {word.name: word for word in _WORDS}


def is_answered(message: Command | Event | Reply) -> bool:
    """True for commands that glasses answer; they carry a number."""
    word = _BY_KIND.get(type(message))
    return word is not None and word.answered


# ------------------------------------------------------------------ out


def encode(
    message: Command | Event | Reply | PhotoPart,
    *,
    sender: Role,
    tiles: TileTable,
    number: int = 0,
    re: int | None = None,
) -> bytes:
    """Message → msgpack; the tile table stays consistent whatever is raised.

    Raises `LocalMisuse` for messages this side does not send, `CommandRefused` for a command of
    other families.
    """
    word = _BY_KIND.get(type(message))
    if word is None and sender is Role.CENTRAL and isinstance(message, Command):
        raise CommandRefused(
            "unsupported", f"the reference profile does not have {type(message).__name__}"
        )
    if word is None or word.sender not in (sender, None):
        raise LocalMisuse(f"the {sender} never says {type(message).__name__}")
    if re is not None and not word.answer:
        raise LocalMisuse(f"{word.name} is no answer")
    body: dict[str, Any] = {"t": word.name}
    if word.answered:
        body["n"] = number
    if re is not None:
        body["re"] = re
    if word.versioned:
        body["v"] = VERSION
    try:
        for field in word.fields:
            value = getattr(message, field.name)
            if value != field.default:
                body[field.name] = (
                    tiles.put(value) if field.form is TILES else field.form.put(value)
                )
        return cast("bytes", msgpack.packb(body))
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        tiles.clear()
        raise LocalMisuse(f"{word.name}: {error}") from error


# ------------------------------------------------------------------ in


def decode(data: bytes, *, sender: Role, tiles: TileTable) -> Incoming:
    """Bytes → message, every field validated. Raises nothing but `RefusedMessage`."""
    body = _unpack(data)
    number = _read_number(body)
    try:
        return _decode(body, number, sender, tiles)
    except Newer as newer:
        raise RefusedMessage("unsupported", str(newer), number=number, violation=None) from None
    except ValueError as error:
        raise RefusedMessage(
            "bad_message", str(error), number=number, violation=Violation.BAD_MESSAGE
        ) from None


def _decode(body: dict[str, Any], number: int | None, sender: Role, tiles: TileTable) -> Incoming:
    word = _BY_NAME.get(NAME.take(body.get("t")))
    if word is None or word.sender not in (sender, None):
        raise Newer(f"message {body['t']:.40}")
    if word.versioned and body.get("v") != VERSION:
        detail = f"profile version {body.get('v')!r:.20}; {VERSION} is supported"
        raise RefusedMessage(
            "unsupported", detail, number=number, violation=Violation.UNSUPPORTED_VERSION
        )
    if word.answered and number is None:
        raise ValueError(f"{word.name} without a number n")
    re = U32.take(body["re"]) if word.answer and "re" in body else None
    values = {field.name: _take(body, field, word, tiles) for field in word.fields}
    return Incoming(word.kind(**values), re=re, number=number if word.answered else None)


def _take(body: dict[str, Any], field: _Field, word: _Word, tiles: TileTable) -> Any:
    if field.name not in body:
        if field.default is _REQUIRED:
            raise ValueError(f"{word.name} without {field.name}")
        return field.default
    value = body[field.name]
    try:
        return tiles.take(value) if field.form is TILES else field.form.take(value)
    except ValueError as error:
        raise ValueError(f"{word.name}.{field.name}: {error}") from None


_UNPACK_ERRORS: Final = (
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
    msgpack.UnpackException,
)
_UNPACK_BOUNDS: Final = {"max_array_len": max(MAX_TILES, MAX_FRAMES), "max_map_len": MAX_KEYS}


def _unpack(data: bytes) -> dict[str, Any]:
    try:
        body = msgpack.unpackb(data, **_UNPACK_BOUNDS)
        if not isinstance(body, dict):
            raise ValueError("a message is a map")
        _check_depth(body, _MAX_DEPTH)
    except _UNPACK_ERRORS as error:
        number = _salvage(data)
        raise RefusedMessage(
            "bad_message", f"msgpack: {error}", number=number, violation=Violation.BAD_MESSAGE
        ) from None
    return body


def _check_depth(value: Any, left: int) -> None:
    if isinstance(value, dict | list):
        if left == 0:
            raise ValueError("nested too deep")
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, left - 1)


def _read_number(body: dict[str, Any]) -> int | None:
    try:
        return cast("int", U32.take(body.get("n")))
    except ValueError:
        return None


def _salvage(data: bytes) -> int | None:
    """Read `n` from the intact beginning of a damaged message, to report which one was refused."""
    unpacker = msgpack.Unpacker(max_buffer_size=MAX_MESSAGE_BYTES, **_UNPACK_BOUNDS)
    try:
        unpacker.feed(data)
        for _ in range(min(unpacker.read_map_header(), MAX_KEYS)):
            key, value = unpacker.unpack(), unpacker.unpack()
            if key == "n":
                return _read_number({"n": value})
    except _UNPACK_ERRORS:
        return None
    return None


# ------------------------------------------------------------------ the info characteristic

MAX_INFO_BYTES: Final = 512
"""Maximum size of an attribute value in bytes (ATT)."""


def encode_info(info: GlassesInfo) -> bytes:
    """Value of the `info` characteristic. Raises `LocalMisuse` over 512 bytes."""
    value = encode(info, sender=Role.PERIPHERAL, tiles=TileTable())
    if len(value) > MAX_INFO_BYTES:
        raise LocalMisuse(f"info of {len(value)} bytes; an attribute holds {MAX_INFO_BYTES}")
    return value


def decode_info(value: bytes) -> GlassesInfo:
    """Inverse of `encode_info`. Raises `RemoteViolation`."""
    try:
        incoming = decode(value, sender=Role.PERIPHERAL, tiles=TileTable())
    except RefusedMessage as refused:
        raise RemoteViolation(refused.violation or Violation.BAD_MESSAGE, refused.detail) from None
    if not isinstance(incoming.message, GlassesInfo):
        raise RemoteViolation(
            Violation.BAD_MESSAGE, "the info characteristic holds another message"
        )
    return incoming.message
