"""Even Realities G2: how it is recognised, what it can do, and its quirks with their reasons."""

from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.codecs.even_g2 import (
    FILE,
    FILE_ANSWER,
    FILE_RX_UUID,
    FILE_SERVICE_UUID,
    FILE_TX_UUID,
    HEIGHT,
    LINE_HEIGHT,
    LINES,
    PAGE_BYTES,
    RX_UUID,
    SERVICE_UUID,
    SOUND,
    SOUND_SERVICE_UUID,
    SOUND_UUID,
    TEXT_WIDTH,
    TX_UUID,
    WIDTH,
    arm_of,
)
from firmware_bridge.metrics import metrics_for
from firmware_bridge.models import NOTHING, Channel, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_FONT: Final = "g1-21"


def _codec(max_packet: int, *, role: Role = Role.CENTRAL, side: Side | None = None) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.even_g2.peripheral import EvenG2Arm  # noqa: PLC0415 - for the simulator only

        return EvenG2Arm(side or Side.LEFT, max_packet=max_packet)
    from firmware_bridge.codecs.even_g2.central import EvenG2Codec  # noqa: PLC0415 - for a G2 only

    return EvenG2Codec(width=metrics_for(_FONT).width, max_packet=max_packet)


CONFLICTS: Final = (
    Quirk(
        "fragment-size",
        "fragments carry 236 bytes and the checksum on top (vendor, MentraOS, two others), or 232 "
        "with it, whole (g2-kit) or split (faceclaw); the glasses join both; we send 236",
    ),
    Quirk(
        "zeros",
        "fields that are zero are written (MentraOS) or left out (g2-kit); "
        "we leave them out, and read both",
    ),
    Quirk(
        "container-name",
        "a text update names its container or leaves that out (men-g2); names have at most 14 "
        "(g2-kit) or 16 characters (vendor); ours have 14 at most and are sent",
    ),
    Quirk(
        "widget-id",
        "a new page has the widget id 10000 (g2-kit, faceclaw) or none (MentraOS); we send none",
    ),
    Quirk(
        "time",
        "the clock takes UTC with a zone in quarter hours (vendor), or wall time with zone 0 "
        "(three hosts); both show the right time; we send wall time",
    ),
    Quirk(
        "page-heartbeat",
        "a page's heartbeat comes every 5 s without contents (three hosts) or every 10 s with a "
        "zero (MentraOS); a page without it is gone after 10 s, so we send it every 5 s",
    ),
    Quirk(
        "motion-request",
        "motion is asked for in field 22 (g2-kit, faceclaw) or 20 (MentraOS); "
        "we try the other one where the first is not taken",
    ),
    Quirk(
        "motion-numbers",
        "motion comes in 32-bit (faceclaw) or 64-bit numbers (schema of g2-kit); both are read",
    ),
    Quirk(
        "first-arm",
        "the left arm is connected first (vendor, MentraOS) or the right one; "
        "both work; we begin with the left",
    ),
    Quirk(
        "image-session",
        "a picture's updates carry a number of their own, or that of the container (faceclaw); "
        "ours are numbered",
    ),
    Quirk(
        "image-arms",
        "one host repeats pictures to the left arm (faceclaw); we send them to the right one only",
    ),
    Quirk(
        "exit-events",
        "after an exit event the page is gone (MentraOS), or still there (men-g2: some firmware "
        "sends it while it recovers); we look for the page, and go by what the glasses answer",
    ),
    Quirk(
        "page-gone",
        "a text for a page that is gone is refused, or not answered at all; "
        "in both cases the page is created again",
    ),
    Quirk(
        "settings-reply-flag",
        "answers about settings come with flag 00 (capture) or 01 (two captures); both are taken",
    ),
    Quirk(
        "wake-word-speed",
        "the wake word is configured with speed 32 (vendor, MentraOS) or 80 (men-g2); "
        "we send 32 when we switch it off",
    ),
    Quirk(
        "auth",
        "a session begins with an authentication (four hosts), or works without (g2-kit, "
        "faceclaw); we send it, and go on without an answer",
    ),
    Quirk(
        "bonding",
        "the glasses ask to pair after the first message of a link that is not encrypted "
        "(captured), which one prose denies; we pair before, and go on where nobody asks",
    ),
    Quirk(
        "sound-arm",
        "the microphone is heard from the left arm, or from both; the left one's sound is taken "
        "where there is any",
    ),
)
"""Contradictions between the public sources on the Even G2 (listed in wire.py). What the glasses
send is accepted in every form.
"""

