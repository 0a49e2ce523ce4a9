"""Omi, OMI Glass and OpenGlass: how they are recognised, what they can do, and their quirks with
their reasons.
"""

from functools import partial
from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codec import Codec, Role
from firmware_bridge.models import NOTHING, Advertisement, Channel, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side


def _uuid(number: int) -> str:
    return f"19b1{number:04x}-e8f2-537e-4f6c-d104768a1214"


def assigned(number: int) -> str:
    """Return a UUID that the Bluetooth SIG assigned."""
    return f"0000{number:04x}-0000-1000-8000-00805f9b34fb"


MAIN: Final = _uuid(0x0000)
_SETTINGS: Final = _uuid(0x0010)
"""Omi's settings; on OMI Glass the same numbers are the firmware update."""
_FEATURES: Final = _uuid(0x0020)
_TIME: Final = _uuid(0x0030)
_DIAGNOSTICS: Final = _uuid(0x0040)
_BUTTON: Final = "23ba7924-0000-1000-7450-346eac492e92"
_HAPTIC: Final = "cab1ab95-2ea5-4f4d-bb56-874b72cfc984"
_MOTION: Final = "32403790-0000-1000-7450-bf445e5829a2"
INFORMATION: Final = assigned(0x180A)
BATTERY: Final = assigned(0x180F)

_COMMON: Final = (
    Channel("audio", MAIN, _uuid(0x0001), notify=True, read=True, on_request=True),
    Channel("model", INFORMATION, assigned(0x2A24), first=True, optional=True),
    Channel("firmware", INFORMATION, assigned(0x2A26), first=True, optional=True),
    Channel("serial", INFORMATION, assigned(0x2A25), first=True, optional=True),
    Channel("manufacturer", INFORMATION, assigned(0x2A29), read=True, optional=True),
    Channel("hardware", INFORMATION, assigned(0x2A27), read=True, optional=True),
    Channel(
        "battery", BATTERY, assigned(0x2A19), notify=True, read=True, first=True, optional=True
    ),
)
_CODEC: Final = Channel("codec", MAIN, _uuid(0x0002), read=True, first=True)
"""The last of each model: when it is known, all else is."""
_CAMERA: Final = (
    Channel("photo", MAIN, _uuid(0x0005), notify=True, read=True),
    Channel("control", MAIN, _uuid(0x0006), write=True),
)
_UPDATE: Final = (
    Channel("update", _SETTINGS, _uuid(0x0011), read=True, write=True, optional=True),
    Channel(
        "progress", _SETTINGS, _uuid(0x0012), read=True, notify=True, optional=True, on_request=True
    ),
)
_OMI: Final = (
    Channel(
        "button", _BUTTON, _BUTTON.replace("7924", "7925"), notify=True, read=True, optional=True
    ),
    Channel("features", _FEATURES, _uuid(0x0021), first=True, optional=True),
    Channel("dim", _SETTINGS, _uuid(0x0011), read=True, write=True, optional=True),
    Channel("gain", _SETTINGS, _uuid(0x0012), read=True, write=True, optional=True),
    Channel(
        "charging", _SETTINGS, _uuid(0x0013), notify=True, read=True, first=True, optional=True
    ),
    Channel("vibrate", _HAPTIC, _HAPTIC.replace("ab95", "ab96"), write=True, optional=True),
    Channel(
        "motion",
        _MOTION,
        _MOTION.replace("3790", "3791"),
        notify=True,
        read=True,
        optional=True,
        on_request=True,
    ),
    Channel("set_clock", _TIME, _uuid(0x0031), write=True, optional=True),
    Channel("clock", _TIME, _uuid(0x0032), first=True, optional=True),
    Channel("diagnostics", _DIAGNOSTICS, _uuid(0x0041), read=True, optional=True),
)
_CAMERA_NAMES: Final = ("OpenGlass", "OMI Glass")


