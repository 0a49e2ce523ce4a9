"""A page as messages to the program, and what the program says about it as a reply."""

from collections import deque
from collections.abc import Callable
from functools import partial

from firmware_bridge.codecs.frame.jobs import Job, Message
from firmware_bridge.codecs.frame.picture import lit, sprites_of
from firmware_bridge.codecs.frame.wire import (
    LINE_HEIGHT,
    LINES,
    WIDTH,
    From,
    Place,
    PlainText,
    To,
    place_bytes,
    sprite_bytes,
    text_bytes,
)
from firmware_bridge.messages import Done, Failed, Reply, ShowPage, TextLine


def page_job(page: ShowPage, number: int, width: Callable[[str], float]) -> Job:
    """Return the messages that draw a page and show it. `number` tells pages apart."""
    messages: deque[Message] = deque()
    letters = sprites = pixels = clipped = 0
    for x, y, sprite in sprites_of(page.tiles):
        messages.append((To.SPRITE, sprite_bytes(sprite)))
        messages.append((To.PLACE, place_bytes(Place(To.SPRITE, x + 1, y + 1))))
        sprites, pixels = sprites + 1, pixels + lit(sprite)
    for line in page.lines:
        if not _fits(line, width):
            clipped += 1
        if line.row < LINES and line.x < WIDTH and line.text.strip(" "):
            text = PlainText(line.x + 1, line.row * LINE_HEIGHT + 1, line.text)
            messages.append((To.TEXT, text_bytes(text)))
            letters += len(line.text) - line.text.count(" ")
    messages.append((To.SHOW, number.to_bytes(2, "big")))
    judge = partial(_judge, number, letters, sprites, pixels, clipped)
    return Job(messages, judge=judge, answer=From.SHOWN, is_page=True)


def _fits(line: TextLine, width: Callable[[str], float]) -> bool:
    return line.row < LINES and line.x + width(line.text) <= WIDTH


def _judge(
    number: int, letters: int, sprites: int, pixels: int, clipped: int, answer: bytes | None
) -> Reply:
    """Return what is on the lens as the program counted it. A character lights at least one pixel;
    how many more is not known.
    """
    if answer is None or len(answer) < 6:
        return Failed("interrupted", "the glasses took the page, but do not say that it is shown")
    said = [int.from_bytes(answer[at : at + 2], "big") for at in (0, 2, 4)]
    if said != [number, letters & 0xFFFF, sprites & 0xFFFF]:
        return Failed(
            "interrupted",
            f"the glasses show page {said[0]} with {said[1]} letters and {said[2]} pictures, "
            f"not page {number} with {letters} and {sprites}",
        )
    return Done(drawn=letters + pixels, clipped=clipped)
