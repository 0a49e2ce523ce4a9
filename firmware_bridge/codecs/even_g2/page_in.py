"""The page of simulated glasses: its containers, what is on them, and which commands it refuses."""

from dataclasses import dataclass, field
from typing import Any, Final

from firmware_bridge.codecs.even_g2 import HEIGHT, LINE_HEIGHT, PAGE_BYTES, WIDTH
from firmware_bridge.codecs.even_g2.hub import BODY, LZ4, NO_COMPRESSION, Cmd, Code, Rect
from firmware_bridge.codecs.even_g2.picture import (
    MAX_HEIGHT,
    MAX_PICTURES,
    MAX_WIDTH,
    MIN_SIDE,
    read as read_picture,
    read_lz4,
)
from firmware_bridge.messages import MAX_LINES, ShowPage, TextLine, Tile
from firmware_bridge.protobuf import Message

MAX_CONTAINERS: Final = 12
MAX_TEXTS: Final = 8
MAX_NAME: Final = 16
MAX_ITEMS: Final = 20
MAX_ITEM: Final = 64
"""Entries of a list, and characters of each."""
LIST_ROW: Final = 40
"""Pixels from one entry to the next."""
MAX_UPDATE_BYTES: Final = 2000
MAX_FILE: Final = 64 * 1024
"""Bytes of one picture; the largest container needs 20 854."""


@dataclass(slots=True)
class TextBox:
    """A container of text."""

    name: str
    place: Rect
    text: str


@dataclass(slots=True)
class ListBox:
    """A container of entries, of which the wearer chooses one."""

    name: str
    place: Rect
    items: tuple[str, ...]
    takes_events: bool


@dataclass(slots=True)
class ImageBox:
    """A container of a picture: what it shows, and the file that is arriving."""

    name: str
    place: Rect
    tile: Tile | None = None
    file: bytearray = field(default_factory=bytearray)
    next: int = 0
    session: int = -1


