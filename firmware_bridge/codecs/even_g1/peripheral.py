"""One arm of an Even G1, peripheral role, for the simulator and the tests.

Turns packets into messages and answers queries; the other arm, radio and lens are the simulator's.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.even_g1 import dashboard
from firmware_bridge.codecs.even_g1.answers import ArmFacts, answer, dashboard_seen, refusal
from firmware_bridge.codecs.even_g1.notifications import read_notification, read_whitelist
from firmware_bridge.codecs.even_g1.own_reader import OwnReader, own_event
from firmware_bridge.codecs.even_g1.picture import PictureIn, checksum, read
from firmware_bridge.codecs.even_g1.text import read_page
from firmware_bridge.codecs.even_g1.wire import (
    ACCEPTED,
    CONTINUE,
    LC3_FRAME_BYTES,
    LC3_FRAMES,
    RATE,
    REFUSED,
    SHUT_DOWN_S,
    STOCK,
    Dialect,
    Joiner,
    Op,
    Sub,
    padded,
    percent_of,
)
from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
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
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    WornChanged,
)
from firmware_bridge.packets import MIN_PACKET, clamp_packet
from firmware_bridge.sides import Side

MAX_WAITING: Final = 512
"""Packets that may wait for the central; one that asks without reading gets no more answers."""
STREAM: Final = 0
"""The glasses know one microphone and give it no number."""
_SOUND_SIZES: Final = [LC3_FRAME_BYTES] * LC3_FRAMES
_GESTURES: Final = {
    Gesture.TAP: Sub.TAP,
    Gesture.DOUBLE_TAP: Sub.DOUBLE_TAP,
    Gesture.HEAD_UP: Sub.HEAD_UP,
    Gesture.HEAD_DOWN: Sub.HEAD_DOWN,
    Gesture.BUTTON_LONG: Sub.LONG_PRESS,
}


_HIDING: Final = {
    Hiding.SILENT: (Sub.SILENT_OFF, Sub.SILENT_ON),
    Hiding.DASHBOARD: (Sub.DASHBOARD_CLOSED, Sub.DASHBOARD_OPENED),
    Hiding.LOOKED_UP: (Sub.HEAD_DOWN, Sub.HEAD_UP),
}
_READ: Final[dict[Op, Callable[[bytes, bytes], Command]]] = {
    Op.TEXT: read_page,
    Op.WHITELIST: lambda data, _packet: read_whitelist(data),
    Op.NOTIFICATION: lambda data, _packet: read_notification(data),
}
"""Opcode → reads a joined message, given its last packet too."""


class EvenG1Arm:
    """One connection to one arm; implements `Codec[bytes]` in the peripheral role.

    Packets with an effect become commands with a number: execute them, then `send(Done() or
    Failed(…), re=number)`, which becomes C9 or CA. Heartbeats and queries are answered here from
    `facts`, which sent events keep up to date. `handle_timer` raises `LinkLost(SILENT)` 32 s after
    the last packet, as the real arms do.
    """

    def __init__(
        self,
        side: Side,
        *,
        max_packet: int = MIN_PACKET,
        dialect: Dialect = STOCK,
        facts: ArmFacts | None = None,
    ) -> None:
        self.side = side
        self.facts = facts or ArmFacts()
        self.facts.side = side
        self._dialect = dialect
        self._max_packet = clamp_packet(max_packet)
        self._out: deque[bytes] = deque()
        self._inbox: deque[Incoming] = deque()
        self._number = 0
        self._answers: dict[int, tuple[bytes, bytes]] = {}
        self._joiners = {op: Joiner(op) for op in _READ}
        self._picture = PictureIn()
        self._own = OwnReader(self.facts, dialect)
        self._heard_at: float | None = None
        self._takes: Final[dict[int, Callable[[bytes], None]]] = {
            Op.BRIGHTNESS: self._brightness,
            Op.SILENT: self._silent,
            Op.WEAR: self._wear,
            Op.HEAD_UP_ANGLE: self._angle,
            Op.EXIT: lambda _packet: self._simple(ClearPage(), Op.EXIT),
            Op.PICTURE: self._picture.add,
            Op.PICTURE_END: lambda _packet: self._say(padded(Op.PICTURE_END, ACCEPTED)),
            Op.PICTURE_CRC: self._check_picture,
            Op.MICROPHONE: self._listen,
            **dict.fromkeys(_READ, self._join),
        }

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation` after refusing a damaged one with CA."""
        self._heard_at = now
        logs = self.facts.debug
        if not packet:
            raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
        take = self._takes.get(packet[0])
        try:
            asked = self._own.read(packet)
            if asked is not None and asked.command is not None:
                self._command(asked.command, asked.done, asked.failed)
            elif asked is not None:
                self._say(asked.done)
            elif take is None:
                self._say(answer(packet, self.facts, self._dialect))
            else:
                take(packet)
        except (RemoteViolation, ValueError) as error:
            self._say(refusal(packet))
            if isinstance(error, RemoteViolation):
                raise
            raise RemoteViolation(Violation.BAD_MESSAGE, f"{packet[0]:02X}: {error}") from None
        except IndexError:
            self._say(refusal(packet))
            raise RemoteViolation(
                Violation.TRUNCATED, f"{packet[0]:02X} of {len(packet)} bytes"
            ) from None
        if logs and self.facts.debug:
            self._say(bytes((Op.FIRST,)) + b"got " + packet[:1].hex().encode() + b"\0")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _command(self, command: Command, done: bytes, failed: bytes) -> None:
        self._number += 1
        self._answers[self._number] = (done, failed)
        while len(self._answers) > MAX_WAITING:
            del self._answers[next(iter(self._answers))]
        self._inbox.append(Incoming(command, number=self._number))

    def _simple(self, command: Command, op: int) -> None:
        self._command(command, padded(op, ACCEPTED), padded(op, REFUSED))

    def _brightness(self, packet: bytes) -> None:
        level, auto = packet[1], bool(packet[2])
        self.facts.brightness, self.facts.auto_brightness = level, auto
        percent = percent_of(level, self._dialect.brightness_top)
        self._simple(SetBrightness(percent, auto), Op.BRIGHTNESS)

    def _silent(self, packet: bytes) -> None:
        if packet[1] not in (0x0A, 0x0C):
            raise ValueError(f"silent mode {packet[1]:02X}")
        self.facts.silent = packet[1] == 0x0C
        self._simple(SetSilentMode(self.facts.silent), Op.SILENT)

    def _wear(self, packet: bytes) -> None:
        self.facts.wear_detection = bool(packet[1])
        self._simple(SetWearDetection(self.facts.wear_detection), Op.WEAR)

    def _angle(self, packet: bytes) -> None:
        command = SetHeadUpAngle(packet[1])
        self.facts.angle = command.degrees
        self._simple(command, Op.HEAD_UP_ANGLE)

    def _join(self, packet: bytes) -> None:
        op = Op(packet[0])
        data = self._joiners[op].add(packet)
        if data is None:
            self._say(padded(op, ACCEPTED if op == Op.TEXT else CONTINUE))
        else:
            self._simple(_READ[op](data, packet), op)

    def _check_picture(self, packet: bytes) -> None:
        crc = packet[1:5].ljust(4, b"\0")
        file = self._picture.file()
        done, failed = (self._crc_answer(crc, verdict) for verdict in (ACCEPTED, REFUSED))
        if file is None or checksum(file) != crc:
            self._say(failed)
            return
        tile = read(file, inverted=self._dialect.inverted)
        self._command(ShowPage("g1", tiles=(tile,)), done, failed)

    def _crc_answer(self, crc: bytes, verdict: int) -> bytes:
        echoed = bytes((Op.PICTURE_CRC, *crc, verdict))
        return echoed if self._dialect.crc_echoed else bytes((Op.PICTURE_CRC, verdict))

    def _listen(self, packet: bytes) -> None:
        on = bool(packet[1])
        command = StartMicrophone(STREAM, AudioFormat.LC3, RATE) if on else StopMicrophone(STREAM)
        done, failed = (bytes((Op.MICROPHONE, verdict, on)) for verdict in (ACCEPTED, REFUSED))
        self._command(command, done, failed)

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue an answer or event. Raises `LocalMisuse` for messages these glasses do not have."""
        if re is not None:
            done, failed = self._answers.pop(re, (b"", b""))
            if isinstance(message, Failed | Done):
                self._say(failed if isinstance(message, Failed) else done)
        else:
            for packet in self._event(message):
                self._say(packet)
        return 0

    def _event(self, message: Command | Event | Reply) -> list[bytes]:
        match message:
            case Gestured(gesture) if gesture in _GESTURES:
                return self._gesture(gesture)
            case ButtonReleased(side):
                over = Sub.RIGHT_LONG_PRESS_OVER if side is Side.RIGHT else Sub.LONG_PRESS_OVER
                return [bytes((Op.EVENT, over))]
            case BatteryChanged(level, charging):
                self.facts.battery, self.facts.charging = level, charging
                states = (Sub.CHARGING, charging), (Sub.BATTERY, level)
                return [bytes((Op.EVENT, sub, value)) for sub, value in states]
            case WornChanged(worn):
                self.facts.worn = worn
                return [bytes((Op.EVENT, Sub.WORN if worn else Sub.NOT_WORN))]
            case HidingChanged(by, hidden) if by in _HIDING:
                self.facts.silent = hidden if by is Hiding.SILENT else self.facts.silent
                return [bytes((Op.EVENT, _HIDING[by][hidden]))]
            case MicrophoneChunk(index=at, frames=frames) if [*map(len, frames)] == _SOUND_SIZES:
                return [bytes((Op.SOUND, at % 256)) + b"".join(frames)]
        if packets := own_event(message, self._max_packet, self._dialect):
            return packets
        raise LocalMisuse(f"an Even G1 never says {type(message).__name__}")

    def _gesture(self, gesture: Gesture) -> list[bytes]:
        """Report a gesture. While the wearer looks up, a right tap turns the dashboard's page; a
        tap also confirms a calibration.
        """
        facts, told = self.facts, [bytes((Op.EVENT, _GESTURES[gesture]))]
        if gesture is Gesture.TAP and facts.calibrated:
            facts.calibrated, told = b"", [*told, facts.calibrated]
        if gesture in (Gesture.HEAD_UP, Gesture.HEAD_DOWN):
            facts.looks_up = gesture is Gesture.HEAD_UP and facts.opens_looking_up
            facts.page = 0
            told += [dashboard.shown(dashboard_seen(facts))] * facts.looks_up
        elif gesture is Gesture.TAP and facts.looks_up and self.side is Side.RIGHT:
            facts.page = (facts.page + 1) % 256
            told.append(dashboard.shown(dashboard_seen(facts, looking_up=False)))
        return told

    def _say(self, packet: bytes) -> None:
        if packet and len(self._out) < MAX_WAITING:
            self._out.append(packet[: self._max_packet])

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return all waiting packets: these glasses have no flow control."""
        packets, self._out = list(self._out), deque()
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """The time when the arm disconnects."""
        return None if self._heard_at is None else self._heard_at + SHUT_DOWN_S

    def handle_timer(self, now: float) -> None:
        """Disconnect from a silent central. Raises `LinkLost(SILENT)`."""
        if self._heard_at is not None and now >= self._heard_at + SHUT_DOWN_S:
            raise LinkLost(LostReason.SILENT, f"no packet for {SHUT_DOWN_S:g} s")
