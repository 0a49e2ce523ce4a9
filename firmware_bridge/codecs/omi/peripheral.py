"""Omi, OMI Glass and OpenGlass, peripheral role, for the simulator and the tests.

Turns packets into messages and back; microphone, camera and radio are the simulator's.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.omi.photo import cut_photo
from firmware_bridge.codecs.omi.sound import FrameCutter
from firmware_bridge.codecs.omi.update import FirmwareUpdate
from firmware_bridge.codecs.omi.wire import (
    BUTTON,
    BUTTON_BYTES,
    MAX_DIM,
    MAX_GAIN,
    MOTION,
    RELEASED,
    SOUND,
    STOP,
    STREAM,
    TAKE_ONE,
    VIBRATION,
    Dialect,
    interval,
    percent_of,
)
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
    Command,
    Event,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoTaken,
    Reply,
    SetClock,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import (
    DimLight,
    GetMotion,
    MotionRead,
    SetMicrophoneGain,
    Vibrate,
    Vibration,
)
from firmware_bridge.packets import MIN_PACKET, SUBSCRIBE, ChannelPacket, channel_of, clamp_packet

MAX_WAITING: Final = 512
"""Packets that may wait for the central, those of photos apart."""
DIALECTS: Final[Mapping[str, Dialect]] = {
    "omi": Dialect(codec=21, settings=True),
    "omi_glass": Dialect(
        codec=21, oriented=True, burst=2, pause_s=0.005, fixed_interval_s=30.0, repeats=True
    ),
    "openglass": Dialect(codec=1),
}
"""Key of a model → the firmware that is simulated."""
_CODES: Final = {gesture: code for code, gesture in BUTTON.items()}
_LIMITS: Final = {"dim": MAX_DIM, "gain": MAX_GAIN}
_LENGTHS: Final = {code: length for length, code in VIBRATION.items()}
_MILLION: Final = 1_000_000

Setting = Callable[[str, float], None]


class OmiGlasses:
    """One connection; implements `Codec[bytes]` in the peripheral role.

    `set` takes the `interval` that a central sets: seconds between photos, 0 ends them. Photos are
    sent piece by piece, after all else; `handle_timer` lets the next pieces go. `restart` ends an
    update of the firmware.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        max_packet: int = MIN_PACKET,
        set: Setting = lambda _name, _value: None,
        photo_sent: Callable[[], None] = lambda: None,
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._dialect = dialect
        self._max_packet = clamp_packet(max_packet)
        self._set = set
        self._photo_sent = photo_sent
        self._inbox: deque[Incoming] = deque()
        self._out: deque[ChannelPacket] = deque()
        self._sound = FrameCutter(dialect)
        self._photo: deque[ChannelPacket] = deque()
        self._photo_at = 0.0
        self._charging = False
        self._reports_progress = False
        self.update: Final = FirmwareUpdate(
            self._progress, short_address=dialect.short_address, restart=restart
        )

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation`."""
        match channel_of(packet):
            case "audio":
                self._take(self._listens(bytes(packet)))
            case "control":
                self._control(_one_byte(packet, "photo control"))
            case "set_clock":
                if len(packet) != 4:
                    raise RemoteViolation(Violation.TRUNCATED, f"a time of {len(packet)} bytes")
                self._take(SetClock(int.from_bytes(packet, "little")))
            case "motion":
                if packet == SUBSCRIBE:
                    self._take(GetMotion())
            case "vibrate":
                self._vibrate(bytes(packet))
            case "update":
                self.update.receive(bytes(packet), now)
            case "progress":
                self._reports_progress = packet == SUBSCRIBE
            case "dim" | "gain" as name:
                value, dims = min(_one_byte(packet, name), _LIMITS[name]), name == "dim"
                self._take(DimLight(value) if dims else SetMicrophoneGain(percent_of(value)))
            case other:
                raise RemoteViolation(Violation.BAD_MESSAGE, f"a packet to channel {other!r}")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _take(self, command: Command) -> None:
        self._inbox.append(Incoming(command))

    def _listens(self, switch: bytes) -> Command:
        form = SOUND[self._dialect.codec]
        if switch == SUBSCRIBE:
            return StartMicrophone(STREAM, form.format, form.rate)
        return StopMicrophone(STREAM)

    def _control(self, value: int) -> None:
        if value == TAKE_ONE:
            self._set("interval", 0)
            self._take(TakePhoto(0))
        elif value == STOP:
            self._set("interval", 0)
        elif (seconds := interval(value, self._dialect)) is not None:
            self._set("interval", seconds)

    def _vibrate(self, packet: bytes) -> None:
        """Take a write of at least one byte; a length that there is not does nothing."""
        if not packet:
            raise RemoteViolation(Violation.TRUNCATED, "a vibration of 0 bytes; it has one")
        if (length := _LENGTHS.get(packet[0])) is not None:
            self._take(Vibrate(Vibration(length)))

    def _progress(self, report: bytes) -> None:
        if self._reports_progress:
            self._say("progress", report)

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue an event. Raises `LocalMisuse` for what these glasses do not say."""
        match message:
            case MicrophoneChunk(index=index, frames=frames):
                for frame in frames:
                    for packet in self._sound.cut(index, frame, self._max_packet):
                        self._say("audio", packet)
            case PhotoTaken():
                self._begin_photo(message)
            case BatteryChanged(level, charging):
                self._say_battery(level, charging=charging)
            case MotionRead() if self._dialect.settings:
                self._say("motion", _motion(message))
            case Gestured(gesture) if gesture in _CODES and self._reports(gesture):
                self._say("button", _CODES[gesture].to_bytes(BUTTON_BYTES, "little"))
            case ButtonReleased():
                self._say("button", RELEASED.to_bytes(BUTTON_BYTES, "little"))
            case _:
                raise LocalMisuse(f"these glasses never say {type(message).__name__}")
        return 0

    def _reports(self, gesture: Gesture) -> bool:
        return gesture is not Gesture.BUTTON_LONG or self._dialect.says_long

    def _say_battery(self, level: int, *, charging: bool) -> None:
        """Say the charge, and before it whether it rises, if that changed."""
        if self._dialect.settings and charging is not self._charging:
            self._charging = charging
            self._say("charging", bytes([charging]))
        self._say("battery", bytes([level]))

    def _begin_photo(self, taken: PhotoTaken) -> None:
        if self._photo:
            raise LocalMisuse("a photo is being sent")
        packets = cut_photo(taken, self._max_packet, oriented=self._dialect.oriented)
        self._photo.extend(ChannelPacket(packet, "photo") for packet in packets)

    def _say(self, channel: str, packet: bytes) -> None:
        if len(self._out) < MAX_WAITING:
            self._out.append(ChannelPacket(packet[: self._max_packet], channel))

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return all that waits, and those pieces of a photo that are due."""
        self.update.step(now)
        packets: list[bytes] = [*self._out]
        self._out.clear()
        if self._photo and now >= self._photo_at:
            count = min(self._dialect.burst, len(self._photo))
            packets += [self._photo.popleft() for _ in range(count)]
            self._photo_at = now + self._dialect.pause_s
            if not self._photo:
                self._photo_sent()
        return packets

    def backlog(self) -> int:
        """Bytes of all but photos that wait to be sent."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """The time when the next pieces of a photo, or a report of an update, are due."""
        due = [
            each
            for each in (self._photo_at if self._photo else None, self.update.due)
            if each is not None
        ]
        return min(due, default=None)

    def handle_timer(self, now: float) -> None:
        """Nothing to do: `packets_to_send` sends what is due."""


def _motion(read: MotionRead) -> bytes:
    millionths = [
        round(each * _MILLION) for each in (*read.acceleration, *(read.rotation or (0.0,) * 3))
    ]
    pairs = [(abs(each) // _MILLION, abs(each) % _MILLION, each < 0) for each in millionths]
    return MOTION.pack(*(-part if less else part for *pair, less in pairs for part in pair))


def _one_byte(packet: bytes, what: str) -> int:
    if len(packet) != 1:
        raise RemoteViolation(Violation.TRUNCATED, f"{what} of {len(packet)} bytes; it has one")
    return packet[0]
