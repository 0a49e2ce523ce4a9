"""Contradictions between the public sources on the Mentra Live, as switches of simulated glasses;
we accept every form.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_live.sound import OLD_SOUND, SOUND
from firmware_bridge.codecs.mentra_live.stream import OLD_NAME
from firmware_bridge.codecs.mentra_live.wire import ByteOrder


class Dialect(Struct, frozen=True):
    """What one firmware says and understands. `build`: of its application."""

    order: ByteOrder = "big"
    chip_ready: bool = True
    build: int = 12
    device: str = "K900_LC3"
    sound: int = SOUND
    inflated: bool = True
    keeps_mtu: bool = True
    announces: bool = True
    selective: bool = True
    picture: str = "jpeg"
    frames: str = "json"
    answers_light: bool = True
    finishes_scan: bool = True
    names_network: bool = True
    stream: str = OLD_NAME
    names_axes: bool = True
    batched: bool = False
    cuts_sound: bool = False


STOCK: Final = Dialect()


class Conflict(Struct, frozen=True):
    """One contradiction: its values, the usual first, each with the fields it changes."""

    name: str
    reason: str
    values: Mapping[str, Mapping[str, Any]]


CONFLICTS: Final = (
    Conflict(
        "length-order",
        "glasses send the length of a frame big-endian, later builds little-endian; "
        "the order for which the frame's end is in its place is taken",
        {"big": {}, "little": {"order": "little"}},
    ),
    Conflict(
        "start",
        "in MentraOS of 2026 the chip says when the glasses are ready (cs_hrt), in AugmentOS of "
        "2025 the phone is only answered: both are tried",
        {"chip": {}, "application": {"chip_ready": False}},
    ),
    Conflict(
        "acknowledge",
        "messages are acknowledged from build 5 on; older builds get no numbers and no repetitions",
        {"yes": {}, "no": {"build": 4}},
    ),
    Conflict(
        "sound-first-byte",
        "sound begins with F1; dead code of 2025 looks for A0; both are taken",
        {"F1": {}, "A0": {"sound": OLD_SOUND}},
    ),
    Conflict(
        "low-energy-sound",
        "only variants of the hardware have sound over Bluetooth LE; the base model says K900",
        {"yes": {}, "no": {"device": "K900"}},
    ),
    Conflict(
        "announced-size",
        "the announced size of a file is inflated to 400 bytes a packet, or it is the real one",
        {"inflated": {}, "real": {"inflated": False}},
    ),
    Conflict(
        "file-packet",
        "file packets have 400 bytes, or what fits the packet size that the phone said",
        {"fits": {}, "400": {"keeps_mtu": False}},
    ),
    Conflict(
        "file-announcement",
        "a file is announced by a message with its number of packets, or by nothing",
        {"yes": {}, "no": {"announces": False}},
    ),
    Conflict(
        "missing-packets",
        "when packets are missing, some firmware sends only these again, some the whole file",
        {"asked": {}, "all": {"selective": False}},
    ),
    Conflict(
        "picture",
        "photos over Bluetooth are AVIF or JPEG, as the firmware was built",
        {"jpeg": {}, "avif": {"picture": "avif"}},
    ),
    Conflict(
        "frames",
        "later builds send their messages in fragments, some with short keys; both are understood",
        {"json": {}, "v2": {"frames": "v2"}},
    ),
    Conflict(
        "light-answer",
        "later builds answer an order for the light, others only acknowledge the message",
        {"yes": {}, "no": {"answers_light": False}},
    ),
    Conflict(
        "wifi-scan",
        "later builds send networks as they are found and say which message is the last one, "
        "others send one list of names",
        {"finished": {}, "names": {"finishes_scan": False}},
    ),
    Conflict(
        "wifi-name",
        "the state of the Wi-Fi comes with the network's name and address, or without",
        {"yes": {}, "no": {"names_network": False}},
    ),
    Conflict(
        "stream-orders",
        "orders for a video stream are named start_rtmp_stream, in later builds start_stream; "
        "the first that is answered is kept to",
        {"rtmp_stream": {}, "stream": {"stream": "stream"}},
    ),
    Conflict(
        "motion",
        "the motion sensor's three numbers are named x, y and z, or in a list",
        {"named": {}, "listed": {"names_axes": False}},
    ),
    Conflict(
        "file-acknowledgement",
        "the chip acknowledges the packets of a file itself; later builds ask the phone to do it, "
        "every eight packets",
        {"chip": {}, "phone": {"batched": True}},
    ),
    Conflict(
        "sound-packet",
        "sound packets are as large as one notification holds, or ten frames, which the chip cuts "
        "in two",
        {"fits": {}, "cut": {"cuts_sound": True}},
    ),
)
