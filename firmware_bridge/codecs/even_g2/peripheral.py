"""One arm of an Even G2, peripheral role, for the simulator and the tests.

Turns packets into messages and answers queries; the other arm, radio and lens are the simulator's.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.even_g2 import FILE, FILE_ANSWER, SOUND, config, services
from firmware_bridge.codecs.even_g2.answers import ArmFacts, setting, settings
from firmware_bridge.codecs.even_g2.events import SOURCES
from firmware_bridge.codecs.even_g2.files import FileIn
from firmware_bridge.codecs.even_g2.hub import BODY, MAX_PIECE, Cmd, Code, HubEvent
from firmware_bridge.codecs.even_g2.own import OwnReader
from firmware_bridge.codecs.even_g2.page_in import (
    MAX_NAME,
    HubPageIn,
    Refused,
    body_of,
)
from firmware_bridge.codecs.even_g2.wire import (
    ANSWER,
    HEAD,
    LC3_FRAME_BYTES,
    LC3_FRAMES,
    NOTICE,
    RATE,
    BadChecksum,
    Joiner,
    Kind,
    Received,
    Sid,
    cut,
    nak,
)
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
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
    PageClosed,
    Reply,
    SetClock,
    StartMicrophone,
    StopMicrophone,
    WornChanged,
)
from firmware_bridge.own_commands import GetMotion, MotionRead
from firmware_bridge.packets import MIN_PACKET, ChannelPacket, channel_of, clamp_packet
from firmware_bridge.protobuf import Double, Fields, Message, encode
from firmware_bridge.sides import Side

PAGE_S: Final = 10.5
"""Seconds after the last heartbeat of a page until it is gone, with the microphone: "about 10", and
one host sends it every 10.
"""
MAX_WAITING: Final = 512
"""Packets that may wait for the central; one that asks without reading gets no more answers."""
STREAM: Final = 0
"""The glasses know one microphone and give it no number."""
RING: Final = 2
_PROTOBUF: Final = 5
_FAIL: Final = 7
_NOT_SUPPORTED: Final = 8
"""Result codes of frames."""
_SOUND_SIZES: Final = [LC3_FRAME_BYTES] * LC3_FRAMES
_GESTURES: Final = {
    Gesture.TAP: HubEvent.TAP,
    Gesture.DOUBLE_TAP: HubEvent.DOUBLE_TAP,
    Gesture.BUTTON_LONG: HubEvent.LONG_PRESS,
}
_OWN: Final = frozenset({Sid.CONFIG, Sid.SETTINGS, Sid.FOREGROUND, Sid.CASE, Sid.HUB})
"""Services that are answered here, beside those in `services`; others are ignored."""
_CONFIG_BODY: Final = {
    config.ROLE: config.ROLE_BODY,
    config.LINK: 6,
    config.PART: 7,
    config.UNPAIR: 8,
    config.SOUND: 129,
}
_SOURCE_OF: Final = {side: number for number, side in SOURCES.items()}


class Variant(Struct, frozen=True):
    """How this firmware differs from others, where sources conflict."""

    zeros: bool = False
    settings_flag: int = ANSWER
    needs_auth: bool = False
    silent_without_page: bool = False
    ignores_zone: bool = False
    wide_motion: bool = False
    motion_fields: tuple[int, ...] = (22, 20)
    exit_keeps_page: bool = False
    max_name: int = MAX_NAME
    piece: int = MAX_PIECE
    fragment: int = 255
    refuses: Callable[[Received], bool] = lambda _message: False


STOCK: Final = Variant()


class EvenG2Arm:
    """One connection to one arm; implements `Codec[bytes]` in the peripheral role.

    Messages with an effect become commands with a number: execute them, then `send(Done() or
    Failed(…), re=number)`. Heartbeats and queries are answered here from `facts`, which sent events
    keep up to date. Ten seconds after the last heartbeat of a page it is cleared, and the
    microphone stopped, by commands without a number.
    """

    def __init__(
        self,
        side: Side,
        *,
        max_packet: int = MIN_PACKET,
        variant: Variant = STOCK,
        facts: ArmFacts | None = None,
    ) -> None:
        self.side = side
        self.facts = facts or ArmFacts()
        self.page: HubPageIn | None = None
        self.authenticated = False
        self.encrypted = True
        self.waits_for_bond = False
        """The host sent its first message, and shall be asked to pair."""
        self.listening = self.moving = False
        self._own = OwnReader()
        self._variant = variant
        self._max_packet = clamp_packet(max_packet)
        self._out: deque[bytes] = deque()
        self._inbox: deque[Incoming] = deque()
        self._joiners = {channel: Joiner(Kind.HOST) for channel in ("", FILE)}
        self._files = FileIn()
        self._number = self._seq = 0
        self._answers: dict[int, Callable[[bool], None]] = {}
        self._page_ends_at = 0.0
        self._now = 0.0
        self._hub: Final[dict[int, Callable[[int, Message], None]]] = {
            Cmd.CREATE: self._create,
            Cmd.REBUILD: self._create,
            Cmd.TEXT: self._text,
            Cmd.IMAGE: self._image,
            Cmd.LEAVE: self._leave,
            Cmd.BEAT: self._beat,
            Cmd.AUDIO: self._audio,
            Cmd.MOTION: self._motion,
        }

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation`, after refusing a damaged message."""
        self._now = now
        channel = channel_of(packet)
        if channel not in self._joiners:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet for {channel!r}")
        if len(packet) - HEAD > self._variant.fragment:
            self._out_packets([nak(packet[2], packet[6])], channel)
            return
        try:
            message = self._joiners[channel].add(packet)
        except BadChecksum as bad:
            self._out_packets([nak(bad.seq, bad.sid)], channel)
            raise
        if message is None or message.payload is None:
            return
        if self._variant.refuses(message):
            self._out_packets([nak(message.seq, message.sid)], channel)
            return
        try:
            if channel == FILE:
                self._file(message.sid, message.payload)
            else:
                self._message(message)
        except (RemoteViolation, ValueError) as error:
            self._out_packets([nak(message.seq, message.sid, _PROTOBUF)], channel)
            if isinstance(error, RemoteViolation):
                raise
            raise RemoteViolation(
                Violation.BAD_MESSAGE, f"service {message.sid:02X}: {error}"
            ) from None

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _message(self, received: Received) -> None:
        sid, payload = received.sid, received.payload or b""
        right = self.side is Side.RIGHT
        if Sid.UPDATE <= sid <= Sid.UPDATE_END:
            self._out_packets([nak(received.seq, sid, _NOT_SUPPORTED)], "")
            return
        if right and sid in services.KNOWN:
            self._service(sid, payload)
            return
        if sid not in _OWN:
            return
        message = Message(payload)
        cmd, magic = message.integer(1), message.integer(2)
        match sid:
            case Sid.CONFIG if cmd == config.BEAT:
                self._say_raw(sid, payload, channel="")
            case Sid.CONFIG:
                self._config(cmd, magic, message)
            case Sid.SETTINGS:
                self._settings(cmd, magic, message)
            case Sid.HUB if right and not (self._variant.needs_auth and not self.authenticated):
                take = self._hub.get(cmd)
                if take is not None:
                    take(magic, message)
            case Sid.FOREGROUND if right:
                shown = {1: int(Sid.HUB)} if self.page else {}
                self._say(sid, {1: 1, 3: shown}, flag=NOTICE)
            case Sid.CASE if right:
                self._say(sid, {1: 1, 2: magic, 3: dict(self.facts.case)})

    def _service(self, sid: int, payload: bytes) -> None:
        """Answer a service of the glasses' own, after what it asks for has been done."""
        command = self._own.read(sid, Message(payload))
        answer = services.answer(sid, payload)
        said = encode(answer, zeros=self._variant.zeros) if isinstance(answer, dict) else answer
        if command is None:
            self._say_raw(sid, said, channel="")
            return
        self._command(
            command,
            lambda ok: self._say_raw(sid, said, flag=ANSWER if ok else _FAIL << 1, channel=""),
        )

    def _config(self, cmd: int, magic: int, message: Message) -> None:
        match cmd:
            case config.AUTH:
                self.authenticated = True
                self._say(Sid.CONFIG, {1: cmd, 2: magic, config.AUTH_BODY: {}})
                self.waits_for_bond = not self.encrypted
                if self.encrypted:
                    self.bonded()
            case _ if self.side is Side.LEFT:
                return
            case config.RING:
                body = {config.RING_BODY: {4: config.RING_CONNECTED}}
                self._say(Sid.CONFIG, {1: cmd, 2: magic, config.RING_BODY: {}})
                self._say(Sid.CONFIG, {1: cmd, **body}, flag=NOTICE)
            case config.ROLE | config.LINK | config.PART | config.UNPAIR | config.SOUND:
                self._say(Sid.CONFIG, {1: cmd, 2: magic, _CONFIG_BODY[cmd]: {}})
            case config.TIME:
                time = message.message(config.TIME_BODY)
                zone = 0 if self._variant.ignores_zone else time.signed(2)
                local_s = time.integer(1) + config.ZONE_S * zone
                answer = {1: cmd, 2: magic, config.TIME_BODY: {}}
                self._command(SetClock(local_s), lambda _ok: self._say(Sid.CONFIG, answer))
            case _:  # also a reset and a restart
                refused = {1: cmd, 2: _NOT_SUPPORTED}
                self._say(Sid.CONFIG, {1: config.REFUSED, 2: magic, config.REFUSED_BODY: refused})

    def bonded(self) -> None:
        """Report that the host is authenticated; on a link that is not encrypted, after that."""
        self.waits_for_bond = False
        self._say(Sid.CONFIG, {1: config.AUTH, config.AUTH_BODY: {1: 1}}, flag=NOTICE)

    def _settings(self, cmd: int, magic: int, message: Message) -> None:
        flag = self._variant.settings_flag
        if cmd == config.QUERY:
            body = settings(self.facts)
            self._say(Sid.SETTINGS, {1: cmd, 2: magic, config.QUERY_BODY: body}, flag=flag)
        elif cmd == config.SET and self.side is Side.RIGHT:
            command = setting(message.message(config.SET_BODY), self.facts)
            answer = {1: cmd, 2: magic, config.SET_BODY: {}}
            if command is None:
                self._say(Sid.SETTINGS, answer, flag=flag)
            else:
                self._command(
                    command,
                    lambda ok: self._say(Sid.SETTINGS, answer, flag=flag if ok else _FAIL << 1),
                )

    def _file(self, sid: int, payload: bytes) -> None:
        if sid == Sid.FILE_DATA:
            self._say_raw(sid, self._files.data(payload))
            return
        answer = self._files.command(payload)
        command = self._files.take() if payload[:1] == b"\x02" else None
        if command is not None and answer is not None:
            done = answer
            self._command(command, lambda ok: self._say_raw(sid, done if ok else done[:1] + b"\7"))
        elif answer is not None:
            self._say_raw(sid, answer)

    # -------------------------------------------------------------- pages

    def _create(self, magic: int, message: Message) -> None:
        cmd = Cmd(message.integer(1))
        failed = Code.BAD_CONTAINER if cmd is Cmd.CREATE else Code.REBUILD_FAILED
        try:
            page = HubPageIn.parse(body_of(message, cmd), max_name=self._variant.max_name)
        except Refused as refused:
            if refused.code is not None:
                self._say_code(cmd, magic, refused.code)
            return
        if cmd is Cmd.CREATE and self.page is not None and page.names() & self.page.names():
            return  # a second creation of a live name gets no answer
        if cmd is Cmd.REBUILD and self.page is None:
            self._without_page(cmd, magic, Code.REBUILD_FAILED)
            return
        self.page, self._page_ends_at = page, self._now + PAGE_S
        made = Code.CREATED if cmd is Cmd.CREATE else Code.REBUILT
        self._command(page.shown(), lambda ok: self._say_code(cmd, magic, made if ok else failed))

    def _text(self, magic: int, message: Message) -> None:
        if self.page is None:
            self._without_page(Cmd.TEXT, magic, Code.TEXT_FAILED)
        elif not self.page.write(body_of(message, Cmd.TEXT)):
            self._say_code(Cmd.TEXT, magic, Code.TEXT_FAILED)
        else:
            self._command(
                self.page.shown(),
                lambda ok: self._say_code(
                    Cmd.TEXT, magic, Code.TEXT_OK if ok else Code.TEXT_FAILED
                ),
            )

    def _image(self, magic: int, message: Message) -> None:
        body = body_of(message, Cmd.IMAGE)
        if len(body.data(8)) > self._variant.piece:
            self._say(Sid.HUB, {1: int(Cmd.IMAGE_TAKEN), 2: magic}, flag=_FAIL << 1)
            return
        repeated = {at: body.integer(at) for at in (1, 3, 4, 5, 6, 7)}
        head = {1: repeated.pop(1), 2: body.text(2), **repeated}

        def answer(ok: bool) -> None:  # noqa: FBT001 - as every answer
            code = Code.IMAGE_OK if ok else Code.IMAGE_FAILED
            self._say_body(Cmd.IMAGE_TAKEN, magic, {**head, 8: int(code)})

        try:
            good, whole = (False, False) if self.page is None else self.page.add(body)
        except RemoteViolation:
            answer(False)
            raise
        if self.page is not None and good and whole:
            self._command(self.page.shown(), answer)
        else:
            answer(good)

    def _leave(self, magic: int, _message: Message) -> None:
        if self.page is None:
            self._without_page(Cmd.LEAVE, magic, Code.LEAVE_FAILED)
            return
        self._drop_page()
        self._command(ClearPage(), lambda _ok: self._say_code(Cmd.LEAVE, magic, Code.LEFT))

    def _beat(self, magic: int, _message: Message) -> None:
        if self.page is not None:
            self._page_ends_at = self._now + PAGE_S
            self._say_body(Cmd.BEAT_TAKEN, magic, {2: int(Code.BEAT)})

    def _audio(self, magic: int, message: Message) -> None:
        on = bool(body_of(message, Cmd.AUDIO).integer(1))
        refused = {1: int(on), 2: int(Code.AUDIO_FAILED)}
        if on and self.page is None:
            self._say_body(Cmd.AUDIO_TAKEN, magic, refused)
            return
        command = StartMicrophone(STREAM, AudioFormat.LC3, RATE) if on else StopMicrophone(STREAM)
        self.listening = on
        self._command(
            command,
            lambda ok: self._say_body(Cmd.AUDIO_TAKEN, magic, {1: int(on)} if ok else refused),
        )

    def _motion(self, magic: int, message: Message) -> None:
        """Switch the motion sensor: the request is in one of two fields."""
        fields = [field for field in self._variant.motion_fields if field in message]
        if not fields:
            raise RemoteViolation(Violation.BAD_MESSAGE, "a request for motion without its body")
        self.moving = bool(message.message(fields[0]).integer(1)) and self.page is not None
        self._say_body(Cmd.MOTION_TAKEN, magic, {})
        if self.moving:
            self._command(GetMotion(), lambda _ok: None)

    def _without_page(self, cmd: Cmd, magic: int, code: Code) -> None:
        if not self._variant.silent_without_page:
            self._say_code(cmd, magic, code)

    def _drop_page(self) -> None:
        """Drop the page, and the microphone with it."""
        self.page = None
        self.moving = False
        if self.listening:
            self.listening = False
            self._inbox.append(Incoming(StopMicrophone(STREAM)))

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        """Queue an answer or event. Raises `LocalMisuse` for messages these glasses do not have."""
        self._now = now
        if re is not None:
            answer = self._answers.pop(re, None)
            if answer is not None and isinstance(message, Failed | Done):
                answer(isinstance(message, Done))
            return 0
        self._event(message)
        return 0

    def _event(self, message: Command | Event | Reply) -> None:
        match message:
            case Gestured(gesture, side) if gesture in _GESTURES:
                self._hub_event(_GESTURES[gesture], side)
            case ButtonReleased(side):
                self._hub_event(HubEvent.RELEASE, side)
            case PageClosed():
                self._hub_event(HubEvent.SYSTEM_EXIT, None)
                if not self._variant.exit_keeps_page:
                    self._drop_page()
            case BatteryChanged(level, charging):
                self.facts.battery, self.facts.charging = level, charging
                if charging and self.page is not None:
                    self._drop_page()
                    self._inbox.append(Incoming(ClearPage()))
            case CaseChanged(level, charging):
                case = {1: level or 0, 2: int(bool(charging))}
                self.facts.case.update(case)
                self._say(Sid.CASE, {1: 1, 3: dict(self.facts.case)}, flag=NOTICE)
            case WornChanged(worn):
                self.facts.worn = worn
                self._say(Sid.ONBOARDING, {1: 3, 5: {1: 1, 2: int(worn)}}, flag=NOTICE)
            case HidingChanged(Hiding.SILENT, hidden):
                self.facts.silent = hidden
                body = {config.PUSH_BODY: {2: int(hidden)}}
                self._say(Sid.SETTINGS, {1: config.PUSH, **body}, flag=NOTICE)
            case HidingChanged(Hiding.DASHBOARD, hidden):
                shown = {1: int(Sid.DASHBOARD)} if hidden else {}
                self._say(Sid.FOREGROUND, {1: 1, 3: shown}, flag=NOTICE)
            case MotionRead(acceleration=vector):
                if self.moving:
                    of = Double if self._variant.wide_motion else float
                    motion = {axis: of(each) for axis, each in enumerate(vector, 1)}
                    system = {1: int(HubEvent.MOTION), 3: motion}
                    self._say_event({3: system})
            case MicrophoneChunk(index=at, frames=frames) if [*map(len, frames)] == _SOUND_SIZES:
                data = b"".join(frames) + bytes((100, 0, 0, 0, at % 256))
                self._out_packets([data], SOUND)
            case _:
                raise LocalMisuse(f"an Even G2 never says {type(message).__name__}")

    def _hub_event(self, kind: HubEvent, side: Side | None) -> None:
        """Report an event of the page; without one the glasses use gestures themselves. A tap on a
        list chooses its first entry.
        """
        if self.page is None:
            return
        if kind is HubEvent.TAP and (chosen := self.page.chosen()) is not None:
            self._say_event({1: chosen})
            return
        source = RING if side is None else _SOURCE_OF[side]
        system = {1: int(kind), 2: source} if kind is not HubEvent.SYSTEM_EXIT else {1: int(kind)}
        self._say_event({3: system})

    def _say_event(self, event: Fields) -> None:
        self._say(Sid.HUB, {1: int(Cmd.EVENT), BODY[Cmd.EVENT]: event}, flag=NOTICE)

    def _command(self, command: Command, answer: Callable[[bool], None]) -> None:
        self._number += 1
        self._answers[self._number] = answer
        while len(self._answers) > MAX_WAITING:
            del self._answers[next(iter(self._answers))]
        self._inbox.append(Incoming(command, number=self._number))

    def _say_code(self, cmd: Cmd, magic: int, code: Code) -> None:
        self._say_body(Cmd(cmd + 1), magic, {1: int(code)})

    def _say_body(self, cmd: Cmd, magic: int, body: Mapping[int, Any]) -> None:
        self._say(Sid.HUB, {1: int(cmd), 2: magic, BODY[cmd]: body})

    def _say(self, sid: int, fields: Fields, *, flag: int = ANSWER) -> None:
        self._say_raw(sid, encode(fields, zeros=self._variant.zeros), flag=flag, channel="")

    def _say_raw(
        self, sid: int, payload: bytes, *, flag: int = ANSWER, channel: str = FILE_ANSWER
    ) -> None:
        self._seq = (self._seq + 1) % 256
        room = max(self._max_packet, HEAD + 3)
        self._out_packets(
            cut(payload, Kind.GLASSES, self._seq, sid, flag, max_packet=room), channel
        )

    def _out_packets(self, packets: list[bytes], channel: str) -> None:
        channel = FILE_ANSWER if channel == FILE else channel
        if len(self._out) + len(packets) <= MAX_WAITING:
            self._out.extend(ChannelPacket(packet, channel) for packet in packets)

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return all waiting packets: these glasses have no flow control."""
        packets, self._out = list(self._out), deque()
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """The time when a page without heartbeats is gone."""
        return None if self.page is None else self._page_ends_at

    def handle_timer(self, now: float) -> None:
        """Drop a page that got no heartbeat."""
        self._now = now
        if self.page is not None and now >= self._page_ends_at:
            self._drop_page()
            self._inbox.append(Incoming(ClearPage()))
