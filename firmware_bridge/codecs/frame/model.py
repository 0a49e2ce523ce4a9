"""Brilliant Labs Frame, Halo and Monocle: how they are recognised, what they can do, and their
quirks with their reasons.
"""

import re
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.models import NOTHING, Advertisement, Channel, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_SERVICE: Final = "7a230001-5475-a6a4-654c-8431f6ad49c4"
_RX: Final = "7a230002-5475-a6a4-654c-8431f6ad49c4"
_TX: Final = "7a230003-5475-a6a4-654c-8431f6ad49c4"
_NAME: Final = re.compile(r"Frame [0-9A-F]{2}")
_PROMPT_SERVICE: Final = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
_DATA_SERVICE: Final = "e5700001-7bac-429a-b4ce-57ff900f479d"
_HALO_NAME: Final = re.compile(r"Halo [0-9A-Fa-f]{2}")


def _codec(
    key: str,
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[Any]:
    from firmware_bridge.codecs.frame.hardware import BY_KEY  # noqa: PLC0415 - for these glasses only

    hardware = BY_KEY[key]
    if role is Role.PERIPHERAL and hardware.is_monocle:
        from firmware_bridge.codecs.frame.monocle import MonoclePeripheral  # noqa: PLC0415 - as below

        return MonoclePeripheral(max_packet=max_packet)
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.frame.device import FrameDevice  # noqa: PLC0415 - for the simulator only
        from firmware_bridge.codecs.frame.peripheral import FramePeripheral  # noqa: PLC0415 - as above

        return FramePeripheral(max_packet=max_packet, device=FrameDevice(hardware=hardware))
    from firmware_bridge.codecs.frame.central import FrameCodec  # noqa: PLC0415 - for these glasses only
    from firmware_bridge.metrics import metrics_for  # noqa: PLC0415 - as above

    return FrameCodec(width=metrics_for(key).width, max_packet=max_packet, hardware=hardware)


def is_frame(heard: Advertisement) -> bool:
    """Return whether it is a Frame: Halo has the same service and another name."""
    return _is_named(heard, _NAME)


def is_halo(heard: Advertisement) -> bool:
    return _is_named(heard, _HALO_NAME)


def is_monocle(heard: Advertisement) -> bool:
    """Return whether it is a Monocle: its service is that of many serial ports."""
    return heard.name == "monocle" and _PROMPT_SERVICE in heard.service_uuids


def _is_named(heard: Advertisement, name: re.Pattern[str]) -> bool:
    named = heard.name is not None and name.fullmatch(heard.name) is not None
    return named and _SERVICE in heard.service_uuids


_PROGRAM_QUIRKS: Final = (
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
        "greys",
        "the palette of 16 colours is set to greys: pages have brightness, no colours",
    ),
    Quirk(
        "whole-pages",
        "showing replaces all that was on the lens, so a changed row sends the whole page",
    ),
    Quirk(
        "motion-in-g",
        "the motion sensor has no gyroscope: a reading is acceleration in g and magnetism, to the "
        "right, forward and up as brilliant-msg 7.3.0 turns them; the whole numbers of frame-msg "
        "5.2.1 are understood too",
    ),
    Quirk(
        "looking-up",
        "the program asks four times a second how the head is held, and says when the wearer "
        "looks up by 25° or another set angle. The maker's SDK (frame-sdk 1.2.4) says both that "
        "a positive pitch is up and that it is down; Halo's firmware, its formula and a published "
        "application say up, which is taken",
    ),
)
_SHARED: Final = {
    **NOTHING,
    "display": True,
    "display.page_bytes": 1024,
    "display.count": 1,
    "display.is_color": False,
    "display.brightness": True,
    "microphone": True,
    "microphone.codecs": "pcm16",
    "microphone.vad": False,
    "camera": True,
    "prompt": False,
}
"""What all three have."""
_FRAME: Final = Model(
    key="frame",
    title="Brilliant Labs Frame",
    gatt=Gatt(
        service=_SERVICE,
        rx=_RX,
        tx=_TX,
    ),
    codec=partial(_codec, "frame"),
    recognises=is_frame,
    firmware_models=("Frame",),
    capabilities=MappingProxyType(
        {
            **_SHARED,
            "display.width": 640,
            "display.height": 400,
            "display.bpp": 4,
            "display.lines": 6,
            "display.font": "frame",
            "display.line_height": 60,
            "display.bitmap": True,
            "display.tiles": True,
            "microphone.count": 1,
            "camera.width": 720,
            "camera.height": 720,
            "imu": True,
            "imu.accelerometer": True,
            "imu.compass": True,
            "gestures": "tap,double_tap,head_up,head_down",
        }
    ),
    font="frame",
    pairing=Pairing.JUST_WORKS,
    hello_s=30.0,
    simulator="firmware_bridge.sim.frame",
    quirks=(
        *_PROGRAM_QUIRKS,
        Quirk(
            "published-widths",
            "text is measured with the widths that the maker's SDK publishes (frame-sdk 1.2.4), "
            "4 pixels between characters; not yet compared with real glasses",
        ),
        Quirk(
            "small-pictures",
            "one packet is on its way at a time, about 8 kB/s: pictures of more than 24 kB are "
            "sent with fewer bits per pixel, so that a page arrives within its 5 s",
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
_HALO: Final = Model(
    key="halo",
    title="Brilliant Labs Halo",
    gatt=Gatt(
        service=_SERVICE,
        rx=_RX,
        tx=_TX,
        channels=(
            Channel(
                "speaker",
                _SERVICE,
                "7a230005-5475-a6a4-654c-8431f6ad49c4",
                write=True,
                optional=True,
            ),
            Channel(
                "battery",
                "0000180f-0000-1000-8000-00805f9b34fb",
                "00002a19-0000-1000-8000-00805f9b34fb",
                notify=True,
                read=True,
                optional=True,
            ),
        ),
    ),
    codec=partial(_codec, "halo"),
    recognises=is_halo,
    firmware_models=("Halo",),
    capabilities=MappingProxyType(
        {
            **_SHARED,
            "display.width": 192,
            "display.height": 168,
            "display.bpp": 4,
            "display.lines": 14,
            "display.font": "halo",
            "display.line_height": 12,
            "display.bitmap": True,
            "display.tiles": True,
            "microphone.count": 2,
            "speaker": True,
            "speaker.codecs": "pcm16",
            "speaker.rate": 16000,
            "speaker.private": False,
            "camera.width": 640,
            "camera.height": 480,
            "button": True,
            "imu": True,
            "imu.accelerometer": True,
            "imu.compass": True,
            "gestures": "tap,double_tap,button,button_long,head_up,head_down",
        }
    ),
    font="halo",
    pairing=Pairing.JUST_WORKS,
    hello_s=30.0,
    simulator="firmware_bridge.sim.halo",
    quirks=(
        *_PROGRAM_QUIRKS,
        Quirk(
            "round-lens",
            "the lens is a circle of 256 pixels: glassd uses the 192 × 168 in its middle, which "
            "are all visible",
        ),
        Quirk(
            "ascii-font",
            "its font has ASCII only, 8 pixels a character, and leaves out all else without a "
            "word: glassd draws other letters itself, as pictures",
        ),
        Quirk(
            "drawn-at-once",
            "there is no second buffer: the program keeps a page until it is whole",
        ),
        Quirk(
            "lens-asleep",
            "the lens and the camera are switched off until a program wants them: ours switches "
            "the lens on while something is shown, the camera for a photo",
        ),
        Quirk(
            "speech-as-lc3",
            "speech is sent as LC3 where liblc3 is installed, else as samples, which need eight "
            "times the air; never more than fits into its buffer of 8 kB, because the rest is "
            "lost without a word",
        ),
        Quirk(
            "sound-is-counted",
            "newer firmware counts what the speaker played; with one that does not, speech is "
            "never said to be heard",
        ),
        Quirk(
            "le-audio-first",
            "an LE Audio stream of the phone takes microphone and speaker: then they refuse",
        ),
        Quirk(
            "pairing-window",
            "new hosts are taken for 60 s after the button was held for 5 s, or while no host is "
            "known; five hosts are remembered (PAIRING.md of its firmware)",
        ),
        Quirk(
            "more-characteristics",
            "BLE_SERVICES.md lists two characteristics more than PROTOCOL.md, for video and for "
            "the microphone, and the power state of the battery with values that its own table "
            "contradicts: none is used",
        ),
        Quirk(
            "tap-kinds",
            "firmware from 0.8.8 says which taps belong together, older firmware reports each: "
            "both are understood",
        ),
        Quirk(
            "turned-photos",
            "photos are turned by 270° clockwise, as the maker's library does for both glasses; "
            "not yet compared with real glasses",
        ),
        Quirk(
            "main-may-stay",
            "a main.lua that catches breaks keeps the prompt to itself; only byte 05, which "
            "removes that file, would end it, and glassd removes nothing that is not its own",
        ),
    ),
)

_MONOCLE: Final = Model(
    key="monocle",
    title="Brilliant Labs Monocle",
    gatt=Gatt(
        service=_DATA_SERVICE,
        rx="e5700002-7bac-429a-b4ce-57ff900f479d",
        tx="e5700003-7bac-429a-b4ce-57ff900f479d",
        channels=(
            Channel("prompt", _PROMPT_SERVICE, "6e400002-b5a3-f393-e0a9-e50e24dcca9e", write=True),
            Channel(
                "printed", _PROMPT_SERVICE, "6e400003-b5a3-f393-e0a9-e50e24dcca9e", notify=True
            ),
        ),
    ),
    codec=partial(_codec, "monocle"),
    recognises=is_monocle,
    firmware_models=("Monocle",),
    capabilities=MappingProxyType(
        {
            **_SHARED,
            "display.width": 640,
            "display.height": 400,
            "display.bpp": 1,
            "display.lines": 8,
            "display.font": "monocle",
            "display.line_height": 50,
            "display.bitmap": False,
            "microphone.count": 1,
            "camera.width": 640,
            "camera.height": 400,
            "button": True,
            "light": True,
            "light.blink": True,
            "gestures": "tap,double_tap,button",
        }
    ),
    font="monocle",
    pairing=Pairing.NONE,
    hello_s=30.0,
    simulator="firmware_bridge.sim.monocle",
    quirks=(
        Quirk(
            "own-program",
            "the glasses run MicroPython: glassd uploads a program of its own "
            "(monocle_app.py.txt) over the raw prompt and starts it; a running program, main.py "
            "too, is stopped meanwhile, its files stay",
        ),
        _PROGRAM_QUIRKS[1],
        _PROGRAM_QUIRKS[2],
        Quirk(
            "text-only",
            "the firmware draws text, lines and polygons, no pictures: none are claimed",
        ),
        Quirk(
            "ascii-font",
            "its font has ASCII only, 24 pixels a character: other letters are question marks",
        ),
        Quirk(
            "texts-must-not-touch",
            "display.show refuses texts that touch (monocle-micropython: display.py): lines of 48 "
            "pixels are 50 apart",
        ),
        Quirk(
            "two-pads",
            "touching pad A is a tap, pad B the button; two taps within 0.3 s are a double tap",
        ),
        Quirk(
            "short-recordings",
            "the microphone records for a number of seconds: every 10 s a new recording begins, "
            "and some milliseconds between two are lost. Its 16 bits have the high byte first, as "
            "the maker's example_get_audio.py reads them; not yet heard from real glasses",
        ),
        Quirk(
            "photo-size",
            "neither size nor quality of a photo can be chosen; 640 × 400 is that of the lens, "
            "which the firmware gives its camera; not yet compared with real glasses",
        ),
        Quirk(
            "two-lights",
            "its light is red or green, on or off: no other colour, and not dimmed",
        ),
        Quirk(
            "nobody-pairs",
            "the firmware refuses to pair (monocle-micropython: main.c): anybody near can "
            "connect and run programs",
        ),
    ),
)

MODELS: Final = (_FRAME, _HALO, _MONOCLE)
