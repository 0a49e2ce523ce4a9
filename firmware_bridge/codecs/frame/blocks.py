"""Pictures that hosts send to a simulated Frame in strips, and text as a picture of each line
(TxImageSpriteBlock, TxTextSpriteBlock of frame-msg 5.2.1): a header, then one sprite after another.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from firmware_bridge.codecs.frame.wire import HEIGHT, Sprite
from firmware_bridge.errors import RemoteViolation, Violation

MARK: Final = 0xFF
"""First byte of a header; no sprite begins with it."""
_IMAGE_BYTES: Final = 9
_TEXT_BYTES: Final = 5


class ImageBlock(NamedTuple):
    """Strips of `line_height` below each other. `progressive`: each is drawn when it is there."""

    height: int
    line_height: int
    progressive: bool
    updatable: bool


class TextBlock(NamedTuple):
    """Lines at their places, of which the newest `rows` are drawn."""

    rows: int
    places: tuple[tuple[int, int], ...]


class Block:
    """The sprites of one header. Used once."""

    def __init__(self, header: ImageBlock | TextBlock) -> None:
        self._header = header
        self._sprites: dict[int, Sprite] = {}
        self._next = 0

    def add(self, sprite: Sprite) -> Sequence[tuple[int, int, Sprite]]:
        """Take a sprite; return place (from 0) and sprite of all that is drawn now."""
        header = self._header
        if isinstance(header, ImageBlock):
            return self._strip(header, sprite)
        if self._next < len(header.places):
            self._sprites[self._next] = sprite
            self._next += 1
        kept = range(max(0, self._next - header.rows), self._next)
        return [(*header.places[line], self._sprites[line]) for line in kept]

    def _strip(self, header: ImageBlock, sprite: Sprite) -> Sequence[tuple[int, int, Sprite]]:
        total = -(-header.height // header.line_height)
        if self._next == total and header.updatable:
            self._next = 0
        if self._next < total:
            self._sprites[self._next] = sprite
            self._next += 1
        if not header.progressive and len(self._sprites) < total:
            return []
        return [(0, at * header.line_height, each) for at, each in self._sprites.items()]


def read_header(payload: bytes) -> ImageBlock | TextBlock:
    """Read the header of a block. Raises `RemoteViolation`. One of nine bytes is a text's of one
    line only if it cannot be an image's.
    """
    if len(payload) >= _IMAGE_BYTES:
        height, line_height = (int.from_bytes(payload[at : at + 2], "big") for at in (3, 5))
        flags = payload[7:9]
        if len(payload) == _IMAGE_BYTES and 0 < height <= HEIGHT and line_height and max(flags) < 2:
            return ImageBlock(height, line_height, flags[0] == 1, flags[1] == 1)
    if len(payload) >= _TEXT_BYTES and len(payload) == _TEXT_BYTES + 4 * payload[4]:
        numbers = [int.from_bytes(payload[at : at + 2], "big") for at in range(5, len(payload), 2)]
        return TextBlock(payload[3], tuple(zip(numbers[::2], numbers[1::2], strict=True)))
    raise RemoteViolation(Violation.BAD_MESSAGE, f"a block of sprites {payload[:9].hex()}")
