"""A simulated Brilliant Labs Halo: what it has beyond a Frame is a speaker, a button, a battery
service, and control bytes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from bumble.core import UUID, AdvertisingData
from msgspec.structs import replace

from firmware_bridge import lc3
from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.hardware import HALO
from firmware_bridge.codecs.frame.peripheral import STREAM
from firmware_bridge.codecs.frame.wire import LC3_FRAME, SPEAKER
from firmware_bridge.messages import AudioChunk, AudioFormat, Done, EndAudio, Failed, StartAudio
from firmware_bridge.models import Channel, Gatt, Model
from firmware_bridge.packets import channel_of
from firmware_bridge.sides import Side
from firmware_bridge.sim.frame.glasses import FrameSession, identity, more_follow, serve, start
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.halo.quirks import dialect
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink
from firmware_bridge.sim.sound import SpeakerError

MTU: Final = 512
EYE_GLASSES: Final = 0x01C0
"""Appearance that it advertises."""
BATTERY_SERVICE: Final = 0x180F
_VIDEO: Final = "7a230004-5475-a6a4-654c-8431f6ad49c4"
_CAPTURE: Final = "7a230006-5475-a6a4-654c-8431f6ad49c4"
_POWER_STATE: Final = "00002a1a-0000-1000-8000-00805f9b34fb"
_UPDATE_SERVICE: Final = "8d53dc1d-1db7-4cd3-868b-8a527460aa84"
_UPDATE: Final = "da2e7828-fbce-4e01-ae9e-261174997c48"
_PRESENT: Final = 0b10_10_11_11
"""Power state: level good, not charging, discharging, present."""


def parts(model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one Halo. Raises `QuirkError`."""
    variant, chosen = dialect(quirks)
    device = FrameDevice(dialect=variant, hardware=HALO)
    start(device, chosen["running"])
    return ModelParts(
        (None,),
        partial(serve, device, HaloSession),
        _more_follow,
        partial(_identity, chosen["name"]),
        MTU,
        read=_read,
        gatt=_with_more(model.gatt, all_of_them=chosen["characteristics"] == "services"),
    )


def _with_more(gatt: Gatt, *, all_of_them: bool) -> Gatt:
    """Add the characteristic of firmware updates, and those that only one document lists; all
    stay silent.
    """
    battery = next(each.service for each in gatt.channels if each.name == "battery")
    update = Channel("update", _UPDATE_SERVICE, _UPDATE, notify=True, write=True)
    more = (
        Channel("video", gatt.service, _VIDEO, notify=True),
        Channel("capture", gatt.service, _CAPTURE, notify=True),
        Channel("power", battery, _POWER_STATE, notify=True, read=True),
    )
    return replace(gatt, channels=(*gatt.channels, update, *(more if all_of_them else ())))


def _read(glasses: MockGlasses, _side: Side | None, channel: str) -> bytes:
    return bytes((glasses.battery if channel == "battery" else _PRESENT,))


def _more_follow(packet: bytes) -> bool:
    """Return whether more follows: speech has many packets."""
    return channel_of(packet) == SPEAKER or more_follow(packet)


def _identity(name: str, model: Model, _side: Side | None) -> GattIdentity:
    address = address_of(model.key)
    octets = address.split(":")
    byte = octets[2] if name == "fourth-byte" else octets[5]
    response = AdvertisingData(
        [
            (AdvertisingData.APPEARANCE, EYE_GLASSES.to_bytes(2, "little")),
            (
                AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS,
                bytes(UUID.from_16_bits(BATTERY_SERVICE)),
            ),
        ]
    )
    return identity(model.gatt.service, address, f"Halo {byte}", bytes(response))


class HaloSession(FrameSession):
    """One central's connection."""

    photo_height = 0.75

    def __init__(self, glasses: MockGlasses, link: PeripheralLink, device: FrameDevice) -> None:
        super().__init__(glasses, link, device)
        self._frame.reboot = link.hang_up
        self._decoder: lc3.Decoder | None = None
        self._rest = b""

    def _sound(self, number: int | None, command: StartAudio | AudioChunk | EndAudio) -> None:
        """Play what the program opened the speaker for; a frame may come in two packets."""
        speaker = self._glasses.speaker
        try:
            match command:
                case StartAudio(format=form):
                    self._decoder = lc3.Decoder(LC3_FRAME) if form is AudioFormat.LC3 else None
                    self._rest = b""
                    if speaker.playing:
                        self._glasses.report_sound(speaker.flush(STREAM))
                    speaker.start(STREAM, AudioFormat.PCM16, lc3.RATE)
                    self._reply(number, Done())
                case AudioChunk(frames=frames):
                    speaker.feed(STREAM, self._decoded(b"".join(frames)))
                case EndAudio():
                    self._played(number, speaker.flush(STREAM))
        except (SpeakerError, lc3.Lc3Missing) as refused:
            self._reply(number, Failed("unsupported", str(refused)))

    def _decoded(self, data: bytes) -> list[bytes]:
        """Return the samples of whole frames, or of whole samples."""
        data = self._rest + data
        size = 2 if self._decoder is None else LC3_FRAME
        whole = len(data) // size * size
        self._rest = data[whole:]
        if self._decoder is None:
            return [data[:whole]]
        return [self._decoder.decode(data[at : at + size]) for at in range(0, whole, size)]
