"""A simulated Omi, OMI Glass or OpenGlass: microphone, camera, button and battery on one radio."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bumble.core import UUID, AdvertisingData
from msgspec import Struct

from firmware_bridge.codecs.omi.model import BATTERY, INFORMATION
from firmware_bridge.codecs.omi.peripheral import DIALECTS, OmiGlasses
from firmware_bridge.codecs.omi.photo import OLD_TURN
from firmware_bridge.codecs.omi.update import IDLE, FirmwareUpdate
from firmware_bridge.codecs.omi.wire import (
    BUTTON_BYTES,
    LEAST_MTU,
    MAX_GAIN,
    STREAM,
    Dialect,
    gain_of,
)
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
    CapabilitiesChanged,
    Command,
    Done,
    Event,
    Gesture,
    HidingChanged,
    MicrophoneChunk,
    PhotoTaken,
    Reply,
    SetClock,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    Transcript,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.own_commands import (
    DimLight,
    GetMotion,
    MotionRead,
    SetMicrophoneGain,
    Vibrate,
)
from firmware_bridge.sides import Side
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.omi.quirks import dialect
from firmware_bridge.sim.omi.sound import packing
from firmware_bridge.sim.peripheral import PeripheralLink, PeripheralSession
from firmware_bridge.sim.time import Pace

_NEVER_SAID: Final = Transcript | CapabilitiesChanged | WornChanged | HidingChanged


class Build(Struct, frozen=True):
    """What differs between the three beside the protocol. `advertised`: 16-bit services beside the
    main one; `names_itself`: the name is in the advertisement, not in the scan response;
    `least_mtu`: below it no sound is sent.
    """

    mtu: int
    firmware: str
    hardware: str
    serial: str
    battery_s: float
    advertised: tuple[str, ...] = ()
    names_itself: bool = False
    quality: int = 75
    least_mtu: int = 0


BUILDS: Final = {
    "omi": Build(247, "3.0.8", "SIM", "SIM-OMI-0001", 5.0, names_itself=True, least_mtu=LEAST_MTU),
    "omi_glass": Build(517, "2.3.2", "ESP32-S3-v1.0", "51ACA0B1C2D3", 20.0, quality=50),
    "openglass": Build(
        247,
        "1.0.1",
        "Seeed Xiao ESP32S3 Sense",
        "SIM-OPENGLASS-0001",
        60.0,
        advertised=(INFORMATION, BATTERY),
    ),
}
MANUFACTURER: Final = "Based Hardware"
DIAGNOSTICS: Final = bytes((1, *bytes(8), *(4100).to_bytes(2, "little"), *bytes(14)))
"""Version 1, no reset, no time, 4.1 V, and nothing was lost."""
STILL: Final = MotionRead((0.12, -0.25, 9.81), (0.01, 0.0, -0.02))
"""What the motion sensor of glasses that are not moved reads: m/s² and rad/s."""
OLD_FIRMWARE: Final = "2.1.0"
"""The last version of OMI Glass that sends no orientation."""


@dataclass(slots=True)
class State:
    """What glasses remember from one connection to the next."""

    interval_s: float
    taken_at: float = float("-inf")
    """When the last photo was taken, in simulated time."""
    update: FirmwareUpdate | None = None
    """That of this connection, or of the last."""


def parts(model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one pair. Raises `QuirkError`."""
    made, build = dialect(DIALECTS[model.key], quirks), BUILDS[model.key]
    state = State(made.fixed_interval_s or 30.0 if made.repeats else 0.0)
    return ModelParts(
        (None,),
        partial(_serve, made, state),
        lambda _packet: False,
        _identity,
        build.mtu,
        read=partial(_read, made, state),
    )


def _identity(model: Model, _side: Side | None) -> GattIdentity:
    build = BUILDS[model.key]
    short = b"".join(bytes(UUID.from_16_bits(int(each[4:8], 16))) for each in build.advertised)
    name = (AdvertisingData.COMPLETE_LOCAL_NAME, model.title.encode())
    heard = [
        (AdvertisingData.FLAGS, b"\x06"),
        (
            AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS,
            bytes(UUID(model.gatt.service)),
        ),
    ]
    if short:
        heard.append((AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, short))
    if build.names_itself:
        heard.append(name)
        information = bytes(UUID.from_16_bits(int(INFORMATION[4:8], 16)))
        name = (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, information)
    advertised, response = bytes(AdvertisingData(heard)), bytes(AdvertisingData([name]))
    return GattIdentity(address_of(model.key), model.title, advertised, response)


def _read(
    made: Dialect, state: State, glasses: MockGlasses, _side: Side | None, channel: str
) -> bytes:
    key, settings = glasses.model.key, glasses.settings
    old = not made.oriented and DIALECTS[key].oriented
    values = {
        "battery": bytes([glasses.battery]),
        "codec": bytes([made.codec]),
        "model": glasses.model.title.encode(),
        "firmware": (OLD_FIRMWARE if old else BUILDS[key].firmware).encode(),
        "serial": BUILDS[key].serial.encode(),
        "manufacturer": MANUFACTURER.encode(),
        "hardware": BUILDS[key].hardware.encode(),
        "features": made.features.to_bytes(4, "little"),
        "dim": bytes([settings.get("dim", 0)]),
        "gain": bytes([settings.get("gain", MAX_GAIN)]),
        "clock": settings.get("clock", 0).to_bytes(4, "little"),
        "charging": b"\0",
        "button": bytes(BUTTON_BYTES),
        "motion": (6).to_bytes(4, "little"),  # axes
        "diagnostics": DIAGNOSTICS,
        **dict.fromkeys(
            ("update", "progress"), state.update.status if state.update else bytes([IDLE, 0])
        ),
    }
    return bytes(values.get(channel, b""))