def _codec(
    key: str,
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.omi.peripheral import DIALECTS, OmiGlasses  # noqa: PLC0415 - for the simulator only

        return OmiGlasses(DIALECTS[key], max_packet=max_packet)
    from firmware_bridge.codecs.omi.central import OmiCodec  # noqa: PLC0415 - for such glasses only

    known = next(model.capabilities for model in MODELS if model.key == key)
    return OmiCodec(known, max_packet=max_packet)


def _named(name: str, heard: Advertisement) -> bool:
    return MAIN in heard.service_uuids and heard.name == name


def _omi(heard: Advertisement) -> bool:
    """An Omi may have any name, but must have been heard whole: OMI Glass has the same service, and
    its name comes in the scan response.
    """
    return MAIN in heard.service_uuids and heard.name not in (None, "", *_CAMERA_NAMES)


_QUIRKS: Final = (
    Quirk(
        "sound-on-request",
        "the microphone is always on and its sound is sent while subscribed; glassd subscribes "
        "only while it listens",
    ),
    Quirk(
        "fragment-id",
        "a document can be read as one number for all packets of a frame, the firmware counts "
        "packets: both are understood",
    ),
    Quirk(
        "battery-hidden",
        "BlueZ keeps the battery service to itself unless it runs without its battery plugin: "
        "then the charge is not known",
    ),
    Quirk("no-frame-end", "the end of a frame of sound is not marked: it is over at the next one"),
    Quirk(
        "piece-length",
        "full pieces of a frame are three bytes longer than fit one packet; frames of Opus never "
        "get there",
    ),
)
_PHOTO_QUIRKS: Final = (
    Quirk(
        "orientation",
        "firmware before 2.1.1 sends no orientation; what is missing counts as 180 degrees, as in "
        "the makers' app",
    ),
    Quirk(
        "photo-unnumbered",
        "photos have no number: the first that begins after the order is taken for it",
    ),
    Quirk("photo-losses", "a packet of a photo that is lost is not sent again: the photo fails"),
)


def _model(
    key: str,
    title: str,
    channels: tuple[Channel, ...],
    capabilities: dict[str, bool | int | str],
    *quirks: Quirk,
) -> Model:
    return Model(
        key=key,
        title=title,
        gatt=Gatt(MAIN, "", "", channels=(*_COMMON, *channels, _CODEC)),
        codec=partial(_codec, key),
        recognises=_omi if key == "omi" else partial(_named, title),
        firmware_models=() if key == "omi" else (title,),
        capabilities=MappingProxyType({**NOTHING, "microphone": True, **capabilities}),
        pairing=Pairing.NONE,
        quirks=(*_QUIRKS, *quirks),
        simulator="firmware_bridge.sim.omi",
    )


MODELS: Final = (
    _model(
        "omi",
        "Omi",
        _OMI,
        {
            "microphone.codecs": "opus",
            "button": True,
            "gestures": "button,double_tap",
        },
        Quirk(
            "long-press",
            "the firmware reports no long press: holding the button for three seconds turns it off",
        ),
        Quirk(
            "service-0010",
            "the same characteristics are settings here and the firmware update of OMI Glass: "
            "glassd writes only settings, and only where the features name them",
        ),
        Quirk(
            "speaker-short",
            "a speaker is an option of the firmware's build; it holds a third of a second, plays "
            "that and then waits four seconds, so that nothing can be spoken: glassd does not use "
            "it",
        ),
        Quirk(
            "vibration-length",
            "the makers' app takes the three vibrations for 20, 50 and 500 ms, the firmware has "
            "100, 300 and 500: short, medium and long are all that is sure",
        ),
        Quirk(
            "storage-versions",
            "sound that was recorded without a connection is listed and fetched in another way by "
            "almost every firmware: glassd leaves it where it is",
        ),
    ),
    _model(
        "omi_glass",
        "OMI Glass",
        (*_CAMERA, *_UPDATE),
        {
            "microphone.codecs": "opus",
            "camera": True,
            "camera.width": 640,
            "camera.height": 480,
            "gestures": "",
        },
        *_PHOTO_QUIRKS,
        Quirk(
            "photos-unasked",
            "it takes a photo every 30 seconds from power-on, and sends each: glassd ends that at "
            "the beginning of a connection, for no photo is taken without a yes",
        ),
    ),
    _model(
        "openglass",
        "OpenGlass",
        _CAMERA,
        {
            "microphone.codecs": "pcm16",
            "microphone.rate": 8000,
            "camera": True,
            "camera.width": 800,
            "camera.height": 600,
            "gestures": "",
        },
        *_PHOTO_QUIRKS,
        Quirk(
            "codec-1-width",
            "the firmware sends samples of 16 bits at 8 kHz, a document says 8 bits in one place: "
            "the sound itself shows it",
        ),
        Quirk(
            "sound-gaps",
            "it sends about half of its sound: one packet of 10 ms in each turn of 20 ms",
        ),
    ),
)
"""Three models of one protocol; which one it is shows in the name."""
