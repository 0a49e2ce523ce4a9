"""A simulated Even Realities G2: two arms that show one page, and what commands do to them."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from bumble.core import AdvertisingData
from msgspec.structs import replace

from firmware_bridge import lc3
from firmware_bridge.codecs.even_g2 import SERVICE_UUID, SOUND_SERVICE_UUID, name_of
from firmware_bridge.codecs.even_g2.answers import ArmFacts
from firmware_bridge.codecs.even_g2.peripheral import STREAM, EvenG2Arm
from firmware_bridge.codecs.even_g2.wire import (
    HEAD,
    LC3_FRAME_BYTES,
    LC3_FRAMES,
    SOUND_S,
    START,
    Kind,
)
from firmware_bridge.messages import (
    AllowApps,
    AudioFormat,
    ButtonReleased,
    CapabilitiesChanged,
    CaseChanged,
    ClearPage,
    Command,
    Done,
    Event,
    Failed,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    MicrophoneChunk,
    Reply,
    SetBrightness,
    SetClock,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Transcript,
    UpdatePage,
)
from firmware_bridge.models import Channel, Model
from firmware_bridge.own_commands import (
    GetMotion,
    MotionRead,
    SetCalendar,
    SetDisplayPosition,
    SetNote,
    SetWeather,
)
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g2.quirks import Firmware, firmware
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.lens import Drawn
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink, PeripheralSession
from firmware_bridge.sim.time import Pace

NUMBER: Final = 32
"""The pair's number, as in the captured names."""
MTU: Final = 247
LATENCY_S: Final = 0.05
"""Seconds from write to reply; 50 to 500 ms were observed."""
BOND_LOOK_S: Final = 0.05
BOND_LOOKS: Final = 40
"""How often, in seconds, and how many times it is looked whether the host has paired."""
NOTIFICATION_S: Final = 5.0
LEVEL: Final = MotionRead((0.0, 0.0, 1.0))
"""Motion of glasses that lie on a table; their unit is not known."""
_BASE: Final = SERVICE_UUID[:-4]
_NUS: Final = "6e40000{}-b5a3-f393-e0a9-e50e24dcca9e"
UNUSED: Final = (
    Channel("sound-rx", SOUND_SERVICE_UUID, _BASE + "6401", write=True),
    Channel("update", _BASE + "1001", _BASE + "0001", write=True),
    Channel("update-answer", _BASE + "1001", _BASE + "0002", notify=True),
    Channel("uart", _NUS.format(1), _NUS.format(2), write=True),
    Channel("uart-answer", _NUS.format(1), _NUS.format(3), notify=True),
)
"""Characteristics that are there, and do nothing here: the host needs none of them."""
_MAKER: Final = 0x5245
_REPORTED: Final = frozenset({Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG})
_HIDES: Final = frozenset({Hiding.SILENT, Hiding.DASHBOARD})


class Arms:
    """What both arms of one pair share: the firmware, their states, and the open connections."""

    def __init__(self, variant: Firmware) -> None:
        self.firmware = variant
        self.facts = {side: ArmFacts() for side in Side}
        self.sessions: dict[Side, ArmSession] = {}


