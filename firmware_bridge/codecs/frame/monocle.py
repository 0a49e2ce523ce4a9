"""Monocle, peripheral role, for the simulator and the tests: its prompt and the messages of our
program, each over characteristics of its own.
"""

from typing import Final

from firmware_bridge.codecs.frame.peripheral import MAX_WAITING, FramePeripheral
from firmware_bridge.codecs.frame.terminal import MonocleDevice
from firmware_bridge.codecs.frame.wire import PRINTED, PROMPT, To, read_light
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import Command, Event, Gesture, Gestured, Reply, SetBrightness
from firmware_bridge.packets import MIN_PACKET, ChannelPacket

_LACKS: Final = (To.SPRITE, To.PLACE, To.HEAD_ANGLE, To.MOTION)
_TOUCHES: Final = {
    Gesture.TAP: (Gesture.TAP,),
    Gesture.DOUBLE_TAP: (Gesture.TAP, Gesture.TAP),
    Gesture.BUTTON: (Gesture.BUTTON,),
}


class MonoclePeripheral(FramePeripheral):
    """One connection; implements `Codec[bytes]` in the peripheral role. `device` outlives it."""

    def __init__(
        self, *, max_packet: int = MIN_PACKET, device: MonocleDevice | None = None
    ) -> None:
        self._terminal = device or MonocleDevice()
        super().__init__(max_packet=max_packet, device=self._terminal)

    def _channel(self, channel: str, packet: bytes, now: float) -> None:  # noqa: ARG002 - the base's
        """Take what is typed. Raises `RemoteViolation` for another channel."""
        if channel != PROMPT:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet for {channel!r}")
        self._answer_prompt("".join(self._terminal.take(packet)))
        if self._terminal.wants_show:
            self._terminal.wants_show = False
            self._command(self._taken(), lambda _reply: None)
        if self._terminal.brightness is not None:
            level, self._terminal.brightness = self._terminal.brightness, None
            self._command(SetBrightness(25 * level), lambda _reply: None)
        if self._terminal.started:
            self._terminal.started = False
            if self._ours:
                self._inform()

    def _message(self, code: int, payload: bytes) -> None:
        if code in _LACKS:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"no message {code:02X}")
        if code == To.LIGHT and self._ours:
            self._command(read_light(payload))
        else:
            super()._message(code, payload)

    def _control(self, packet: bytes) -> bool:  # noqa: ARG002 - the base's
        return True  # only data for the program comes over the other characteristic

    def _print(self, *texts: str) -> None:
        self._answer_prompt("".join(f"{text}\r\n" for text in texts if text))

    def _answer_prompt(self, text: str) -> None:
        data = text.encode()
        for at in range(0, len(data), self._max_packet):
            if len(self._out) < MAX_WAITING:
                self._out.append(ChannelPacket(data[at : at + self._max_packet], PRINTED))

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        """Queue an answer or event; a touch is printed if a host wanted that."""
        if isinstance(message, Gestured) and self._terminal.touches and not self._ours:
            touched = _TOUCHES.get(message.gesture, ())
            self._print(*(self._terminal.touches.get(pad, "") for pad in touched))
            return 0
        return super().send(message, now, re=re)
