"""A page as messages to the program, and what the program says about it as a reply."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from firmware_bridge.codecs.frame.hardware import FrameHardware
from firmware_bridge.codecs.frame.jobs import Job, Message
from firmware_bridge.codecs.frame.picture import lit, sprites_of
from firmware_bridge.codecs.frame.wire import (
    From,
    Place,
    PlainText,
    To,
    place_bytes,
    sprite_bytes,
    text_bytes,
)
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import Done, Failed, Reply, ShowPage, TextLine


class _Drawn(NamedTuple):
    """What a page has: characters without spaces, sprites, lit pixels of those, clipped lines."""

    number: int
    letters: int
    sprites: int
    pixels: int
    clipped: int

    def judge(self, answer: bytes | None) -> Reply:
        """Return what is on the lens as the program counted it. A character lights at least one
        pixel; how many more is not known.
        """
        if answer is None or len(answer) < 6:
            why = "the glasses took the page, but do not say that it is shown"
            return Failed("interrupted", why)
        number, letters, sprites = (int.from_bytes(answer[at : at + 2], "big") for at in (0, 2, 4))
        if (number, letters, sprites) != (self.number, self.letters & 0xFFFF, self.sprites):
            why = (
                f"the glasses show page {number} with {letters} letters and {sprites} pictures, "
                f"not page {self.number} with {self.letters} and {self.sprites}"
            )
            return Failed("interrupted", why)
        return Done(drawn=self.letters + self.pixels, clipped=self.clipped)


def page_job(
    page: ShowPage, number: int, width: Callable[[str], float], hardware: FrameHardware
) -> Job:
    """Return the messages that draw a page and show it. `number` tells pages apart. Raises
    `CommandRefused` for pictures on glasses that show none.
    """
    messages: deque[Message] = deque()
    letters = sprites = pixels = clipped = 0
    left, top = hardware.left + 1, hardware.top + 1
    if page.tiles and hardware.is_monocle:
        raise CommandRefused("unsupported", "Monocle shows text only")
    for x, y, sprite in sprites_of(page.tiles, width=hardware.width, height=hardware.height):
        messages.append((To.SPRITE, sprite_bytes(sprite)))
        messages.append((To.PLACE, place_bytes(Place(To.SPRITE, left + x, top + y))))
        sprites, pixels = sprites + 1, pixels + lit(sprite)
    for line in page.lines:
        if not _fits(line, width, hardware):
            clipped += 1
        if line.row < hardware.lines and line.x < hardware.width and line.text.strip(" "):
            text = _drawable(line.text, hardware)
            place = left + line.x, top + line.row * hardware.line_height
            messages.append((To.TEXT, text_bytes(PlainText(*place, text))))
            letters += len(text) - text.count(" ")
    messages.append((To.SHOW, number.to_bytes(2, "big")))
    drawn = _Drawn(number, letters, sprites, pixels, clipped)
    return Job(messages, judge=drawn.judge, answer=From.SHOWN, is_page=True)


def _fits(line: TextLine, width: Callable[[str], float], hardware: FrameHardware) -> bool:
    """Return whether all of a line will be on the lens."""
    across = line.x + width(line.text)
    return line.row < hardware.lines and across <= hardware.width and hardware.can_draw(line.text)


def _drawable(text: str, hardware: FrameHardware) -> str:
    """Return text with a question mark for each character that the glasses would leave out."""
    if hardware.can_draw(text):
        return text
    return "".join(ch if hardware.can_draw(ch) else "?" for ch in text)
