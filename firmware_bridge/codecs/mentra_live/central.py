"""Mentra Live, central role: starts the glasses' application, then speaks its messages."""

from collections import deque
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_live import layers, wire
from firmware_bridge.codecs.mentra_live.audio import LiveAudio
from firmware_bridge.codecs.mentra_live.camera import PhotoOrder
from firmware_bridge.codecs.mentra_live.events import EventReader, Version
from firmware_bridge.codecs.mentra_live.fragments import FragmentJoiner
from firmware_bridge.codecs.mentra_live.layers import ChipCommand, Json
from firmware_bridge.codecs.mentra_live.orders import Orders, message_of
from firmware_bridge.codecs.mentra_live.outbox import Outbox
from firmware_bridge.codecs.mentra_live.reports import report_of
from firmware_bridge.codecs.mentra_live.stream import Stream
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioChunk,
    Command,
    Done,
    EndAudio,
    Event,
    Failed,
    GlassesInfo,
    Hello,
    OwnCommand,
    Ping,
    Reply,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import StreamChanged
from firmware_bridge.packets import MIN_PACKET, channel_of, clamp_packet

MODEL: Final = "mentra_live"
POLL_S: Final = 2.5
"""Seconds between questions whether the glasses' main processor is ready (M26, J25)."""
OLD_POLL_S: Final = 1.0
"""Seconds after which a unit whose chip does not answer is greeted as J25 does."""
STARTING_S: Final = 4.0
"""Seconds after which a greeting is refused: the glasses are still starting."""
VERSION_S: Final = 1.0
"""Seconds to wait for the version, once the glasses are ready."""
ACKNOWLEDGES_FROM: Final = 5
"""Build of the glasses' application from which it acknowledges messages (M26)."""
DOUBLES: Final = 64
"""Numbers of messages of the glasses that are remembered, to notice one that comes twice."""


