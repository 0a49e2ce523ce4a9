"""Brilliant Labs Frame: how it is recognised, what it can do, and its quirks with their reasons."""

import re
from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.models import NOTHING, Advertisement, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_SERVICE: Final = "7a230001-5475-a6a4-654c-8431f6ad49c4"
_NAME: Final = re.compile(r"Frame [0-9A-F]{2}")


def _codec(
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.frame.peripheral import FramePeripheral  # noqa: PLC0415 - for the simulator only

        return FramePeripheral(max_packet=max_packet)
    from firmware_bridge.codecs.frame.central import FrameCodec  # noqa: PLC0415 - for a Frame only
    from firmware_bridge.metrics import metrics_for  # noqa: PLC0415 - as above

    return FrameCodec(width=metrics_for("frame").width, max_packet=max_packet)


def is_frame(heard: Advertisement) -> bool:
    """Return whether it is a Frame: Halo has the same service and another name."""
    named = heard.name is not None and _NAME.fullmatch(heard.name) is not None
    return named and _SERVICE in heard.service_uuids


_FRAME: Final = Model(
    key="frame",
    title="Brilliant Labs Frame",
    gatt=Gatt(
        service=_SERVICE,
        rx="7a230002-5475-a6a4-654c-8431f6ad49c4",
        tx="7a230003-5475-a6a4-654c-8431f6ad49c4",
    ),
    codec=_codec,
    recognises=is_frame,
    firmware_models=("Frame",),
    capabilities=MappingProxyType(
        {
            **NOTHING,
            "display": True,
            "display.width": 640,
            "display.height": 400,
            "display.bpp": 4,
            "display.lines": 6,
            "display.font": "frame",
            "display.line_height": 60,
            "display.page_bytes": 1024,
            "display.bitmap": True,
            "display.tiles": True,
            "display.count": 1,
            "display.is_color": False,
            "display.brightness": True,
            "microphone": True,
            "microphone.codecs": "pcm16",
            "microphone.count": 1,
            "microphone.vad": False,
            "camera": True,
            "camera.width": 720,
            "camera.height": 720,
            "prompt": False,
            "gestures": "tap,double_tap",
        }
    ),
    font="frame",
    pairing=Pairing.JUST_WORKS,
    hello_s=30.0,
    simulator="firmware_bridge.sim.frame",
    quirks=(
        Quirk(
            "own-program",
            "the glasses run Lua: glassd uploads a program of its own (glassd_app.lua) and starts "
            "it; other programs on the glasses are stopped meanwhile, their files stay",
        ),
        Quirk(
            "slow-greeting",
            "uploading the program takes some seconds, once for each version of it",
        ),
        Quirk(
            "letters-are-counted",
            "the program says how many characters and pictures it drew, not how many pixels are "
            "lit: each character counts as one pixel, which is less than there are",
        ),
        Quirk(
            "published-widths",
            "text is measured with the widths that the maker's SDK publishes (frame-sdk 1.2.4), "
            "4 pixels between characters; not yet compared with real glasses",
        ),
        Quirk(
            "greys",
            "the palette of 16 colours is set to greys: pages have brightness, no colours",
        ),
        Quirk(
            "small-pictures",
            "one packet is on its way at a time, about 8 kB/s: pictures of more than 24 kB are "
            "sent with fewer bits per pixel, so that a page arrives within its 5 s",
        ),
        Quirk(
            "whole-pages",
            "showing replaces all that was on the lens, so a changed row sends the whole page",
        ),
        Quirk(
            "turned-photos",
            "photos lie on their side: they must be turned by 270° clockwise (frame-msg)",
        ),
        Quirk(
            "tap-codes",
            "a tap is 09 in frame-msg and 04 in the maker's SDK: both are understood",
        ),
    ),
)

MODELS: Final = (_FRAME,)
