"""A simulated Even Realities G1: two arms, each with a lens, and what commands do to them."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from firmware_bridge import lc3
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.peripheral import STREAM
from firmware_bridge.codecs.even_g1.wire import (
    CHUNKED,
    LC3_FRAME_BYTES,
    LC3_FRAMES,
    Op,
    name_of,
)
from firmware_bridge.messages import (
    AllowApps,
    AudioFormat,
    ButtonReleased,
    CapabilitiesChanged,
    ClearPage,
    Command,
    Done,
    Event,
    ExitToDashboard,
    Failed,
    Gesture,
    MicrophoneChunk,
    Reply,
    SetBrightness,
    SetDoubleTap,
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
from firmware_bridge.models import Model
from firmware_bridge.own_commands import ClearNotification, Restart
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1.dashboard import Face
from firmware_bridge.sim.even_g1.firmware import FirmwareArm
from firmware_bridge.sim.even_g1.own import OwnFunctions
from firmware_bridge.sim.even_g1.quirks import Firmware, firmware
from firmware_bridge.sim.gatt import GattIdentity, by_name
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink, PeripheralSession
from firmware_bridge.sim.time import Pace

CHANNEL: Final = 47
"""Channel number, as in the captured names."""
MTU: Final = 251
LATENCY_S: Final = 0.030
"""Seconds from write to reply; 26 to 40 ms were captured."""
RECORDING_S: Final = 30.0
"""Maximum length of a recording, in seconds."""
SOUND_S: Final = 0.1
NOTIFICATION_S: Final = 5.0
_HANDS: Final = {Gesture.BUTTON_LONG: Side.LEFT}
"""The arm that reports a gesture made at no particular arm; by default the right one."""


def parts(_model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one pair. Raises `QuirkError`."""
    kept = {side: (ArmFacts(), Face()) for side in Side}
    serve = partial(_serve, firmware(quirks), kept)
    return ModelParts(tuple(Side), serve, more_follow, _identity, MTU, LATENCY_S)


def more_follow(packet: bytes) -> bool:
    """Return whether more packets follow: text and JSON have a count, pictures a checksum."""
    if packet[:1] in {bytes([Op.PICTURE]), bytes([Op.PICTURE_END])}:
        return True
    total, index, _ = CHUNKED.get(packet[0] if packet else -1, (0, 0, 0))
    return total > 0 and len(packet) > index and packet[index] + 1 < packet[total]


def _identity(model: Model, side: Side | None) -> GattIdentity:
    assert side is not None
    address = address_of(f"{model.key}:{side}")
    return by_name(name_of(CHANNEL, side, address), address, serial=ArmFacts().serial)


async def _serve(
    variant: Firmware,
    kept: dict[Side, tuple[ArmFacts, Face]],
    glasses: MockGlasses,
    side: Side | None,
    link: PeripheralLink,
) -> None:
    """Serve one central on one arm until it disconnects or is silent; ignore its errors."""
    assert side is not None
    facts, face = kept[side]
    arm = FirmwareArm(side, link.max_packet, variant, facts, glasses)
    session = ArmSession(glasses, link, arm, side, face)
    glasses.begin(session, side)
    try:
        await session.run()
    finally:
        glasses.end(side)
    if arm.timed_out:
        link.hang_up()


