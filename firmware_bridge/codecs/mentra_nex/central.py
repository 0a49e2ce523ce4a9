"""Mentra Display, central role: finds out how the firmware is spoken to, then draws and listens."""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_nex import legacy, picture, text, wire
from firmware_bridge.codecs.mentra_nex.events import HEAD, EventReader, MicrophoneStream
from firmware_bridge.codecs.mentra_nex.pictures import PictureOrder
from firmware_bridge.codecs.mentra_nex.wire import (
    OLD_GESTURE,
    ONLY_B,
    Framing,
    Schema,
    ToGlasses,
    ToPhone,
    encode,
    motion_fields,
    packets,
    text_message,
)
from firmware_bridge.errors import CommandRefused, LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioFormat,
    ClearPage,
    Command,
    Done,
    Event,
    Failed,
    GlassesInfo,
    Hello,
    Ping,
    Reply,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    UpdatePage,
)
from firmware_bridge.own_commands import (
    MAX_DEPTH,
    GetMotion,
    MotionRead,
    Restart,
    SetDisplayPosition,
)
from firmware_bridge.packets import MIN_PACKET, channel_of, clamp_packet
from firmware_bridge.protobuf import Message
from firmware_bridge.whole_page import whole_page

MODEL: Final = "mentra_nex"
GAP_S: Final = 0.01
"""Seconds between two writes (M26)."""
PROBE_S: Final = 1.0
"""Seconds for an answer to the first question; then it is asked in the other framing."""
LEARN_S: Final = 0.6
"""Seconds for the answers that tell version and schema."""
STARTING_S: Final = 4.0
ANSWER_S: Final = 5.0
"""Seconds after which an answer is not waited for any more."""
BEAT_S: Final = 1800.0
"""Seconds after which the microphone is switched on again (M26)."""
MAX_WAITING: Final = 2048
"""Packets that may wait: eight pictures. What the glasses make us say is dropped beyond it."""
RESERVE: Final = 640
"""Packets kept free for that, and for a picture: a command must find so much room."""
FRAMINGS: Final = tuple(Framing)
"""In the order in which they are tried."""
TIERS: Final = 4
"""Distances of the picture that the applications know."""
_BATTERY: Final = encode({ToGlasses.BATTERY: b""})