class MentraLiveCodec:
    """One connection; implements `Codec[bytes]` in the central role. Used once."""

    def __init__(self, *, max_packet: int = MIN_PACKET) -> None:
        self._max_packet = clamp_packet(max_packet)
        self._readers = {name: wire.FrameReader("big", "little") for name in ("", wire.FILES)}
        self._outbox = Outbox()
        self._inbox: deque[Incoming] = deque()
        self._joiner = layers.Joiner()
        self._fragments = FragmentJoiner()
        self._orders = Orders(self._outbox)
        self._stream = Stream()
        self._events = EventReader()
        self._version = Version()
        self._seen: deque[int] = deque(maxlen=DOUBLES)
        self._number = 0
        self._hello: tuple[int, float] | None = None
        self._chip_answers = self._greeted = self._ready = False
        self._poll_at: float | None = None
        self._greet_at: float | None = None
        self._version_by: float | None = None
        self._pings: list[int] = []
        self._photo: PhotoOrder | None = None
        self._audio = LiveAudio(self._outbox)

    def set_max_packet(self, size: int) -> None:
        """Set the size of one write in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one notification. Raises nothing but `RemoteViolation`."""
        channel = channel_of(packet)
        if channel == wire.MICROPHONE:
            self._tell(*self._audio.receive(packet, now))
            return
        reader = self._readers.get(channel)
        if reader is None:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet of {channel!r}")
        # while a file comes, a lost notification leaves bytes that belong to nothing
        reader.feed(packet, now, self._frame, lenient=self._photo is not None)

    def _frame(self, frame: wire.Frame, now: float) -> None:
        if isinstance(frame, wire.FilePacket):
            self._file(frame, now)
        elif not isinstance(frame, wire.Fragment):
            self._message(layers.read(frame), now)
        elif (whole := self._fragments.add(frame)) is not None:
            self._message(whole, now)

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next answer or event."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _tell(self, *events: Event) -> None:
        self._inbox.extend(map(Incoming, events))

    def _answer(self, number: int, reply: Reply) -> None:
        if number:
            self._inbox.append(Incoming(reply, re=number))

    def _message(self, said: Json | ChipCommand, now: float) -> None:
        if isinstance(said, ChipCommand):
            self._chip(said, now)
            return
        message = self._joiner.join(said, now)
        if message is None:
            return
        kind = layers.text(message, "type")
        mid = layers.number(message.get("mId"), 1, 2**63 - 1)
        if kind == "msg_ack":
            self._acknowledged(mid or 0, now)
            return
        if mid is not None:
            self._outbox.put_once({"type": "msg_ack", "mId": mid})
            if mid in self._seen:
                return
            self._seen.append(mid)
        self._application(kind, message, now)

    def _application(self, kind: str, message: Json, now: float) -> None:
        match kind:
            case "glasses_ready":
                self._prepare(now)
            case "pong" | "ping_response":
                self._alive()
            case "keep_alive_ack":
                self._stream.answered()
            case "version_info" | "version_info_1" | "version_info_2" | "version_info_3":
                self._learn(kind, message)
            case _ if self._photo is not None and self._photo.is_news(kind, message):
                self._photo_news(kind, message, now)
            case _ if (report := report_of(kind, message)) is not None:
                if not isinstance(report, StreamChanged) or self._stream.is_news(report, now):
                    self._tell(report)
            case _ if (answered := self._orders.answered(kind, message)) is not None:
                self._answer(*answered)
            case _:
                self._tell(*self._events.message(kind, message, now))

    def _chip(self, command: ChipCommand, now: float) -> None:
        if command.name == "sr_hrt":
            self._chip_answers = True
            self._alive()
            self._readiness(now, ready=layers.flag(command.body.get("ready")) is True)
        self._tell(*self._events.chip(command, now))

    # -------------------------------------------------------------- start-up

    def _start(self, number: int, now: float) -> None:
        self._hello = (number, now)
        self._outbox.put_chip("cs_hrt")
        self._poll_at, self._greet_at = now + POLL_S, now + OLD_POLL_S

    def _readiness(self, now: float, *, ready: bool) -> None:
        """The chip says whether the main processor is there; greet it once whenever it is."""
        self._greet_at = None
        if ready and not self._greeted:
            self._greet(now)
        elif not ready:
            self._greeted = self._ready = False

    def _greet(self, now: float) -> None:
        self._greeted = True
        self._outbox.put({"type": "phone_ready", "timestamp": int(now * 1000)}, now, wake=True)

    def _prepare(self, now: float) -> None:
        """The application is ready: tell it the packet size, ask what it is."""
        if self._ready:
            return
        self._ready = self._greeted = True
        self._poll_at = self._greet_at = None
        mtu = min(self._max_packet + 3, wire.CHIP_MTU)
        self._outbox.put({"type": "request_version"}, now, wake=True)
        self._outbox.put({"type": "set_ble_mtu", "mtu": mtu}, now)
        self._outbox.put_chip("cs_batv", version=True)
        self._version_by = now + VERSION_S

    def _learn(self, kind: str, message: Json) -> None:
        self._version.learn(message)
        self._outbox.acknowledges = self._version.build >= ACKNOWLEDGES_FROM
        self._audio.missing = self._version.without_sound
        if kind in ("version_info", "version_info_3"):
            self._introduce()

    def _introduce(self) -> None:
        """Answer the greeting with what is known of the glasses."""
        self._version_by = None  # the last of up to three messages is there, or late
        if self._hello is not None:
            (number, _), self._hello = self._hello, None
            info = GlassesInfo(
                MODEL, self._version.text, self._version.serial, self._version.capabilities, {}
            )
            self._answer(number, info)

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Start a command. Raises `CommandRefused`, and `LocalMisuse` if too many wait."""
        if isinstance(message, AudioChunk):
            self._audio.speak(message, now, self._max_packet)
            return 0
        self._outbox.check_room()
        number = self._number + 1
        match message:
            case Hello():
                self._start(number, now)
            case Ping():
                self._ping(number)
            case TakePhoto():
                self._take_photo(number, message, now)
            case StartMicrophone() | StopMicrophone():
                self._audio.switch_microphone(message, now)
                self._answer(number, Done())
            case StartAudio():
                self._audio.open_speaker(message, self._max_packet)
                self._answer(number, Done())
            case EndAudio():
                self._answer(self._audio.end(number, message, now, self._max_packet), Done())
            case OwnCommand() if (
                order := self._stream.order(message, now) or message_of(message)
            ) is not None:
                if self._orders.send(number, order, now):
                    self._answer(number, Done())
            case _:
                name = type(message).__name__
                raise CommandRefused("unsupported", f"a Mentra Live has no {name}")
        self._number = number
        return number

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return the next message, and sound, which need not wait for messages."""
        return self._outbox.emit(now, self._max_packet) + self._audio.emit()

    def backlog(self) -> int:
        """Bytes that wait to be written."""
        return self._outbox.size + self._audio.size

    def _ping(self, number: int) -> None:
        """Ask the chip, which does not wake the main processor; or the application where the chip
        never answers.
        """
        self._pings = [*self._pings[-7:], number]
        if self._chip_answers:
            self._outbox.put_chip("cs_hrt")
        else:
            self._outbox.put_once({"type": "ping"})

    def _alive(self) -> None:
        for number in self._pings:
            self._answer(number, Done())
        self._pings.clear()

    def _acknowledged(self, mid: int, now: float) -> None:
        about = self._outbox.acknowledged(mid)
        if (reply := self._orders.acknowledged(about, now)) is not None:
            self._answer(about, reply)
        if self._photo is not None and about == self._photo.number:
            self._answer(self._photo.accept(), Done())

    # -------------------------------------------------------------- photos

    def _take_photo(self, number: int, command: TakePhoto, now: float) -> None:
        if self._photo is not None:
            raise CommandRefused("busy", f"photo {self._photo.photo} is being taken")
        order = PhotoOrder(number, command, now)
        acknowledged = self._outbox.put(order.message(), now, wake=True, about=number)
        self._photo = order
        if not acknowledged:
            self._answer(order.accept(), Done())

    def _photo_news(self, kind: str, message: Json, now: float) -> None:
        assert self._photo is not None
        order = self._photo
        self._outbox.settle(order.number)
        self._answer(order.accept(), Done())
        self._after_photo(order.news(kind, message, now), now)

    def _file(self, packet: wire.FilePacket, now: float) -> None:
        order = self._photo
        if order is None or not order.is_mine(packet.name):
            return  # late packets of a photo that was given up
        self._outbox.settle(order.number)
        self._answer(order.accept(), Done())
        event = order.packet(packet, now)
        if packet.flags & wire.BATCHED and (event or packet.index % wire.BATCH == wire.BATCH - 1):
            self._outbox.put_chip("cs_flts", {"state": 1, "index": order.expected})
        self._after_photo(event, now)

    def _after_photo(self, event: Event | None, now: float) -> None:
        """Report a photo that is there or failed, and tell the glasses what to do with the file."""
        assert self._photo is not None
        if event is not None:
            self._tell(event)
        for message in self._photo.say():
            self._outbox.put(message, now, wake=True)
        if event is not None:
            self._photo = None

    # -------------------------------------------------------------- time

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        due = [self._outbox.due(), self._poll_at, self._greet_at, self._version_by]
        if self._hello is not None:
            due.append(self._hello[1] + STARTING_S)
        if self._photo is not None:
            due.append(self._photo.due)
        due += [self._audio.due(), self._orders.due(), self._stream.due]
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Repeat, ask again, or give up, whatever is due."""
        self._outbox.repeat(now)
        while self._outbox.given_up:
            self._give_up(self._outbox.given_up.popleft(), now)
        self._start_again(now)
        if self._photo is not None and self._photo.due <= now:
            self._after_photo(self._photo.wait_is_over(now), now)
        self._answer(self._audio.handle_timer(now), Done())
        for number in self._orders.over(now):
            self._answer(number, Done())
        if _is_due(self._stream.due, now):
            self._follow_stream(now)

    def _follow_stream(self, now: float) -> None:
        said = self._stream.handle_timer(now)
        if isinstance(said, StreamChanged):
            self._tell(said)
        else:
            self._outbox.put(said, now, wake=True)

    def _give_up(self, about: int, now: float) -> None:
        if (reply := self._orders.give_up(about)) is not None:
            self._answer(about, reply)
        if self._photo is not None and about == self._photo.number:
            self._answer(self._photo.accept(), Failed("busy", "the glasses do not acknowledge it"))
            self._after_photo(self._photo.fail("the glasses did not take the order", now), now)

    def _start_again(self, now: float) -> None:
        if _is_due(self._greet_at, now):
            self._greet_at = now + POLL_S
            self._greet(now)
        if _is_due(self._poll_at, now):
            self._poll_at = now + POLL_S
            self._outbox.put_chip("cs_hrt")
        if _is_due(self._version_by, now):
            self._introduce()
        if self._hello is not None and self._hello[1] + STARTING_S <= now:
            (number, _), self._hello = self._hello, None
            self._answer(number, Failed("busy", "the glasses are still starting"))


def _is_due(moment: float | None, now: float) -> bool:
    return moment is not None and moment <= now
