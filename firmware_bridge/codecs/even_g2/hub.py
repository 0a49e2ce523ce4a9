"""Messages of the service that shows pages (E0): containers of text and pictures, and answers.

A page is one text container over the whole canvas, and below it the containers of pictures.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.even_g2 import HEIGHT, WIDTH
from firmware_bridge.codecs.even_g2.wire import STOCK, Dialect
from firmware_bridge.protobuf import Fields, Message

TEXT_ID: Final = 1
TEXT_NAME: Final = "glassd-text"
IMAGE_ID: Final = 10
"""Of the first picture; the others count up."""
EMPTY: Final = " "
"""Text of an empty page: the glasses ignore an empty string."""
MAX_PIECE: Final = 4096
"""Bytes of a picture in one message; with 6144 the glasses failed."""
NO_COMPRESSION: Final = 0
LZ4: Final = 2
"""Of a picture in compressed blocks, which firmware from 2.2.6.10 on takes; 1 is a run-length code
of which no more is known.
"""


class Cmd(IntEnum):
    """Field 1 of a message. An answer's number is the command's plus one, except where listed."""

    CREATE = 0
    CREATED = 1
    EVENT = 2
    IMAGE = 3
    IMAGE_TAKEN = 4
    TEXT = 5
    TEXT_TAKEN = 6
    REBUILD = 7
    REBUILT = 8
    LEAVE = 9
    LEFT = 10
    BEAT = 12
    BEAT_TAKEN = 13
    AUDIO = 15
    AUDIO_TAKEN = 16
    MOTION = 19
    MOTION_TAKEN = 20


BODY: Final = {
    Cmd.CREATE: 3,
    Cmd.CREATED: 4,
    Cmd.EVENT: 13,
    Cmd.IMAGE: 5,
    Cmd.IMAGE_TAKEN: 6,
    Cmd.TEXT: 9,
    Cmd.TEXT_TAKEN: 10,
    Cmd.REBUILD: 7,
    Cmd.REBUILT: 8,
    Cmd.LEAVE: 11,
    Cmd.LEFT: 12,
    Cmd.BEAT: 14,
    Cmd.BEAT_TAKEN: 15,
    Cmd.AUDIO: 18,
    Cmd.AUDIO_TAKEN: 19,
    Cmd.MOTION: 22,
    Cmd.MOTION_TAKEN: 23,
}
"""Command → the field with its body."""


class Code(IntEnum):
    """Result codes of the answers."""

    CREATED = 0
    BAD_CONTAINER = 1
    TOO_LARGE = 2
    NO_MEMORY = 3
    IMAGE_OK = 4
    IMAGE_FAILED = 5
    REBUILT = 6
    REBUILD_FAILED = 7
    TEXT_OK = 8
    TEXT_FAILED = 9
    LEFT = 10
    LEAVE_FAILED = 11
    BEAT = 12
    AUDIO_OK = 13
    AUDIO_FAILED = 14


class HubEvent(IntEnum):
    """Event types of a page. Zero is left out on the wire."""

    TAP = 0
    SCROLLED_TO_TOP = 1
    SCROLLED_TO_BOTTOM = 2
    DOUBLE_TAP = 3
    FOREGROUND = 4
    BACKGROUND = 5
    ABNORMAL_EXIT = 6
    SYSTEM_EXIT = 7
    MOTION = 8
    LONG_PRESS = 9
    RELEASE = 10


class Rect(Struct, frozen=True):
    """A place on the canvas, in pixels."""

    x: int
    y: int
    width: int
    height: int


def page(
    cmd: Cmd, text: str, pictures: Sequence[Rect] = (), dialect: Dialect = STOCK
) -> dict[int, object]:
    """Return a message that creates or rebuilds the page."""
    body: dict[int, object] = {1: 1 + len(pictures), 3: [_text(text, dialect)]}
    if pictures:
        body[4] = [_picture(at, rect) for at, rect in enumerate(pictures)]
    if cmd is Cmd.CREATE and dialect.widget is not None:
        body[5] = dialect.widget
    return {1: int(cmd), BODY[cmd]: body}


def _text(text: str, dialect: Dialect) -> Fields:
    place = {1: 0, 2: 0, 3: WIDTH, 4: HEIGHT, 5: 0, 6: 0, 7: 0, 8: 0}
    name = {10: TEXT_NAME} if dialect.named else {}
    return {**place, 9: TEXT_ID, **name, 11: 1, 12: text or EMPTY}


def _picture(at: int, rect: Rect) -> Fields:
    place = {1: rect.x, 2: rect.y, 3: rect.width, 4: rect.height}
    return {**place, 5: IMAGE_ID + at, 6: image_name(at)}


def image_name(at: int) -> str:
    return f"glassd-p{at}"


def text_update(text: str, dialect: Dialect = STOCK) -> dict[int, object]:
    """Return a message that replaces the text."""
    text = text or EMPTY
    name = {2: TEXT_NAME} if dialect.named else {}
    body = {1: TEXT_ID, **name, 3: 0, 4: len(text.encode()), 5: text}
    return {1: int(Cmd.TEXT), BODY[Cmd.TEXT]: body}


def image_updates(
    at: int, file: bytes, session: int, size: int = MAX_PIECE
) -> list[Callable[[Dialect], dict[int, object]]]:
    """Return the messages that send the file of picture `at`."""
    head = {1: IMAGE_ID + at, 2: image_name(at), 3: session, 4: len(file), 5: NO_COMPRESSION}
    pieces = [file[start : start + size] for start in range(0, len(file), size)]
    return [partial(_image_update, head, index, piece) for index, piece in enumerate(pieces)]


def _image_update(
    head: Mapping[int, object], index: int, piece: bytes, dialect: Dialect
) -> dict[int, object]:
    number = head[3] if dialect.image_session else head[1]
    body = {**head, 3: number, 6: index, 7: len(piece), 8: piece}
    return {1: int(Cmd.IMAGE), BODY[Cmd.IMAGE]: body}


def leave() -> dict[int, object]:
    """Return the message that closes the page at once."""
    return {1: int(Cmd.LEAVE), BODY[Cmd.LEAVE]: {1: 0}}


def beat(dialect: Dialect = STOCK) -> dict[int, object]:
    """Return the heartbeat of a page."""
    body = {1: 0} if dialect.hub_beat_body else {}
    return {1: int(Cmd.BEAT), BODY[Cmd.BEAT]: body}


def audio(*, on: bool) -> dict[int, object]:
    """Return the message that switches the microphone."""
    return {1: int(Cmd.AUDIO), BODY[Cmd.AUDIO]: {1: int(on)}}


def code_of(answer: Message) -> int:
    """Return the result code of an answer; zero is left out on the wire."""
    cmd = answer.integer(1)
    match cmd:
        case Cmd.IMAGE_TAKEN:
            return answer.message(BODY[Cmd.IMAGE_TAKEN]).integer(8)
        case Cmd.BEAT_TAKEN:
            return answer.message(BODY[Cmd.BEAT_TAKEN]).integer(2)
        case Cmd.AUDIO_TAKEN:
            body = answer.message(BODY[Cmd.AUDIO_TAKEN])
            failed = Code.AUDIO_FAILED in (body.integer(1), body.integer(2))
            return Code.AUDIO_FAILED if failed else Code.AUDIO_OK
        case Cmd.CREATED | Cmd.TEXT_TAKEN | Cmd.REBUILT | Cmd.LEFT:
            return answer.message(BODY[Cmd(cmd)]).integer(1)
    return -1
