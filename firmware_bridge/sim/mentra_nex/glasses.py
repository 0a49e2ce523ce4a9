"""A simulated Mentra Display: a lens, a microphone, buttons, head gestures."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from firmware_bridge import lc3
from firmware_bridge.codecs.mentra_nex.peripheral import STREAM, Facts, MentraNexGlasses
from firmware_bridge.codecs.mentra_nex.wire import FRAME, PICTURE, Dialect
from firmware_bridge.messages import (
    CapabilitiesChanged,
    Command,
    Done,
    Event,
    Failed,
    HidingChanged,
    MicrophoneChunk,
    Reply,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    StartMicrophone,
    StopMicrophone,
    Transcript,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.own_commands import GetMotion, MotionRead, Restart, SetDisplayPosition
from firmware_bridge.sides import Side
from firmware_bridge.sim.gatt import GattIdentity, by_name
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.mentra_nex.quirks import dialect
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PeripheralLink, PeripheralSession
from firmware_bridge.sim.time import Pace

MTU: Final = 517
_SILENT: Final = (Transcript, CapabilitiesChanged, WornChanged, HidingChanged)
"""Events that these glasses do not report."""


def parts(_model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one pair of glasses. Raises `QuirkError`."""
    serve = partial(_serve, dialect(quirks), Facts())
    return ModelParts((None,), serve, more_follow, _identity, MTU)


def more_follow(packet: bytes) -> bool:
    """Return whether more follows: pictures have many packets."""
    return packet[:1] == bytes((PICTURE,))


def _identity(model: Model, _side: Side | None) -> GattIdentity:
    address = address_of(model.key)
    name = f"MENTRA_DISPLAY_{address[-5:].replace(':', '')}"
    return by_name(name, address, serial="NEX-0001")


async def _serve(
    variant: Dialect, facts: Facts, glasses: MockGlasses, _side: Side | None, link: PeripheralLink
) -> None:
    """Serve one central until it disconnects; ignore its errors."""
    facts.battery = glasses.battery
    codec = MentraNexGlasses(max_packet=link.max_packet, dialect=variant, facts=facts)
    session = NexSession(glasses, link, codec)
    glasses.begin(session)
    try:
        await session.run()
    finally:
        glasses.end()


STILL: Final = MotionRead((0.0, 0.0, 9.8125), (0.0, 0.0, 0.0), (20.0, 0.0, -40.0))
"""What the motion sensor of simulated glasses reads: they lie on a table."""


class NexSession(PeripheralSession):
    """One central's connection."""

    def __init__(self, glasses: MockGlasses, link: PeripheralLink, codec: MentraNexGlasses) -> None:
        super().__init__(glasses, link, codec)
        self._nex = codec

    def tell(self, event: Event) -> bool:
        """Queue an event, if these glasses report such."""
        return not isinstance(event, _SILENT) and super().tell(event)

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case SetBrightness(level=None):
                return self._set(auto_brightness=True)
            case SetBrightness(level):
                return self._set(brightness=level)
            case SetDisplayPosition(height, depth):
                return self._set(height=height, depth=depth)
            case Restart():
                self._glasses.tell({"event": "restart"})
                self._link.hang_up()
                return Done()
            case SetSilentMode(on):
                return self._set(silent=on)
            case SetHeadUpAngle(degrees):
                return self._set(head_up_angle=degrees)
            case GetMotion():
                self.tell(STILL)
                return Done()
        return super()._other(command)

    def _set(self, **settings: Any) -> Reply:
        self._glasses.settings.update(settings)
        self._glasses.tell({"event": "setting", **settings})
        return Done()

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Switch the microphone; one that is on already goes on."""
        failed: Failed | None = None
        if isinstance(command, StopMicrophone):
            if self._listening is not None:
                self._listening[1].cancel()
                self._listening = None
        elif why := lc3.why_not():
            failed = Failed("unsupported", why)
        elif self._listening is None:
            self._listening = STREAM, self._spawn(self._hear(STREAM))
        self._reply(number, failed or Done())
        event: dict[str, Any] = {"event": "microphone", "open": self._listening is not None}
        self._glasses.tell(event | ({"problem": failed.detail} if failed else {}))

    async def _hear(self, stream: int) -> None:
        count = max(1, self._nex.frames_per_packet)
        encoder, pace = lc3.Encoder(FRAME), Pace(self._glasses.time, 0.01 * count)
        with self._glasses.microphone.recording() as read:
            for index in itertools.count():
                await pace.wait()
                pcm = read(count * lc3.FRAME_SAMPLES)
                starts = range(0, len(pcm), lc3.FRAME_BYTES)
                frames = (encoder.encode(pcm[at : at + lc3.FRAME_BYTES]) for at in starts)
                await self._send_sound(MicrophoneChunk(stream, index, tuple(frames)))