class MentraNexCodec:
    """One connection; implements `Codec[bytes]` in the central role. Used once.

    The glasses answer next to nothing. So the battery is asked for after each command: they handle
    messages in order, and its answer shows that they had the command too.
    """

    def __init__(
        self, *, width: Callable[[str], float] = len, max_packet: int = MIN_PACKET
    ) -> None:
        self._max_packet = clamp_packet(max_packet)
        self._width = width
        self._framing = Framing.WHOLE
        self._schema = Schema.B
        self._is_sure = False
        """Whether something was heard that only schema B has."""
        self._pong_at = -PROBE_S
        """When field 16 was sent, which is a ping in schema A."""
        self._message_number = 0
        self._out: deque[bytes] = deque()
        self._free_at = 0.0
        self._inbox: deque[Incoming] = deque()
        self._events = EventReader()
        self._number = 0
        self._hello: tuple[int, float] | None = None
        self._probe_at: float | None = None
        self._learn_by: float | None = None
        self._firmware = ""
        self._is_known = self._has_motion = False
        self._waiting: deque[tuple[int, float]] = deque(maxlen=MAX_WAITING)
        """Commands whose battery answer is due, and when they were sent."""
        self._angle = 0
        """The command whose angle is answered next."""
        self._refused: set[int] = set()
        self._page: ShowPage | None = None
        self._picture: PictureOrder | None = None
        self._stream_id = 0x2A
        self._microphone: MicrophoneStream | None = None
        self._beat_at: float | None = None

    def set_max_packet(self, size: int) -> None:
        """Set the size of one write in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one notification. Raises nothing but `RemoteViolation`."""
        if not packet or channel_of(packet):
            raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
        match packet[0]:
            case wire.PROTOBUF:
                self._message(Message(packet[1:]), now)
            case wire.SOUND:
                self._sound(packet)
            case wire.JSON:
                self._message(legacy.read(packet, legacy.TO_PHONE), now)
            case kind:
                raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet of kind {kind:02X}")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next answer or event."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _answer(self, number: int, reply: Reply) -> None:
        if number:
            self._inbox.append(Incoming(reply, re=number))

    def _message(self, message: Message, now: float) -> None:
        events = self._events.read(message, self._schema)
        self._inbox.extend(map(Incoming, events))
        if any(isinstance(event, MotionRead) for event in events):
            self._say(encode({motion_fields(self._schema)[0]: b""}))  # the sensor rests again
        if any(number in message for number in ONLY_B):
            self._schema, self._is_sure = Schema.B, True
        if ToPhone.HEAD_UP_ANGLE in message and not message.message(ToPhone.HEAD_UP_ANGLE).integer(
            1
        ):
            self._refused.add(self._angle)
        if ToPhone.BATTERY in message:
            self._battery_answered(now)
        if ToPhone.PING in message:
            self._pinged(message.message(ToPhone.PING), now)
        if ToPhone.VERSION in message:
            self._learn_version(message.message(ToPhone.VERSION))
        if ToPhone.INFO in message:
            self._learn_device(message.message(ToPhone.INFO))
        if ToPhone.IMAGE_DONE in message:
            self._picture_answered(message.message(ToPhone.IMAGE_DONE), now)

    def _sound(self, packet: bytes) -> None:
        if self._microphone is not None:
            self._inbox.append(Incoming(self._microphone.receive(packet)))
        elif self._beat_at is None:
            self._say(encode({ToGlasses.MICROPHONE: b""}))  # it is on and nobody asked for it
            self._beat_at = 0.0

    # -------------------------------------------------------------- start-up

    def _start(self, number: int, now: float) -> None:
        self._hello = (number, now)
        self._say(_BATTERY)
        self._probe_at = now + PROBE_S

    def _battery_answered(self, now: float) -> None:
        if self._probe_at is not None:
            self._probe_at = None
            self._ask_who(now)
            return
        while self._waiting and now - self._waiting[0][1] > ANSWER_S:
            self._waiting.popleft()  # its answer was lost
        if self._waiting:
            number = self._waiting.popleft()[0]
            refused = Failed("unsupported", "the glasses refused this angle")
            self._answer(number, refused if number in self._refused else Done())
            self._refused.clear()

    def _ask_who(self, now: float) -> None:
        """Ask for version and device. Field 16 is a ping for schema A, which it answers by an empty
        field 15, and a harmless pong for schema B.
        """
        self._pong(now)
        self._say(encode({ToGlasses.INFO: b""}))
        self._say(encode({ToGlasses.MSG_ID: "v1", ToGlasses.VERSION: encode({1: "v1"})}))
        self._learn_by = now + LEARN_S

    def _pong(self, now: float) -> None:
        self._pong_at = now
        self._say(encode({ToGlasses.PONG: b""}))

    def _pinged(self, body: Message, now: float) -> None:
        """Answer a ping. In schema A the same field is a pong, and ours is a ping: so nothing is
        answered that may be an answer.
        """
        if body.numbers():
            self._schema, self._is_sure = Schema.B, True
        elif not self._is_sure:
            self._schema = Schema.A
        if body.numbers() or now - self._pong_at >= PROBE_S:
            self._pong(now)

    def _learn_device(self, body: Message) -> None:
        self._is_known = True
        self._firmware = body.text(1)[:64] or self._firmware
        self._has_motion = body.message(3).integer(5) != 0

    def _learn_version(self, body: Message) -> None:
        commit = body.text(10)[:12]
        version = f"{body.integer(2)}{'-' if commit else ''}{commit}"
        self._firmware = self._firmware or version

    def _introduce(self) -> None:
        """Answer the greeting, and ask for head gestures."""
        self._learn_by = None
        if self._is_known and not self._is_sure:
            self._schema = Schema.A  # they answer what both have, and not what B has
        field = ToGlasses.GESTURE if self._schema is Schema.B else OLD_GESTURE
        for gesture in HEAD:
            self._say(encode({field: encode({1: gesture, 2: True})}))
        if self._hello is not None:
            (number, _), self._hello = self._hello, None
            known = {"imu": True} if self._has_motion else {}
            self._answer(number, GlassesInfo(MODEL, self._firmware, "", known, {}))

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Start a command. Raises `CommandRefused`, and `LocalMisuse` if too many wait."""
        if len(self._out) > MAX_WAITING - RESERVE:
            raise LocalMisuse(f"{len(self._out)} packets wait for the glasses already")
        number = self._number + 1
        match message:
            case Hello():
                self._start(number, now)
            case Ping():
                self._order(number, now)
            case ShowPage():
                self._show(number, message, now)
            case UpdatePage():
                self._show(number, whole_page(self._page, message), now)
            case ClearPage():
                self._replace()
                self._order(number, now, *self._clear())
            case SetBrightness(level, auto):
                self._order(number, now, *_brightness(level, auto=auto))
            case SetSilentMode(silent):
                self._order(number, now, encode({ToGlasses.POWER: encode({1: not silent})}))
            case SetHeadUpAngle(degrees):
                body = encode({1: degrees})
                self._order(number, now, encode({ToGlasses.HEAD_UP_ANGLE: body}))
                self._angle = number
            case SetDisplayPosition(height, depth, preview=False):
                tier = 1 + (depth - 1) * (TIERS - 1) // (MAX_DEPTH - 1)
                place = encode({ToGlasses.HEIGHT: encode({1: height})})
                self._order(number, now, place, encode({ToGlasses.DISTANCE: encode({1: tier})}))
            case Restart():  # nothing is answered: they are gone then
                self._say(encode({ToGlasses.RESTART: b""}))
                self._answer(number, Done())
            case StartMicrophone() | StopMicrophone():
                self._switch_microphone(number, message, now)
            case GetMotion() if self._has_motion:
                switch, ask = motion_fields(self._schema)
                on = encode({switch: encode({1: True})})
                self._order(number, now, on, encode({ask: b""}))
            case _:
                name = type(message).__name__
                raise CommandRefused("unsupported", f"a Mentra Display has no {name}")
        self._number = number
        return number

    def _order(self, number: int, now: float, *messages: bytes) -> None:
        """Send messages, all or none, and the question whose answer shows that they came."""
        framed = [self._framed(message) for message in (*messages, _BATTERY)]
        for packets_of_one in framed:
            self._queue(packets_of_one)
        self._waiting.append((number, now))

    def _framed(self, message: bytes) -> list[bytes]:
        if self._framing is Framing.JSON:
            said = legacy.write(message, legacy.TO_GLASSES)
            return [] if said is None else [said]
        self._message_number += 1
        return packets(message, self._framing, self._message_number - 1, self._max_packet)

    def _say(self, message: bytes) -> None:
        self._queue(self._framed(message))

    def _queue(self, some: list[bytes]) -> None:
        if len(self._out) + len(some) <= MAX_WAITING:
            self._out += some

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return the next packet, unless the last was written a moment ago."""
        if not self._out or now < self._free_at:
            return []
        self._free_at = now + GAP_S
        return [self._out.popleft()]

    def backlog(self) -> int:
        """Bytes that wait to be written."""
        return sum(map(len, self._out))

    # -------------------------------------------------------------- the lens

    def _show(self, number: int, page: ShowPage, now: float) -> None:
        """Show text, or a picture; a page with both is a picture without text, so it is refused."""
        if page.tiles and page.lines:
            raise CommandRefused("unsupported", "the lens holds text or a picture, not both")
        if page.tiles:
            order = PictureOrder(number, self._stream_id, picture.bmp(page.tiles), now)
            chunks = order.packets(self._max_packet)
            self._replace()
            self._stream_id = self._stream_id % 0xFFFF + 1
            for message in (*self._clear(), order.announcement()):
                self._say(message)
            self._queue(chunks)
            self._picture = order
        else:
            shown = text.lay_out(page.lines, self._width)
            commit = encode({ToGlasses.COMMIT: b""})
            drawn = text_message(shown, self._schema)
            messages = [*self._clear(), drawn, commit] if shown.strip() else self._clear()
            for message in messages:
                self._check_size(message)
            self._replace()
            self._order(number, now, *messages)
        self._page = page

    def _check_size(self, message: bytes) -> None:
        """Raise `CommandRefused` if a message fits no packet."""
        if self._framing is not Framing.JSON:
            packets(message, self._framing, 0, self._max_packet)
        elif any(len(said) > self._max_packet for said in self._framed(message)):
            raise CommandRefused("too_big", f"JSON for a packet of {self._max_packet} bytes")

    def _clear(self) -> list[bytes]:
        """Return what clears the lens at once; schema A has no message for it but a blank text."""
        if self._schema is Schema.B:
            return [encode({ToGlasses.CLEAR: b""})]
        return [text_message(" ", Schema.A), encode({ToGlasses.COMMIT: b""})]

    def _replace(self) -> None:
        """Give up the picture that is being sent, if any, and what waits of it."""
        self._page = None
        if self._picture is not None:
            order, self._picture = self._picture, None
            self._out = deque(each for each in self._out if not order.is_mine(each))
            self._answer(order.number, Failed("interrupted", "a newer page replaced it"))

    def _picture_answered(self, body: Message, now: float) -> None:
        order = self._picture
        if order is None or not order.is_named(body.text(1)):
            return
        if body.integer(2) == 0:
            self._picture = None
            self._order(order.number, now, encode({ToGlasses.COMMIT: b""}))
            return
        self._send_again(order, body.integers(3), now)

    def _send_again(self, order: PictureOrder, missing: list[int], now: float) -> None:
        again = order.again(missing, self._max_packet, now)
        if again is None:
            self._picture = None
            self._answer(order.number, Failed("busy", "the glasses did not get the whole picture"))
        else:
            self._queue(again)

    # -------------------------------------------------------------- microphone

    def _switch_microphone(
        self, number: int, command: StartMicrophone | StopMicrophone, now: float
    ) -> None:
        stream = self._microphone
        if isinstance(command, StopMicrophone):
            if stream is None or stream.number != command.stream:
                raise CommandRefused("no_stream", f"microphone {command.stream} is not open")
            self._microphone = self._beat_at = None
            self._order(number, now, encode({ToGlasses.MICROPHONE: b""}))
            return
        if command.format is not AudioFormat.LC3:
            raise CommandRefused("unsupported", f"{command.format}; the microphone speaks lc3")
        if stream is not None:
            raise CommandRefused("busy", f"microphone stream {stream.number} is open")
        self._microphone = MicrophoneStream(command.stream)
        self._beat_at = now + BEAT_S
        self._order(number, now, encode({ToGlasses.MICROPHONE: encode({1: True})}))

    # -------------------------------------------------------------- time

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        due = [self._probe_at, self._learn_by]
        due.append(self._free_at if self._out else None)
        due.append(None if self._hello is None else self._hello[1] + STARTING_S)
        due.append(None if self._microphone is None else self._beat_at)
        due.append(None if self._picture is None else self._picture.due)
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Ask in the other framing, go on without an answer, or give up, whatever is due."""
        if self._probe_at is not None and self._probe_at <= now:
            tried = FRAMINGS.index(self._framing) + 1
            self._framing = FRAMINGS[tried % len(FRAMINGS)]
            self._say(_BATTERY)
            self._probe_at = now + PROBE_S
        if self._learn_by is not None and self._learn_by <= now:
            self._introduce()
        if self._hello is not None and self._hello[1] + STARTING_S <= now:
            (number, _), self._hello = self._hello, None
            self._answer(number, Failed("busy", "the glasses do not answer"))
        if self._microphone is not None and self._beat_at is not None and self._beat_at <= now:
            self._beat_at = now + BEAT_S
            self._say(encode({ToGlasses.MICROPHONE: encode({1: True})}))
        if self._picture is not None and self._picture.due <= now:
            self._send_again(self._picture, [], now)


def _brightness(level: int | None, *, auto: bool) -> list[bytes]:
    """Return the messages for a brightness in percent (by the schema, where one application scales
    it to 63), or for the sensor.
    """
    messages = [encode({ToGlasses.AUTO_BRIGHTNESS: encode({1: auto})})]
    if level is not None:
        messages.append(encode({ToGlasses.BRIGHTNESS: encode({1: level})}))
    return messages
