"""Mentra Display ("Nex"): how it is recognised, what it can do, and its quirks with reasons."""

from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.metrics import metrics_for
from firmware_bridge.models import NOTHING, Advertisement, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_NAMES: Final = ("Nex1-", "MENTRA_DISPLAY_", "NexSim")
_FONT: Final = "lens-22"


def _codec(
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.mentra_nex.peripheral import MentraNexGlasses  # noqa: PLC0415 - for the simulator only

        return MentraNexGlasses(max_packet=max_packet)
    from firmware_bridge.codecs.mentra_nex.central import MentraNexCodec  # noqa: PLC0415 - for a Mentra Display only

    return MentraNexCodec(width=metrics_for(_FONT).width, max_packet=max_packet)


def _recognises(heard: Advertisement) -> bool:
    """The Mentra Live has the same service with another protocol: the name decides."""
    return heard.name is not None and any(name in heard.name for name in _NAMES)


_NEX: Final = Model(
    key="mentra_nex",
    title="Mentra Display (Nex)",
    gatt=Gatt(
        service="00004860-0000-1000-8000-00805f9b34fb",
        rx="000071ff-0000-1000-8000-00805f9b34fb",
        tx="000070ff-0000-1000-8000-00805f9b34fb",
    ),
    codec=_codec,
    recognises=_recognises,
    firmware_models=("mentra_nex",),
    capabilities=MappingProxyType(
        {
            **NOTHING,
            "display": True,
            "display.width": 500,
            "display.height": 220,
            "display.bpp": 1,
            "display.text_width": 229,
            "display.lines": 4,
            "display.font": _FONT,
            "display.line_height": 27,
            "display.page_bytes": 360,
            "display.bitmap": True,
            "display.tiles": False,
            "display.count": 1,
            "display.is_color": False,
            "display.color": "green",
            "display.brightness": True,
            "display.position": True,
            "display.silent": True,
            "display.restart": True,
            "microphone": True,
            "microphone.codecs": "lc3",
            "microphone.count": 1,
            "microphone.vad": True,
            "button": True,
            "prompt": False,
            "gestures": "tap,double_tap,button_long,head_up,head_down,nod,shake",
        }
    ),
    font=_FONT,
    pairing=Pairing.JUST_WORKS,
    simulator="firmware_bridge.sim.mentra_nex",
    quirks=(
        Quirk(
            "name-alone",
            "the Mentra Live of the same maker has the same service and another protocol",
        ),
        Quirk(
            "text-size-48",
            "text is sent as the applications send it, 48 px high at 20, 260; its font is not "
            "published, so rows are measured with our font at 22 px and scaled: 229 of 500 px",
        ),
        Quirk(
            "few-characters",
            "the applications remove all but ASCII letters, digits and some signs; near ones are "
            "sent instead, a page with others is refused",
        ),
        Quirk(
            "nothing-answered",
            "no answer follows a page; the battery is asked for after it, and that answer shows "
            "that it came: pages are acknowledged, not shown",
        ),
        Quirk(
            "clear-then-draw",
            "by the schema drawing waits for a commit, the applications send none: the lens is "
            "cleared, the text sent, then committed, which is right for both",
        ),
        Quirk(
            "three-framings",
            "messages come whole, in fragments or as JSON, which nothing announces: the first "
            "question is asked in each way until it is answered",
        ),
        Quirk(
            "two-schemas",
            "the older schema has a font in its texts and other numbers: it is known by its answer "
            "to a ping, which is a pong in the newer one, or by having no answer about its version",
        ),
        Quirk(
            "silent-is-dark",
            "they know no silent mode; their display is switched off instead, buttons and head "
            "gestures are still reported",
        ),
        Quirk(
            "position-tiers",
            "the distance of the picture is in centimetres by the schema, one of four tiers by the "
            "applications: tiers are sent",
        ),
        Quirk(
            "sound-second-byte",
            "the byte after A0 is a running number or always 1: then packets are counted",
        ),
        Quirk(
            "chunk-checksum",
            "an older firmware wants a CRC-16 in picture chunks: they get one when all are missing",
        ),
    ),
)

MODELS: Final = (_NEX,)
