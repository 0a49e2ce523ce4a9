"""Mentra Live: how it is recognised, what it can do, and its quirks with their reasons."""

from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.models import NOTHING, Advertisement, Channel, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side

_SERVICE: Final = "00004860-0000-1000-8000-00805f9b34fb"
_NAMES: Final = ("Xy_A", "XyBLE_", "MENTRA_LIVE_BLE", "MENTRA_LIVE_BT", "mentra_live")


def _codec(
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.mentra_live.peripheral import MentraLiveGlasses  # noqa: PLC0415 - for the simulator only

        return MentraLiveGlasses(max_packet=max_packet)
    from firmware_bridge.codecs.mentra_live.central import MentraLiveCodec  # noqa: PLC0415 - for a Mentra Live only

    return MentraLiveCodec(max_packet=max_packet)


def _recognises(heard: Advertisement) -> bool:
    """Its service is also that of other Mentra glasses with another protocol: the name decides."""
    return heard.name is not None and heard.name.startswith(_NAMES)


_LIVE: Final = Model(
    key="mentra_live",
    title="Mentra Live",
    gatt=Gatt(
        service=_SERVICE,
        rx="000071ff-0000-1000-8000-00805f9b34fb",
        tx="000070ff-0000-1000-8000-00805f9b34fb",
        channels=(
            Channel(
                "files",
                _SERVICE,
                "000072ff-0000-1000-8000-00805f9b34fb",
                notify=True,
                optional=True,
            ),
            Channel(
                "to_files",
                _SERVICE,
                "000073ff-0000-1000-8000-00805f9b34fb",
                write=True,
                optional=True,
            ),
            Channel(
                "microphone",
                _SERVICE,
                "6e400002-b5a3-f393-e0a9-e50e24dcca9e",
                notify=True,
                optional=True,
            ),
            Channel(
                "speaker",
                _SERVICE,
                "6e400003-b5a3-f393-e0a9-e50e24dcca9e",
                write=True,
                optional=True,
            ),
        ),
    ),
    codec=_codec,
    recognises=_recognises,
    firmware_models=("mentra_live",),
    capabilities=MappingProxyType(
        {
            **NOTHING,
            "microphone": True,
            "microphone.codecs": "lc3",
            "microphone.count": 1,
            "microphone.vad": True,
            "speaker": True,
            "speaker.codecs": "pcm16",
            "speaker.rate": 16000,
            "speaker.private": False,
            "camera": True,
            "camera.width": 1920,
            "camera.height": 1080,
            "camera.hdr": False,
            "camera.focus": True,
            "camera.gallery": True,
            "camera.record": True,
            "camera.stream": True,
            "camera.streams": "rtmp",
            "imu": True,
            "imu.axes": 6,
            "imu.accelerometer": True,
            "imu.gyroscope": True,
            "imu.compass": False,
            "button": True,
            "wifi": True,
            "wifi.setup": True,
            "wifi.hotspot": True,
            "light": True,
            "light.blink": True,
            "prompt": False,
            "gestures": "tap,double_tap,button,button_long",
        }
    ),
    pairing=Pairing.JUST_WORKS,
    simulator="firmware_bridge.sim.mentra_live",
    quirks=(
        Quirk(
            "name-alone",
            "the display glasses of the same maker have the same service and another protocol",
        ),
        Quirk(
            "small-notifications",
            "its Bluetooth chip cuts notifications at 253 bytes, so it gets an MTU of 256",
        ),
        Quirk(
            "speech-as-lc3",
            "the layout of sound to the speaker is public, but no source says that every firmware "
            "plays it; what was played is not reported, so speech is never said to be heard",
        ),
        Quirk(
            "microphone-unanswered",
            "the chip does not answer the order to switch the microphone, and loses some: it is "
            "sent up to five times until sound comes",
        ),
        Quirk(
            "photo-avif",
            "most firmware codes photos as AVIF, which agents cannot see; with the picture library "
            "they are turned into JPEG",
        ),
        Quirk(
            "stream-orders",
            "orders for a video stream have two names, by age: the older one is tried first",
        ),
        Quirk(
            "no-swipes",
            "swipes and the triple tap of the touch pad have no meaning in glassd, head gestures "
            "are not finished in its firmware",
        ),
        Quirk(
            "light-unanswered",
            "older builds do not say whether they switched the light: what they acknowledged is "
            "taken as done",
        ),
        Quirk(
            "wifi-unsure",
            "a network that cannot be joined, for a wrong password or because it is gone, is not "
            "reported as such: the state stays `not connected`",
        ),
        Quirk(
            "fragments",
            "later builds may send their messages in fragments with short keys: they are "
            "understood, but never asked for, since a build that accepts the offer and then does "
            "not keep to it is silent",
        ),
        Quirk(
            "charging-guess",
            "where nothing better is said, more than 4.0 V is taken as charging, as MentraOS does",
        ),
    ),
)

MODELS: Final = (_LIVE,)
