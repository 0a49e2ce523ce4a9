"""A simulated Brilliant Labs Frame: its radio, lens, camera and microphone. Halo has them too."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from bumble.core import UUID, AdvertisingData

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.peripheral import STREAM, FramePeripheral
from firmware_bridge.codecs.frame.program import FILE, START, program
from firmware_bridge.messages import (
    CapabilitiesChanged,
    Command,
    Done,
    Event,
    HidingChanged,
    MicrophoneChunk,
    PhotoTaken,
    Reply,
    SetBrightness,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    Transcript,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.sides import Side
from firmware_bridge.sim.frame.quirks import dialect
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink, PeripheralSession
from firmware_bridge.sim.time import Pace
from firmware_bridge.sim.wav import RATE

MTU: Final = 247
EXPOSURE_S: Final = 0.8
"""Seconds from the order to the photo: the exposure is measured first."""
SOUND_S: Final = 0.02
OTHER: Final = "other"
JPEG_HEADER: Final = 623
"""Bytes that a raw photo leaves out."""
_JPEG_QUALITY: Final = (10, 25, 50, 75, 90)
_UNKNOWN: Final = (Transcript, CapabilitiesChanged, WornChanged, HidingChanged)
"""Events that a Frame does not have."""


def parts(_model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one Frame. Raises `QuirkError`."""
    variant, running = dialect(quirks)
    device = FrameDevice(dialect=variant)
    start(device, running)
    return ModelParts((None,), partial(serve, device, FrameSession), more_follow, _identity, MTU)


def start(device: FrameDevice, running: str) -> None:
    """Switch glasses on, on which this runs: "nothing", "glassd" or "other-program"."""
    if running == "glassd":
        device.files[FILE] = program(device.hardware.key).text
        device.run(START)
    elif running == "other-program":
        device.files[f"{OTHER}.lua"] = "while true do frame.sleep(1) end"
        device.run(f"require('{OTHER}')")


def more_follow(packet: bytes) -> bool:
    """Return whether more packets of the message follow, as far as a first packet says."""
    return len(packet) > 4 and packet[0] == 1 and int.from_bytes(packet[2:4], "big") > len(packet)


def _identity(model: Model, _side: Side | None) -> GattIdentity:
    address = address_of(model.key)
    return identity(model.gatt.service, address, f"Frame {address[:2].upper()}")


def identity(service: str, address: str, name: str, scan_response: bytes = b"") -> GattIdentity:
    """Return what all of the maker's advertise (at most 31 bytes): name, flags, service."""
    advertised = AdvertisingData(
        [
            (AdvertisingData.COMPLETE_LOCAL_NAME, name.encode()),
            (AdvertisingData.FLAGS, b"\x06"),
            (
                AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS,
                bytes(UUID(service)),
            ),
        ]
    )
    return GattIdentity(address, name, bytes(advertised), scan_response)


async def serve(
    device: FrameDevice,
    session: "type[FrameSession]",
    glasses: MockGlasses,
    _side: Side | None,
    link: PeripheralLink,
) -> None:
    """Serve one central until it disconnects; the machine that runs programs outlives it."""
    device.battery = glasses.battery
    glasses.begin(serving := session(glasses, link, device))
    try:
        await serving.run()
    finally:
        glasses.end()


class FrameSession(PeripheralSession):
    """One central's connection."""

    codec: type[FramePeripheral] = FramePeripheral
    photo_height = 1.0
    """Height of a photo, of its width."""

    def __init__(self, glasses: MockGlasses, link: PeripheralLink, device: FrameDevice) -> None:
        self._frame = self.codec(max_packet=link.max_packet, device=device)
        super().__init__(glasses, link, self._frame)

    def tell(self, event: Event) -> bool:
        """Queue an event; False for what a Frame does not have."""
        return not isinstance(event, _UNKNOWN) and super().tell(event)

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case SetBrightness(level):
                self._glasses.settings["brightness"] = level
                self._glasses.tell({"event": "setting", "brightness": level})
                return Done()
        return super()._other(command)

    def _photograph(self, number: int | None, order: TakePhoto) -> None:  # noqa: ARG002 - the base's
        """Take the order; the photo follows when it is exposed."""
        self._reply(number, Done())
        self._spawn(self._expose())

    async def _expose(self) -> None:
        """Take a photo as it was asked for, and send it; the camera lies on its side."""
        capture = self._frame.capture
        await self._glasses.time.rest(EXPOSURE_S)
        size, quality = capture.resolution, _JPEG_QUALITY[capture.quality]
        jpeg = self._glasses.camera.take(size, round(size * self.photo_height), quality=quality)
        self._glasses.tell({"event": "photo", "size": size, "bytes": len(jpeg)})
        self.tell(PhotoTaken(0, jpeg[JPEG_HEADER if capture.raw else 0 :]))

    # -------------------------------------------------------------- microphone

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Switch the microphone; one that is on begins again, one that is off stays so."""
        was_open = self._listening is not None
        if self._listening is not None:
            self._listening[1].cancel()
            self._listening = None
        if isinstance(command, StartMicrophone):
            self._listening = STREAM, self._spawn(self._hear_at(command.rate))
        self._reply(number, Done())
        is_open = self._listening is not None
        if was_open and not is_open:
            self._frame.end_sound()
            self._work.set()
        if was_open or is_open:
            self._glasses.tell({"event": "microphone", "open": is_open})

    async def _hear_at(self, rate: int) -> None:
        """Send what the microphone hears, in 16 bits at this rate."""
        pace = Pace(self._glasses.time, SOUND_S)
        step, index = RATE // rate, 0
        with self._glasses.microphone.recording() as read:
            while True:
                await pace.wait()
                pcm = read(round(RATE * SOUND_S))
                samples = memoryview(pcm).cast("h")[::step].tolist() if step > 1 else None
                frame = pcm if samples is None else _pcm(samples)
                await self._send_sound(MicrophoneChunk(STREAM, index, (frame,)))
                index += 1


def _pcm(samples: list[Any]) -> bytes:
    return b"".join(int(sample).to_bytes(2, "little", signed=True) for sample in samples)
