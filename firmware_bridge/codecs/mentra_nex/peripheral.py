"""A Mentra Display, peripheral role, for the simulator and the tests."""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_nex import legacy, picture, shapes
from firmware_bridge.codecs.mentra_nex.device import Device
from firmware_bridge.codecs.mentra_nex.events import HEAD, PRESSES, SIDES
from firmware_bridge.codecs.mentra_nex.wire import (
    FRAME,
    HEIGHT,
    HOME,
    JSON,
    MAX_CHUNKS,
    MIC_ID,
    PICTURE,
    PROTOBUF,
    SOUND,
    STOCK,
    WHITELIST,
    WIDTH,
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
    SetSilentMode,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import (
    MAX_DEPTH,
    GetMotion,
    MotionRead,
    Restart,
    SetDisplayPosition,
)
from firmware_bridge.packets import MIN_PACKET, clamp_packet
from firmware_bridge.protobuf import Message, packed

STREAM: Final = 0
MAX_WAITING: Final = 512
"""Packets that may wait for a central that does not read."""
MISSING_S: Final = 1.0
"""Seconds without a chunk after which the missing ones are named (nRF5340)."""
PING_S: Final = 30.0
"""Seconds between two pings of the glasses; no source says how many."""
MAX_QUEUE: Final = 64
MAX_TEXT: Final = 500
"""Characters of one text (450 bytes in the firmware)."""
MAX_TEXTS: Final = 4
"""Commands of one page that may be texts: more than fit the canvas."""
MAX_CACHED: Final = 8
"""Pictures that are kept under a number."""
_ONLY_B: Final = frozenset(
    {
        ToGlasses.VAD_CONFIG,
        ToGlasses.VAD_STATUS,
        ToGlasses.CACHE_DASHBOARD,
        ToGlasses.CLEAR_DASHBOARD,
        ToGlasses.DASHBOARD_TRIGGER,
        ToGlasses.VAD_ENABLED,
        ToGlasses.QUEUE_STATUS,
        ToGlasses.BATCH,
        ToGlasses.VERSION,
    }
)
"""Fields that are missing in schema A, or mean something else."""
_PRESSES: Final = {gesture: event for event, gesture in PRESSES.items()}
_HEAD: Final = {gesture: number for number, gesture in HEAD.items()}
_SIDES: Final = {side: number for number, side in SIDES.items()}


class Facts(Struct):
    """What the glasses know of themselves."""

    battery: int = 87
    charging: bool = False
    version: str = "1.2.3"


class _Image(Struct):
    """A picture that is coming. `cache`: the number to keep it under, or None: it is drawn."""

    stream: int
    total: int
    pieces: dict[int, bytes]
    due: float
    cache: int | None = None


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
        self._queued: list[tuple[int, ShowPage]] = []
        """What is drawn at the next commit, each with how far down it is."""
        self._cached: dict[int, Tile] = {}
        self._device = Device()
        self._position = (4, 5)
        self._ping_at: float | None = None
        self._takes: Final[dict[int, Callable[[Message, float], None]]] = {
            ToGlasses.BATTERY: lambda _body, _now: self._say_battery(),
            ToGlasses.INFO: lambda _body, _now: self._say_info(),
            ToGlasses.PONG: lambda _body, _now: self._pinged(),
            ToGlasses.SCROLLING_TEXT: lambda body, _now: self._text(body, scrolling=True),
            ToGlasses.LINE: lambda body, _now: self._shape(shapes.line(body)),
            ToGlasses.RECT: lambda body, _now: self._shape(shapes.rect(body)),
            ToGlasses.CIRCLE: lambda body, _now: self._shape(shapes.circle(body)),
            ToGlasses.BATCH: lambda body, _now: self._batch(body),
            ToGlasses.CACHE_IMAGE: self._announced_for_later,
            ToGlasses.CACHED_IMAGE: lambda body, _now: self._draw_cached(body),
            ToGlasses.CLEAR_CACHED_IMAGE: lambda body, _now: self._forget(body),
            ToGlasses.QUEUE_STATUS: lambda _body, _now: self._say_queue(),
            ToGlasses.AUTO_BRIGHTNESS: lambda body, _now: self._auto(body),
            ToGlasses.POWER: lambda body, _now: self._power(on=body.integer(1) != 0),
            ToGlasses.HEIGHT: lambda body, _now: self._move_picture(height=body.integer(1)),
            ToGlasses.DISTANCE: lambda body, _now: self._move_picture(tier=body.integer(1)),
            ToGlasses.DASHBOARD_TRIGGER: lambda body, _now: self._show_dashboard(body),
            ToGlasses.RESTART: lambda _body, _now: self._restart(),
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
        if self._ping_at is None:
            self._ping_at = now + PING_S
        match packet[:1]:
            case b"":
                raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
            case kind if kind[0] == PROTOBUF:
                whole = self._join(packet[1:])
                if whole is not None:
                    self._message(Message(whole), now)
            case kind if kind[0] == PICTURE:
                self._chunk(packet, now)
            case kind if kind[0] == JSON:
                self._message(legacy.read(packet, legacy.TO_GLASSES), now)
            case kind if kind[0] == HOME:
                self._clear()
            case kind if kind[0] != WHITELIST:  # no apps are known here that could be allowed
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
        if self._dialect.framing is Framing.JSON:
            return None  # such firmware knows nothing else
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
            if self._lacks(number):
                continue
            if number in self._takes:
                self._takes[number](message.message(number), now)
            elif (take := self._device.takes.get(number)) is not None:
                self._tell(take(message.message(number)) or {})

    def _lacks(self, number: int) -> bool:
        """Return whether this schema has no such field, or another message there."""
        if self._dialect.schema is Schema.B:
            return False
        asks = motion_fields(Schema.A)[1] if self._dialect.motion else 0
        no_clear = number == ToGlasses.CLEAR and not self._dialect.prime
        return no_clear or (number in _ONLY_B and number != asks)

    # -------------------------------------------------------------- answers

    def _tell(self, fields: dict[int, bytes]) -> None:
        message = encode({**fields})
        if self._dialect.framing is Framing.JSON:
            said = legacy.write(message, legacy.TO_PHONE)
        else:
            said = bytes((PROTOBUF,)) + message if message else None
        if said is not None:
            self._queue(said)

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
        """In schema A the phone pings by this field, else it answers a ping."""
        if self._dialect.schema is Schema.A and not self._dialect.prime:
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

    def _power(self, *, on: bool) -> None:
        self._command(SetSilentMode(on=not on))

    def _auto(self, body: Message) -> None:
        if body.integer(1):
            self._command(SetBrightness(auto=True))

    def _move_picture(self, *, height: int | None = None, tier: int | None = None) -> None:
        """Both come one after the other; whatever is out of range is ignored."""
        before = self._position
        if height is not None and height <= 8:
            self._position = height, before[1]
        if tier is not None and 1 <= tier <= MAX_DEPTH:
            self._position = before[0], tier
        if self._position != before:
            self._command(SetDisplayPosition(*self._position))

    def _restart(self) -> None:
        self._command(Restart())

    def _listen(self, *, on: bool) -> None:
        self._command(StartMicrophone(STREAM, AudioFormat.LC3) if on else StopMicrophone(STREAM))

    # -------------------------------------------------------------- drawing

    def _text(self, body: Message, *, scrolling: bool = False) -> None:
        """Draw a text; one that scrolls stands still here, and its size is elsewhere."""
        text, size, y = read_text(body, self._dialect.schema, scrolling=scrolling)
        if not 0 < size <= 200:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"text {size} pixels high")
        rows = text[:MAX_TEXT].split("\n")[:MAX_LINES]
        lines = tuple(TextLine(at, row[:200]) for at, row in enumerate(rows) if row.strip())
        self._draw(ShowPage("nex", lines=lines), y)

    def _shape(self, tile: Tile | None) -> None:
        if tile is not None:
            self._draw(ShowPage("nex", tiles=(tile,)))

    def _batch(self, body: Message) -> None:
        """Draw a list of commands; each is one of six."""
        for each in body.messages(1, MAX_QUEUE):
            for number in each.numbers():
                inner = each.message(number)
                match number:
                    case 1 | 6:
                        self._text(inner, scrolling=number == 6)
                    case 2:
                        self._draw_cached(inner)
                    case 3:
                        self._shape(shapes.line(inner))
                    case 4:
                        self._shape(shapes.rect(inner))
                    case 5:
                        self._shape(shapes.circle(inner))

    def _draw_cached(self, body: Message) -> None:
        tile = self._cached.get(body.integer(1))
        x, y = body.integer(2), body.integer(3)
        if tile is not None and x < WIDTH and y < HEIGHT:
            self._draw(ShowPage("nex", tiles=(replace(tile, x=x, y=y),)), y)

    def _forget(self, body: Message) -> None:
        self._cached.pop(body.integer(1), None)

    def _show_dashboard(self, body: Message) -> None:
        """A dashboard that waits for nothing is shown at once; others wait for the wearer."""
        number, manual = body.integer(1), 3
        batch = self._device.dashboards.get(number)
        if batch is not None and body.integer(2) == manual:
            self._batch(batch)
            self._commit(clear=True)
            self._tell({ToPhone.DASHBOARD: encode({1: number, 2: 2})})

    def _draw(self, page: ShowPage, y: int = 0) -> None:
        if not self._dialect.queued:
            self._command(page)
        elif len(self._queued) < MAX_QUEUE:
            self._queued.append((y, page))

    def _commit(self, *, clear: bool) -> None:
        """Draw what waits on one page: texts below each other, shapes and pictures beside them."""
        queued, self._queued = self._queued, []
        if clear and not queued:
            self._command(ClearPage())
        if not queued:
            return
        lines: list[TextLine] = []
        texts = sorted((each for each in queued if each[1].lines), key=lambda each: each[0])
        for _, page in texts[:MAX_TEXTS]:
            below = 1 + max((line.row for line in lines), default=-1)
            moved = [(each, each.row + below) for each in page.lines]
            lines += [replace(each, row=row) for each, row in moved if row < MAX_LINES]
        tiles = tuple(tile for _, page in queued for tile in page.tiles)
        self._command(ShowPage("nex", lines=tuple(lines), tiles=tiles))

    def _say_queue(self) -> None:
        state = {1: len(self._queued), 3: MAX_QUEUE, 4: True}
        self._tell({ToPhone.QUEUE: encode(state)})

    def _clear(self) -> None:
        self._queued = []
        self._command(ClearPage())

    def _announced_for_later(self, body: Message, now: float) -> None:
        """A picture to be kept: CacheImage, in schema A PreloadImage."""
        self._announced(body, now, total_at=6, cache=body.integer(2))

    def _announced(
        self, body: Message, now: float, *, total_at: int = 7, cache: int | None = None
    ) -> None:
        name, total = body.text(1), body.integer(total_at)
        try:
            stream = int(name, 16)
        except ValueError:
            stream = -1
        if len(name) != 4 or stream < 0 or not 0 < total <= MAX_CHUNKS:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"picture {name[:10]!r} of {total} chunks")
        self._image = _Image(stream, total, {}, now + MISSING_S, cache)

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
            tile = picture.read(file)
            self._tell({ToPhone.IMAGE_DONE: encode({1: f"{image.stream:04X}"})})
            if image.cache is None:
                self._draw(ShowPage("nex", tiles=(tile,)))
            elif image.cache in self._cached or len(self._cached) < MAX_CACHED:
                self._cached[image.cache] = tile

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
        """The time when missing chunks are named, or the glasses ping."""
        due = [self._ping_at, None if self._image is None else self._image.due]
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Ping; name the chunks of a picture that did not come."""
        if self._ping_at is not None and self._ping_at <= now:
            self._ping_at = now + PING_S
            if self._dialect.schema is Schema.B:
                self._tell({ToPhone.PING: encode({1: "p1"})})
            elif self._dialect.prime:
                self._tell({ToPhone.PING: b""})
        image = self._image
        if image is not None and image.due <= now:
            image.due = now + MISSING_S * 5
            missing = [at for at in range(image.total) if at not in image.pieces]
            body = encode({1: f"{image.stream:04X}", 2: 1, 3: packed(missing)})
            self._tell({ToPhone.IMAGE_DONE: body})