_G2: Final = Model(
    key="even_g2",
    title="Even Realities G2",
    gatt=Gatt(
        service=SERVICE_UUID,
        rx=RX_UUID,
        tx=TX_UUID,
        channels=(
            Channel(SOUND, SOUND_SERVICE_UUID, SOUND_UUID, notify=True, optional=True),
            Channel(FILE, FILE_SERVICE_UUID, FILE_RX_UUID, write=True, optional=True),
            Channel(FILE_ANSWER, FILE_SERVICE_UUID, FILE_TX_UUID, notify=True, optional=True),
        ),
    ),
    codec=_codec,
    firmware_models=("G2",),
    capabilities=MappingProxyType(
        {
            **NOTHING,
            "display": True,
            "display.width": WIDTH,
            "display.height": HEIGHT,
            "display.bpp": 4,
            "display.text_width": TEXT_WIDTH,
            "display.lines": LINES,
            "display.font": _FONT,
            "display.line_height": LINE_HEIGHT,
            "display.page_bytes": PAGE_BYTES,
            "display.bitmap": True,
            "display.tiles": False,
            "display.count": 2,
            "display.is_color": False,
            "display.color": "green",
            "display.brightness": True,
            "display.silent": True,
            "display.notifications": True,
            "display.position": True,
            "display.dashboard": True,
            "display.dashboard_content": True,
            "clock": True,
            "microphone": True,
            "microphone.codecs": "lc3",
            "microphone.count": 1,
            "microphone.vad": False,
            "imu": True,
            "prompt": False,
            "gestures": "tap,double_tap,button_long",
        }
    ),
    font=_FONT,
    arms=arm_of,
    pairing=Pairing.JUST_WORKS,
    simulator="firmware_bridge.sim.even_g2",
    quirks=(
        Quirk(
            "name-alone",
            "both arms are recognised by the name in their scan response: "
            "they advertise no service (captured)",
        ),
        Quirk(
            "lens-font",
            "text is measured with our font at 21 px, which is wider than the glasses' own: "
            "what fits here fits there, and columns made of spaces may stand further left",
        ),
        Quirk(
            "no-lit-count",
            "the glasses say that a page was taken, not how much of it was lit: "
            "pages are acknowledged, not counted",
        ),
        Quirk(
            "right-arm",
            "pages, settings and the microphone's switch go to the right arm: "
            "without it nothing can be shown",
        ),
        Quirk(
            "slow-pictures",
            "pictures arrive at about 9 kB/s: only what is lit is sent, "
            "and a picture over the whole lens takes longer than a page may",
        ),
        Quirk(
            "swipes",
            "swipes scroll the glasses' own text; they turn no page, and are not reported",
        ),
        Quirk(
            "long-press",
            "a long press reaches pages only with the vendor's software 2.2.9 or newer; "
            "before that it opens the glasses' own menu",
        ),
        Quirk(
            "own-assistant",
            "the wake word is switched off at the start of a session: "
            "the glasses' own assistant would take the lens",
        ),
        Quirk(
            "dashboard-parts",
            "weather, calendar and a list of things to do are known; "
            "what the numbers of its layout mean is not, so a layout is refused",
        ),
        Quirk(
            "compressed-pictures",
            "firmware from 2.2.6.10 on takes pictures as LZ4 blocks; one host alone says so, "
            "and not what a byte of them is: ours are not compressed, the simulator takes them",
        ),
        *CONFLICTS,
    ),
)

MODELS: Final = (_G2,)
