"""Frame, Halo and Monocle, and where they differ: lens, photos, sound, and how they are controlled.

Sources of Halo: its firmware (halo-firmware: PROTOCOL.md, BLE_SERVICES.md, PAIRING.md, and its
display, font, Bluetooth, file and Lua modules), and the host packages brilliant-ble 3.5.1 and
brilliant-msg 7.3.0.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.frame.wire import HEIGHT, LINE_HEIGHT, WIDTH, Capture
from firmware_bridge.messages import PhotoSize


class FrameHardware(Struct, frozen=True):
    """One kind of glasses.

    `key`: of its model, its font, and its part of the program. `screen`: pixels that it draws.
    `left`, `top`, `width`, `height`: the part of them that pages use. `last_glyph`: the last
    character that it can draw. `turned`: degrees clockwise until its photos are upright.

    `is_halo`: with control bytes 02 and 05 to 07, a speaker, a button, a queue of packets, and no
    limit of one notification at a time. `is_monocle`: with MicroPython, whose prompt has channels
    of its own, with touch pads instead of taps and no sense of the head, with a queue of packets,
    with text only, and with sound whose bytes come in the other order.
    """

    key: str
    name: str
    screen: tuple[int, int]
    left: int
    top: int
    width: int
    height: int
    line_height: int
    captures: Mapping[PhotoSize, Capture]
    turned: int
    last_glyph: str = "\U0010ffff"
    is_halo: bool = False
    is_monocle: bool = False

    @property
    def lines(self) -> int:
        return self.height // self.line_height

    def can_draw(self, text: str) -> bool:
        return all(ch <= self.last_glyph for ch in text)


FRAME: Final = FrameHardware(
    key="frame",
    name="Frame",
    screen=(WIDTH, HEIGHT),
    left=0,
    top=0,
    width=WIDTH,
    height=HEIGHT,
    line_height=LINE_HEIGHT,
    captures=MappingProxyType(
        {
            PhotoSize.SMALL: Capture(2, 320),
            PhotoSize.MEDIUM: Capture(3, 512),
            PhotoSize.LARGE: Capture(4, 720),
        }
    ),
    turned=270,
)
HALO: Final = FrameHardware(
    key="halo",
    name="Halo",
    screen=(256, 256),
    left=32,
    top=44,
    width=192,
    height=168,
    line_height=12,
    captures=MappingProxyType(
        {
            PhotoSize.SMALL: Capture(1, 640),
            PhotoSize.MEDIUM: Capture(3, 640),
            PhotoSize.LARGE: Capture(4, 640),
        }
    ),
    turned=270,
    last_glyph="~",
    is_halo=True,
)
"""Its lens is round: a rectangle of 192 × 168 pixels fits into a circle of 256. Its font has 8
pixels, each character 8 wide, and ASCII only; its camera has one resolution.
"""
MONOCLE: Final = FrameHardware(
    key="monocle",
    name="Monocle",
    screen=(WIDTH, HEIGHT),
    left=0,
    top=0,
    width=WIDTH,
    height=HEIGHT,
    line_height=50,
    captures=MappingProxyType(dict.fromkeys(PhotoSize, Capture(4, 640))),
    turned=0,
    last_glyph="~",
    is_monocle=True,
)
"""Each character is 24 pixels wide and 48 high, and its firmware refuses texts that touch: lines
are 50 apart. Its camera has one size and quality.
"""
BY_KEY: Final = MappingProxyType({each.key: each for each in (FRAME, HALO, MONOCLE)})