class ArmSession(PeripheralSession):
    """One central's connection to one arm."""

    def __init__(
        self,
        glasses: MockGlasses,
        link: PeripheralLink,
        codec: FirmwareArm,
        side: Side,
        face: Face,
    ) -> None:
        super().__init__(glasses, link, codec, side)
        self._own = OwnFunctions(glasses, side, codec.facts, face, self.tell)
        self._notified_of = 0
        """Number of the notification on the lens."""

    def tell(self, event: Event) -> bool:
        """Queue an event, but neither recognised speech nor capabilities: a G1 reports none."""
        return not isinstance(event, Transcript | CapabilitiesChanged) and super().tell(event)

    def gestured(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Report a gesture if it belongs to this arm. A double tap closes the page."""
        if gesture in (Gesture.HEAD_UP, Gesture.HEAD_DOWN):
            self._own.look(up=gesture is Gesture.HEAD_UP)
        if side is None and _HANDS.get(gesture, Side.RIGHT) is not self._side:
            return False
        if gesture is Gesture.DOUBLE_TAP and any(e.lit for e in self._glasses.lenses.values()):
            for lens in self._glasses.lenses.values():
                lens.clear()
            self._own.left()
            self._glasses.tell(self._glasses.lens_report())
        if gesture is Gesture.BUTTON_LONG:
            self._spawn(self._release(self._glasses.held_s))
            if self._side is Side.RIGHT:  # it records a note, and only its end is reported
                return True
        return super().gestured(gesture)

    async def _release(self, seconds: float) -> None:
        await self._glasses.time.rest(seconds)
        self.tell(ButtonReleased(self._side))
        if self._side is Side.RIGHT:
            self._own.record(min(seconds, RECORDING_S))

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
            case SetDoubleTap(action):
                return self._set(double_tap=action.value)
            case AllowApps(apps):
                return self._set(apps=[app.id for app in apps])
            case ShowNotification():
                return self._notify(command)
            case ExitToDashboard():
                self._lens.clear()
                self._glasses.tell(self._glasses.lens_report())
                return Done()
            case ClearNotification(number):
                self._take_notification(number or self._notified_of)
                return Done()
            case Restart():
                return self._restart()
        return self._own.carry_out(command) or super()._other(command)  # type: ignore[arg-type]

    def _drawn(self, command: ShowPage | UpdatePage | ClearPage) -> Reply:
        self._own.left()
        return super()._drawn(command)

    def _restart(self) -> Reply:
        """Forget what is shown, and disconnect without an answer."""
        self._lens.answered()
        self._lens.clear()
        self._own.left()
        self._glasses.tell({"event": "restart", "side": self._side})
        self._link.hang_up()
        return Done()

    def _set(self, **settings: Any) -> Reply:
        self._glasses.settings.update(settings)
        self._glasses.tell({"event": "setting", "side": self._side, **settings})
        return Done()

    def _notify(self, what: ShowNotification) -> Reply:
        """Show the notification over the page for a while, at its full width."""
        rows = (
            f"{what.app.name}: {what.title}" if what.title else what.app.name,
            what.subtitle,
            *what.text.split("\n"),
        )
        shown = enumerate(rows[: self._lens.rows])
        drawn = self._lens.ask(tuple(TextLine(row, text) for row, text in shown if text))
        report = self._glasses.lens_report()
        self._glasses.tell({**report, "event": "notification", "app": what.app.id})
        self._notified_of = what.number
        self._spawn(self._notified(what.number))
        return Done(drawn=drawn.lit)

    async def _notified(self, number: int) -> None:
        await self._glasses.time.rest(NOTIFICATION_S)
        self._take_notification(number)

    def _take_notification(self, number: int) -> None:
        """Take it off the lens, unless a newer one lies there."""
        if number == self._notified_of:
            self._notified_of = 0
            self._lens.answered()
            self._glasses.tell(self._glasses.lens_report())

    # -------------------------------------------------------------- microphone

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Switch the microphone; if already on it continues, with the sequence restarted. Refused
        where this machine cannot code LC3.
        """
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
        self._tell_microphone(failed)

    async def _hear(self, stream: int) -> None:
        """Record until the longest recording is over."""
        encoder, pace = lc3.Encoder(LC3_FRAME_BYTES), Pace(self._glasses.time, SOUND_S)
        with self._glasses.microphone.recording() as read:
            for index in range(round(RECORDING_S / SOUND_S)):
                await pace.wait()
                pcm = read(LC3_FRAMES * lc3.FRAME_SAMPLES)
                starts = range(0, len(pcm), lc3.FRAME_BYTES)
                frames = (encoder.encode(pcm[at : at + lc3.FRAME_BYTES]) for at in starts)
                await self._send_sound(MicrophoneChunk(stream, index, tuple(frames)))
        self._listening = None
        self._tell_microphone()

    def _tell_microphone(self, failed: Failed | None = None) -> None:
        event = {"event": "microphone", "side": self._side, "open": self._listening is not None}
        self._glasses.tell(event | ({"problem": failed.detail} if failed else {}))
