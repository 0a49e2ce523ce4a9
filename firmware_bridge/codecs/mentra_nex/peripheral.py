"""A Mentra Display, peripheral role, for the simulator and the tests."""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_nex import picture
from firmware_bridge.codecs.mentra_nex.events import HEAD, PRESSES, SIDES
from firmware_bridge.codecs.mentra_nex.wire import (
    FRAME,
    JSON,
    MAX_CHUNKS,
    MIC_ID,
    PICTURE,
    PROTOBUF,
    SOUND,
    STOCK,
    Dialect,
    Framing,
    Schema,
    ToGlasses,
    ToPhone,
    encode,
    motion_fields,
    read_chunk,
    read_text,
)
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_LINES,
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Command,
    Done,
    Event,
    Failed,
    Gestured,
    MicrophoneChunk,
    Reply,
    SetBrightness,
    SetHeadUpAngle,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
)
from firmware_bridge.own_commands import GetMotion, MotionRead
from firmware_bridge.packets import MIN_PACKET, clamp_packet
from firmware_bridge.protobuf import Message, packed

STREAM: Final = 0
MAX_WAITING: Final = 512
"""Packets that may wait for a central that does not read."""
MISSING_S: Final = 1.0
"""Seconds without a chunk after which the missing ones are named (nRF5340)."""
_PRESSES: Final = {gesture: event for event, gesture in PRESSES.items()}
_HEAD: Final = {gesture: number for number, gesture in HEAD.items()}
_SIDES: Final = {side: number for number, side in SIDES.items()}


class Facts(Struct):
    """What the glasses know of themselves."""

    battery: int = 87
    charging: bool = False
    version: str = "1.2.3"


class _Image(Struct):
    stream: int
    total: int
    pieces: dict[int, bytes]
    due: float