async def _serve(
    made: Dialect, state: State, glasses: MockGlasses, _side: Side | None, link: PeripheralLink
) -> None:
    """Serve one central until it disconnects; ignore its errors."""
    session = OmiSession(glasses, link, made, state)
    glasses.begin(session)
    try:
        await session.run()
    finally:
        glasses.end()


class OmiSession(PeripheralSession):
    """One central's connection."""

    def __init__(
        self, glasses: MockGlasses, link: PeripheralLink, made: Dialect, state: State
    ) -> None:
        self._sent = asyncio.Event()
        """The last photo has been sent."""
        codec = OmiGlasses(
            made,
            max_packet=link.max_packet,
            set=self._set,
            photo_sent=self._sent.set,
            restart=self._restart,
        )
        super().__init__(glasses, link, codec)
        state.update = codec.update
        self._made = made
        self._state = state
        self._build = BUILDS[glasses.model.key]
        self._ordered = False
        self._news = asyncio.Event()
        """There may be a photo to take."""

    async def _read(self) -> None:
        self._spawn(self._charge())
        if self._glasses.capabilities.get("camera") is True:
            self._spawn(self._take_photos())
        await super()._read()

    def tell(self, event: Event) -> bool:
        """Queue an event, if such glasses say that."""
        return not isinstance(event, _NEVER_SAID) and super().tell(event)

    def gestured(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Report a gesture of the button. Where a long press is reported, its end is too."""
        noticed = super().gestured(gesture, side=side)
        if noticed and gesture is Gesture.BUTTON_LONG:
            self._spawn(self._release(self._glasses.held_s))
        return noticed

    async def _release(self, seconds: float) -> None:
        await self._glasses.time.rest(seconds)
        self.tell(ButtonReleased())

    async def _charge(self) -> None:
        while True:
            self.tell(BatteryChanged(self._glasses.battery))
            await self._glasses.time.rest(self._build.battery_s)

    def _set(self, name: str, value: float) -> None:
        if name == "interval":
            self._state.interval_s, self._state.taken_at = value, float("-inf")
            self._news.set()
        self._glasses.settings[name] = value
        self._glasses.tell({"event": "setting", name: value})

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case SetClock():
                self._set("clock", command.utc_s)
            case DimLight(level):
                self._set("dim", level)
            case SetMicrophoneGain(level):
                self._set("gain", gain_of(level))
            case Vibrate(length):
                self._glasses.tell({"event": "vibrated", "length": length.value})
            case GetMotion():
                self.tell(STILL)
            case _:
                return super()._other(command)
        return Done()

    def _restart(self) -> None:
        self._glasses.tell({"event": "restart", "side": None})
        self._link.hang_up()

    # -------------------------------------------------------------- camera

    def _photograph(self, _number: int | None, _order: TakePhoto) -> None:
        self._ordered = True
        self._news.set()

    async def _take_photos(self) -> None:
        """Take a photo when one is ordered or due, one after another."""
        known: dict[str, Any] = self._glasses.capabilities
        size, turned = (known["camera.width"], known["camera.height"]), OLD_TURN
        take = partial(self._glasses.camera.take, *size, quality=self._build.quality, turned=turned)
        while True:
            await self._until_due()
            self._ordered, self._state.taken_at = False, self._glasses.time.now()
            jpeg = await asyncio.to_thread(take)
            self._sent.clear()
            self.tell(PhotoTaken(0, jpeg, turned))
            self._glasses.tell({"event": "photo", "bytes": len(jpeg)})
            await self._sent.wait()

    async def _until_due(self) -> None:
        while not self._ordered:
            every, now = self._state.interval_s, self._glasses.time.now()
            left = self._state.taken_at + every - now
            if every and left <= 0:
                return
            self._news.clear()
            try:
                async with timeout(self._glasses.time.real(left) if every else None):
                    await self._news.wait()
            except TimeoutError:
                continue

    # -------------------------------------------------------------- microphone

    def _listen(self, _number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Send sound while a central is subscribed to it."""
        if self._listening is not None:
            self._listening[1].cancel()
            self._listening = None
        if isinstance(command, StartMicrophone):
            self._listening = STREAM, self._spawn(self._hear(STREAM))
        self._glasses.tell({"event": "microphone", "open": self._listening is not None})

    async def _hear(self, stream: int) -> None:
        made = packing(self._made)
        pace = Pace(self._glasses.time, made.seconds)
        with self._glasses.microphone.recording() as read:
            for index in itertools.count():
                await pace.wait()
                frame = made.pack(read(made.samples))
                if self._link.max_packet + 3 < self._build.least_mtu:
                    continue
                await self._send_sound(MicrophoneChunk(stream, index, (frame,)))