def parts(model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one pair. Raises `QuirkError`."""
    serve = partial(_serve, Arms(firmware(quirks)))
    gatt = replace(model.gatt, channels=(*model.gatt.channels, *UNUSED))
    return ModelParts(tuple(Side), serve, more_follow, _identity, MTU, LATENCY_S, gatt=gatt)


def more_follow(packet: bytes) -> bool:
    """Return whether more fragments of the host's message follow."""
    return len(packet) >= HEAD and packet[:2] == bytes((START, Kind.HOST)) and packet[4] > packet[5]


def _identity(model: Model, side: Side | None) -> GattIdentity:
    """Return what an arm advertises: its serial number, and its name only when it is asked."""
    assert side is not None
    address = address_of(f"{model.key}:{side}")
    name = name_of(NUMBER, side, address)
    reversed_address = bytes.fromhex(address.replace(":", ""))[::-1]
    maker = _MAKER.to_bytes(2, "little") + ArmFacts().serial.encode() + reversed_address + b"\x02"
    advertised = AdvertisingData(
        [(AdvertisingData.FLAGS, b"\x06"), (AdvertisingData.MANUFACTURER_SPECIFIC_DATA, maker)]
    )
    response = AdvertisingData([(AdvertisingData.COMPLETE_LOCAL_NAME, name.encode())])
    return GattIdentity(address, name, bytes(advertised), bytes(response))


async def _serve(arms: Arms, glasses: MockGlasses, side: Side | None, link: PeripheralLink) -> None:
    """Serve one central on one arm until it disconnects. The page ends with the right arm."""
    assert side is not None
    facts = arms.facts[side]
    facts.battery, facts.worn = glasses.batteries[side], glasses.worn
    arm = EvenG2Arm(side, max_packet=link.max_packet, variant=arms.firmware.variant, facts=facts)
    arm.encrypted = link.encrypted or not arms.firmware.bonds
    session = ArmSession(glasses, link, arm, side, arms)
    arms.sessions[side] = session
    glasses.begin(session, side)
    try:
        await session.run()
    finally:
        if arms.sessions.get(side) is session:
            del arms.sessions[side]
        glasses.end(side)
        if arm.page is not None:
            session.clear()


class ArmSession(PeripheralSession):
    """One central's connection to one arm."""

    def __init__(
        self,
        glasses: MockGlasses,
        link: PeripheralLink,
        arm: EvenG2Arm,
        side: Side,
        arms: Arms,
    ) -> None:
        super().__init__(glasses, link, arm, side)
        self._arm = arm
        self._arms = arms

    def _take(self) -> None:
        """Execute commands; a host that is not bonded is asked to, after its first message."""
        super()._take()
        if self._arm.waits_for_bond:
            self._arm.waits_for_bond = False
            self._spawn(self._bond())

    async def _bond(self) -> None:
        """Ask the host to pair. One that cannot is taken as it is, after a while."""
        if not self._link.encrypted:
            self._link.ask_for_bond()
        pace, looks = Pace(self._glasses.time, BOND_LOOK_S), BOND_LOOKS
        while looks and not self._link.encrypted:
            await pace.wait()
            looks -= 1
        self._arm.bonded()
        self._work.set()

    def tell(self, event: Event) -> bool:
        """Queue an event; what these glasses do not report is not noticed."""
        match event:
            case Transcript() | CapabilitiesChanged():
                return False
            case CaseChanged() if self._side is Side.LEFT:
                return False
            case HidingChanged(by) if by not in _HIDES or self._side is Side.LEFT:
                return False
            case Gestured(gesture) if gesture not in _REPORTED:
                return False
        taken = super().tell(event)
        self._take()  # some events end the page
        return taken

    def gestured(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Report a gesture through the right arm, made at an arm or (without `side`) at the ring.
        Without a page the glasses use it themselves.
        """
        right = self._arms.sessions.get(Side.RIGHT)
        if right is None or (side is None and right is not self):
            return False
        return right.report(gesture, side)

    def report(self, gesture: Gesture, side: Side | None) -> bool:
        """Report a gesture, and the end of a long press."""
        if self._arm.page is None or not self.tell(Gestured(gesture, side)):
            return False
        if gesture is Gesture.BUTTON_LONG:
            self._spawn(self._release(self._glasses.held_s, side))
        return True

    async def _release(self, seconds: float, side: Side | None) -> None:
        await self._glasses.time.rest(seconds)
        self.tell(ButtonReleased(side))

    # -------------------------------------------------------------- lens

    def _drawn(self, command: ShowPage | UpdatePage | ClearPage) -> Reply:
        """Both lenses show the page of the right arm."""
        if not isinstance(command, ShowPage) or not (command.lines or command.tiles):
            self.clear()
            return Done()
        drawn: list[Drawn] = [lens.show(command) for lens in self._glasses.lenses.values()]
        self._glasses.tell(self._glasses.lens_report())
        return Done(drawn=drawn[0].lit, clipped=drawn[0].clipped)

    def clear(self) -> None:
        for lens in self._glasses.lenses.values():
            lens.clear()
        self._glasses.tell(self._glasses.lens_report())

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case SetBrightness(level, auto):
                return self._set(brightness="auto" if auto else level)
            case SetSilentMode(on):
                return self._set(silent=on)
            case SetWearDetection(on):
                return self._set(wear_detection=on)
            case SetHeadUpAngle(degrees):
                return self._set(head_up_angle=degrees)
            case SetDisplayPosition(height, depth):
                return self._set(height=height, depth=depth)
            case SetWeather() | SetCalendar() | SetNote():
                word = type(command).__name__.removeprefix("Set").lower()
                return self._set(**{word: msgspec.to_builtins(command)})
            case GetMotion():
                self.tell(LEVEL)
                return Done()
            case AllowApps(apps):
                return self._set(apps=[app.id for app in apps])
            case SetClock(local_s):
                return self._set(clock=local_s)
            case ShowNotification():
                return self._notify(command)
        return super()._other(command)

    def _set(self, **settings: Any) -> Reply:
        self._glasses.settings.update(settings)
        self._glasses.tell({"event": "setting", "side": self._side, **settings})
        return Done()

    def _notify(self, what: ShowNotification) -> Reply:
        """Show the notification over the page for a while, at its full width; not that of an app
        which is not on the list.
        """
        if what.app.id not in self._glasses.settings.get("apps", ()):
            self._glasses.tell({"event": "notification", "app": what.app.id, "listed": False})
            return Done()
        title = f"{what.app.name}: {what.title}" if what.title else what.app.name
        rows = [row for row in (title, what.subtitle, *what.text.split("\n")) if row]
        lines = tuple(TextLine(row, text) for row, text in enumerate(rows[: self._lens.rows]))
        self._glasses.notice([line.text for line in lines], {})
        report = self._glasses.lens_report()
        self._glasses.tell({**report, "event": "notification", "app": what.app.id})
        self._spawn(self._notified())
        return Done()

    async def _notified(self) -> None:
        await self._glasses.time.rest(NOTIFICATION_S)
        self._glasses.notice((), {})
        self._glasses.tell(self._glasses.lens_report())

    # -------------------------------------------------------------- microphone

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Switch the microphone; refused where this machine cannot code LC3."""
        failed: Failed | None = None
        if self._listening is not None:
            self._listening[1].cancel()
            self._listening = None
        if isinstance(command, StartMicrophone):
            if command.format is not AudioFormat.LC3:
                failed = Failed("unsupported", f"{command.format}; the microphone speaks lc3")
            elif why := lc3.why_not():
                failed = Failed("unsupported", why)
            else:
                self._listening = STREAM, self._spawn(self._hear(STREAM))
        self._reply(number, failed or Done())
        event = {"event": "microphone", "side": self._side, "open": self._listening is not None}
        self._glasses.tell(event | ({"problem": failed.detail} if failed else {}))

    async def _hear(self, stream: int) -> None:
        """Record, and send the sound through the arms of this firmware that are connected."""
        encoder, pace = lc3.Encoder(LC3_FRAME_BYTES), Pace(self._glasses.time, SOUND_S)
        index = 0
        with self._glasses.microphone.recording() as read:
            while True:
                await pace.wait()
                pcm = read(LC3_FRAMES * lc3.FRAME_SAMPLES)
                starts = range(0, len(pcm), lc3.FRAME_BYTES)
                frames = (encoder.encode(pcm[at : at + lc3.FRAME_BYTES]) for at in starts)
                chunk = MicrophoneChunk(stream, index, tuple(frames))
                for session in self._speaking():
                    await session.speak(chunk)
                index += 1

    async def speak(self, chunk: MicrophoneChunk) -> None:
        """Send sound through this arm, as its faults allow."""
        await self._send_sound(chunk)

    def _speaking(self) -> "list[ArmSession]":
        """Return the arms that send sound; this one where the usual one is away."""
        sessions = self._arms.sessions
        return [sessions[at] for at in self._arms.firmware.sound if at in sessions] or [self]