class MentraNexGlasses:
    """One connection; implements `Codec[bytes]` in the peripheral role.

    What is drawn, heard or set becomes a command; all else is answered here from `facts`.
    """

    def __init__(
        self,
        *,
        max_packet: int = MIN_PACKET,
        dialect: Dialect = STOCK,
        facts: Facts | None = None,
    ) -> None:
        self.facts = facts or Facts()
        self._dialect = dialect
        self._max_packet = clamp_packet(max_packet)
        self._out: deque[bytes] = deque()
        self._inbox: deque[Incoming] = deque()
        self._number = 0
        self._angles: set[int] = set()
        """Numbers of commands that are answered by a message."""
        self._fragments: tuple[int, int, list[bytes]] = (0, 0, [])
        self._image: _Image | None = None
        self._queued: list[ShowPage] = []
        self._takes: Final[dict[int, Callable[[Message, float], None]]] = {
            ToGlasses.BATTERY: lambda _body, _now: self._say_battery(),
            ToGlasses.INFO: lambda _body, _now: self._say_info(),
            ToGlasses.PONG: lambda _body, _now: self._pinged(),
            ToGlasses.VERSION: lambda body, _now: self._say_version(body),
            ToGlasses.HEAD_UP_ANGLE: lambda body, _now: self._angle(body),
            ToGlasses.MICROPHONE: lambda body, _now: self._listen(on=body.integer(1) != 0),
            ToGlasses.TEXT: lambda body, _now: self._text(body),
            ToGlasses.IMAGE: self._announced,
            ToGlasses.BRIGHTNESS: lambda body, _now: self._brightness(body),
            ToGlasses.COMMIT: lambda body, _now: self._commit(clear=body.integer(1) != 0),
            ToGlasses.CLEAR: lambda _body, _now: self._clear(),
        }
        if dialect.motion:
            asks = motion_fields(dialect.schema)[1]
            self._takes[asks] = lambda _body, _now: self._move()

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one write. Raises nothing but `RemoteViolation`."""
        match packet[:1]:
            case b"":
                raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
            case kind if kind[0] == PROTOBUF:
                whole = self._join(packet[1:])
                if whole is not None:
                    self._message(Message(whole), now)
            case kind if kind[0] == PICTURE:
                self._chunk(packet, now)
            case kind if kind[0] != JSON:
                raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet of kind {kind.hex()}")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _command(self, command: Command) -> int:
        self._number += 1
        self._inbox.append(Incoming(command, number=self._number))
        return self._number

    def _join(self, body: bytes) -> bytes | None:
        """Return a whole message: the packet itself, or all its fragments."""
        if self._dialect.framing is Framing.WHOLE:
            return body
        if len(body) < 3 or not body[2] < body[1]:
            raise RemoteViolation(Violation.BAD_ORDER, "a fragment without number, total and index")
        number, total, index = body[:3]
        if index == 0:
            self._fragments = (number, total, [])
        begun, expected, pieces = self._fragments
        if (begun, expected) != (number, total) or len(pieces) != index:
            raise RemoteViolation(Violation.BAD_ORDER, f"fragment {index} of {total}")
        pieces.append(body[3:])
        return b"".join(pieces) if len(pieces) == total else None

    def _message(self, message: Message, now: float) -> None:
        for number in message.numbers():
            if number in self._takes and not (
                self._dialect.schema is Schema.A and number in (ToGlasses.CLEAR, ToGlasses.VERSION)
            ):
                self._takes[number](message.message(number), now)

    # -------------------------------------------------------------- answers

    def _tell(self, fields: dict[int, bytes]) -> None:
        self._queue(bytes((PROTOBUF,)) + encode({**fields}))

    def _say_battery(self) -> None:
        state = encode({1: self.facts.battery, 2: self.facts.charging})
        self._tell({ToPhone.BATTERY: state})

    def _say_info(self) -> None:
        features = {3: encode({2: True, 5: True})} if self._dialect.motion else {}
        about = {1: self.facts.version, 2: "MentraDisplay", **features}
        self._tell({ToPhone.INFO: encode(about)})

    def _move(self) -> None:
        self._command(GetMotion())

    def _say_version(self, body: Message) -> None:
        self._tell({ToPhone.VERSION: encode({1: body.text(1)[:16], 2: 2})})

    def _pinged(self) -> None:
        """In schema A the phone pings by this field, in B it answers a ping."""
        if self._dialect.schema is Schema.A:
            self._tell({ToPhone.PING: b""})

    def _angle(self, body: Message) -> None:
        degrees = body.integer(1)
        if degrees > 60:
            self._tell({ToPhone.HEAD_UP_ANGLE: b""})
            return
        self._angles.add(self._command(SetHeadUpAngle(degrees)))

    def _brightness(self, body: Message) -> None:
        level = body.integer(1)
        if level <= 100:
            self._command(SetBrightness(level))

    def _listen(self, *, on: bool) -> None:
        self._command(StartMicrophone(STREAM, AudioFormat.LC3) if on else StopMicrophone(STREAM))

    # -------------------------------------------------------------- drawing

    def _text(self, body: Message) -> None:
        text, size = read_text(body, self._dialect.schema)
        if not 0 < size <= 200:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"text {size} pixels high")
        rows = text.split("\n")[:MAX_LINES]
        lines = tuple(TextLine(at, row[:200]) for at, row in enumerate(rows) if row.strip())
        self._draw(ShowPage("nex", lines=lines))

    def _draw(self, page: ShowPage) -> None:
        if not self._dialect.queued:
            self._command(page)
        elif len(self._queued) < MAX_LINES:
            self._queued.append(page)

    def _commit(self, *, clear: bool) -> None:
        """Draw what waits; a lens shows the last of it here, as what we send never overlaps."""
        queued, self._queued = self._queued, []
        if queued:
            self._command(queued[-1])
        elif clear:
            self._command(ClearPage())

    def _clear(self) -> None:
        self._queued = []
        self._command(ClearPage())

    def _announced(self, body: Message, now: float) -> None:
        name, total = body.text(1), body.integer(7)
        try:
            stream = int(name, 16)
        except ValueError:
            stream = -1
        if len(name) != 4 or stream < 0 or not 0 < total <= MAX_CHUNKS:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"picture {name[:10]!r} of {total} chunks")
        self._image = _Image(stream, total, {}, now + MISSING_S)

    def _chunk(self, packet: bytes, now: float) -> None:
        image = self._image
        stream, index, data = read_chunk(packet, checked=self._dialect.checked)
        if image is None or stream != image.stream or index >= image.total:
            raise RemoteViolation(Violation.BAD_ORDER, f"chunk {index} of an unknown picture")
        image.pieces[index] = data
        image.due = now + MISSING_S
        if len(image.pieces) == image.total:
            self._image = None
            file = b"".join(image.pieces[at] for at in range(image.total))
            page = ShowPage("nex", tiles=(picture.read(file),))
            self._tell({ToPhone.IMAGE_DONE: encode({1: f"{image.stream:04X}"})})
            self._draw(page)

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue an answer or event. Raises `LocalMisuse` for messages these glasses do not have."""
        match message:
            case Done() | Failed():
                if re in self._angles:
                    self._angles.discard(re)
                    self._tell({ToPhone.HEAD_UP_ANGLE: encode({1: isinstance(message, Done)})})
            case Gestured(gesture, side) if gesture in _PRESSES:
                self._press(_PRESSES[gesture], 0 if side is None else _SIDES[side])
            case Gestured(gesture) if gesture in _HEAD:
                self._tell({ToPhone.GESTURE: encode({1: _HEAD[gesture]})})
            case BatteryChanged(level, charging):
                self.facts.battery, self.facts.charging = level, charging
                self._say_battery()
            case MotionRead():
                vectors = (message.acceleration, message.rotation, message.magnetism)
                parts = (encode(dict(enumerate(each or (), 1))) for each in vectors)
                self._tell({ToPhone.MOTION: encode(dict(enumerate(parts, 1)))})
            case MicrophoneChunk(index=at, frames=frames) if {*map(len, frames)} == {FRAME}:
                second = at % 256 if self._dialect.numbered else MIC_ID
                self._queue(bytes((SOUND, second)) + b"".join(frames))
            case _:
                raise LocalMisuse(f"a Mentra Display never says {type(message).__name__}")
        return 0

    def _press(self, event: int, button: int) -> None:
        if self._dialect.schema is Schema.A:
            for state in (1, 0):
                self._tell({ToPhone.BUTTON: encode({1: button + 1, 2: state})})
        else:
            self._tell({ToPhone.BUTTON: encode({1: button, 2: event})})

    @property
    def frames_per_packet(self) -> int:
        """Frames of sound that fit one notification; ten at most."""
        return min(10, (self._max_packet - 2) // FRAME)

    def _queue(self, packet: bytes) -> None:
        if len(self._out) < MAX_WAITING:
            self._out.append(packet[: self._max_packet])

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return all that waits."""
        packets, self._out = list(self._out), deque()
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """The time when missing chunks are named."""
        return None if self._image is None else self._image.due

    def handle_timer(self, now: float) -> None:
        """Name the chunks of a picture that did not come."""
        image = self._image
        if image is not None and image.due <= now:
            image.due = now + MISSING_S * 5
            missing = [at for at in range(image.total) if at not in image.pieces]
            body = encode({1: f"{image.stream:04X}", 2: 1, 3: packed(missing)})
            self._tell({ToPhone.IMAGE_DONE: body})
