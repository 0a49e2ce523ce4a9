"""Even Realities G1: how it is recognised, what it can do, and its quirks with their reasons."""

from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.codecs.even_g1 import wire as g1
from firmware_bridge.codecs.even_g1.conflicts import CONFLICTS
from firmware_bridge.metrics import metrics_for
from firmware_bridge.models import NOTHING, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_GLYPHS: Final = "3000-30ff:18 4e00-9fff:18 ff01-ff5e:18 ac00-d7a3:24"
"""Han, kana and their punctuation; Hangul."""


def _codec(max_packet: int, *, role: Role = Role.CENTRAL, side: Side | None = None) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm  # noqa: PLC0415 - for the simulator only

        return EvenG1Arm(side or Side.LEFT, max_packet=max_packet)
    from firmware_bridge.codecs.even_g1.central import EvenG1Codec  # noqa: PLC0415 - for a G1 only

    return EvenG1Codec(width=metrics_for("g1-21", _GLYPHS).width, max_packet=max_packet)


_G1: Final = Model(
    key="even_g1",
    title="Even Realities G1",
    gatt=Gatt(service=g1.SERVICE_UUID, rx=g1.RX_UUID, tx=g1.TX_UUID),
    codec=_codec,
    firmware_models=("G1",),
    capabilities=MappingProxyType(
        {
            **NOTHING,
            "display": True,
            "display.width": g1.WIDTH,
            "display.height": g1.HEIGHT,
            "display.bpp": 1,
            "display.text_width": g1.TEXT_WIDTH,
            "display.lines": g1.LINES,
            "display.font": "g1-21",
            "display.glyphs": _GLYPHS,
            "display.line_height": 27,
            "display.page_bytes": g1.PAGE_BYTES,
            "display.bitmap": True,
            "display.tiles": False,
            "display.count": 2,
            "display.is_color": False,
            "display.color": "green",
            "display.brightness": True,
            "display.silent": True,
            "display.position": True,
            "display.notifications": True,
            "display.dashboard": True,
            "display.dashboard_content": True,
            "display.map_width": g1.MAP_WIDTH,
            "display.map_height": g1.HEIGHT,
            "display.route_width": g1.HEIGHT,
            "display.route_height": g1.HEIGHT,
            "display.preferences": True,
            "display.restart": True,
            "display.navigation": True,
            "display.translation": True,
            "clock": True,
            "microphone": True,
            "microphone.notes": True,
            "microphone.codecs": "lc3",
            "microphone.count": 1,
            "microphone.vad": False,
            "prompt": False,
            "gestures": "tap,double_tap,head_up,head_down,button_long",
        }
    ),
    font="g1-21",
    arms=g1.arm_of,
    pairing=Pairing.JUST_WORKS,
    simulator="firmware_bridge.sim.even_g1",
    quirks=(
        Quirk(
            "name-alone",
            "both arms are recognised by name; no source says that they advertise their service",
        ),
        Quirk(
            "lens-font",
            "its font is not published: text is measured with our font at 21 px, "
            "the size and the 488 px its demo uses",
        ),
        Quirk(
            "cjk-by-mentraos",
            "that it draws Chinese, Japanese (18 px a character) and Korean (24 px) is from "
            "MentraOS's table of widths, not yet seen on real glasses",
        ),
        Quirk(
            "no-lit-count",
            "C9 says that a page was taken, not how much of it was "
            "lit: pages are acknowledged, not shown",
        ),
        Quirk(
            "text-or-picture",
            "the lens holds text or one whole picture, never parts of both; columns become spaces",
        ),
        Quirk(
            "sound-30-s",
            "a recording ends by itself after 30 s; "
            "a microphone that falls silent is switched on again",
        ),
        Quirk(
            "hangs-up",
            "an arm disconnects 32 s after its last packet; "
            "each gets a heartbeat after 8 s without any",
        ),
        Quirk(
            "shown-then-kept",
            "height and depth are refused unless the glasses showed them before; "
            "we keep them after 5 s, as a host tested on hardware",
        ),
        *(Quirk(conflict.name, conflict.reason) for conflict in CONFLICTS),
    ),
)
"""390 bytes a page are the smallest payload that every known host stays under."""

MODELS: Final = (_G1,)