class Refused(Exception):
    """A page is not made: `code`, or None where the glasses say nothing."""

    def __init__(self, code: Code | None) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class HubPageIn:
    """One page and its containers by their numbers."""

    texts: dict[int, TextBox] = field(default_factory=dict)
    lists: dict[int, ListBox] = field(default_factory=dict)
    images: dict[int, ImageBox] = field(default_factory=dict)

    @classmethod
    def parse(cls, body: Message, *, max_name: int = MAX_NAME) -> "HubPageIn":
        """Read the body of a create or rebuild. Raises `Refused` and `RemoteViolation`."""
        lists, texts, images = (body.messages(at, MAX_CONTAINERS + 1) for at in (2, 3, 4))
        count = len(lists) + len(texts) + len(images)
        takers = sum(box.integer(12) for box in lists) + sum(box.integer(11) for box in texts)
        too_many = len(lists) + len(texts) > MAX_TEXTS or len(images) > MAX_PICTURES
        if not 0 < count <= MAX_CONTAINERS or too_many or takers != 1 or body.integer(1) != count:
            raise Refused(None)
        page = cls()
        for box in texts:
            page.texts[box.integer(9)] = _text_box(box, max_name)
        for box in lists:
            page.lists[box.integer(9)] = _list_box(box, max_name)
        for box in images:
            page.images[box.integer(5)] = _image_box(box, max_name)
        names = [box.name for box in page.boxes() if box.name]
        if len(page.boxes()) < count or len(set(names)) < len(names):
            raise Refused(Code.BAD_CONTAINER)  # two containers of one number, or of one name
        return page

    def boxes(self) -> list[TextBox | ListBox | ImageBox]:
        return [*self.texts.values(), *self.lists.values(), *self.images.values()]

    def names(self) -> set[str]:
        """Return the names of its containers; some hosts leave them out."""
        return {box.name for box in self.boxes() if box.name}

    def chosen(self) -> dict[int, Any] | None:
        """Return the event of a choice in the list that takes events; None if none does."""
        for number, box in self.lists.items():
            if box.takes_events and box.items:
                return {1: number, 2: box.name, 3: box.items[0], 4: 0, 5: 0}
        return None

    def write(self, body: Message) -> bool:
        """Replace text from an offset on; an empty one changes nothing. False if refused."""
        box = self.texts.get(body.integer(1))
        new = body.data(5)
        if box is None or len(new) > MAX_UPDATE_BYTES or len(new) != body.integer(4):
            return False
        if new:
            old, offset = box.text.encode(), body.integer(3)
            whole = old[:offset] + new if offset else new
            box.text = whole[:MAX_UPDATE_BYTES].decode(errors="replace")
        return True

    def add(self, body: Message) -> tuple[bool, bool]:
        """Take a piece of a picture; return whether it is good, and whether the picture is whole.

        Raises `RemoteViolation` for a file that is no picture.
        """
        box, index, piece = self.images.get(body.integer(1)), body.integer(6), body.data(8)
        total, session = body.integer(4), body.integer(3)
        packing = body.integer(5)
        if box is None or len(piece) != body.integer(7) or total > MAX_FILE:
            return False, False
        if packing not in (NO_COMPRESSION, LZ4):
            return False, False
        if index == 0:
            box.file, box.session, box.next = bytearray(), session, 0
        elif index == box.next - 1 and session == box.session:
            return True, False  # repeated: its answer was lost
        if index != box.next or session != box.session:
            return False, False
        box.file += piece
        box.next += 1
        if len(box.file) < total:
            return True, False
        file = bytes(box.file)
        box.file = bytearray()
        box.tile = (read_lz4 if packing == LZ4 else read_picture)(file[:total], box.place)
        return True, True

    def shown(self) -> ShowPage:
        """Return what is on the lens."""
        lines = [
            TextLine(min(row, MAX_LINES - 1), item, box.place.x)
            for box in self.lists.values()
            for at, item in enumerate(box.items)
            if item.strip() and (row := (box.place.y + at * LIST_ROW) // LINE_HEIGHT) < MAX_LINES
        ]
        lines += [
            TextLine(row, text, box.place.x)
            for box in self.texts.values()
            for row, text in enumerate(box.text.split("\n"), box.place.y // LINE_HEIGHT)
            if text.strip() and row < MAX_LINES
        ]
        tiles = tuple(box.tile for box in self.images.values() if box.tile is not None)
        return ShowPage("g2", lines=tuple(lines[:MAX_LINES]), tiles=tiles)


def _text_box(box: Message, max_name: int) -> TextBox:
    place, name, text = _framed(box), _name(box, 10, max_name), box.data(12)
    if place.height < 40:
        raise Refused(Code.BAD_CONTAINER)
    if len(text) > PAGE_BYTES:
        raise Refused(Code.TOO_LARGE)
    return TextBox(name, place, text.decode(errors="replace"))


def _list_box(box: Message, max_name: int) -> ListBox:
    place, name = _framed(box), _name(box, 10, max_name)
    items = box.message(11).texts(4, MAX_ITEMS)
    if any(len(item) > MAX_ITEM for item in items):
        raise Refused(Code.TOO_LARGE)
    return ListBox(name, place, tuple(items), bool(box.integer(12)))


def _framed(box: Message) -> Rect:
    """Return the place of a container with a frame. Raises `Refused`."""
    border, colour, radius, padding = (box.integer(at) for at in (5, 6, 7, 8))
    if border > 5 or colour > 15 or radius > 10 or padding > 32:
        raise Refused(Code.BAD_CONTAINER)
    return _place(box)


def _image_box(box: Message, max_name: int) -> ImageBox:
    place = _place(box)
    fits = MIN_SIDE <= place.width <= MAX_WIDTH and MIN_SIDE <= place.height <= MAX_HEIGHT
    if not fits:
        raise Refused(Code.BAD_CONTAINER)
    return ImageBox(_name(box, 6, max_name), place)


def _place(box: Message) -> Rect:
    place = Rect(*(box.integer(at) for at in (1, 2, 3, 4)))
    if place.x + place.width > WIDTH or place.y + place.height > HEIGHT:
        raise Refused(Code.BAD_CONTAINER)
    return place


def _name(box: Message, at: int, most: int) -> str:
    name = box.text(at)
    if len(name) > most:
        raise Refused(Code.BAD_CONTAINER)
    return name


def body_of(message: Message, cmd: Cmd) -> Message:
    """Return the body of a command. Raises `RemoteViolation`."""
    return message.message(BODY[cmd])
