"""Even Realities G1, central role: translates messages to the packets of both arms and back.

The two arms are two radios. When one is lost the other continues; when it returns it gets the
current page again.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.even_g1.commands import CommandEncoder
from firmware_bridge.codecs.even_g1.events import EventDecoder, firmware, serial
from firmware_bridge.codecs.even_g1.own_events import OwnEventDecoder
from firmware_bridge.codecs.even_g1.position import PositionSetter
from firmware_bridge.codecs.even_g1.scheduler import End, LaneKind, PairRequest, Scheduler
from firmware_bridge.codecs.even_g1.sound import PAUSE_S, SoundStream
from firmware_bridge.codecs.even_g1.wire import STOCK, Dialect, Op
from firmware_bridge.errors import CommandRefused, LinkLost, LostReason, RemoteViolation, Violation
from firmware_bridge.messages import (
    AllowApps,
    AudioFormat,
    ClearPage,
    Command,
    Done,
    Event,
    ExitToDashboard,
    Failed,
    GlassesInfo,
    Hello,
    Hiding,
    HidingChanged,
    OwnCommand,
    PageClosed,
    Reply,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowPage,
    SideChanged,
    StartMicrophone,
    StopMicrophone,
    UpdatePage,
)
from firmware_bridge.own_commands import SetDisplayPosition, SetHeadUpAction
from firmware_bridge.packets import MIN_PACKET, clamp_packet
from firmware_bridge.sides import Side, Sided, SideNews
from firmware_bridge.whole_page import whole_page

BEAT_AFTER_S: Final = 8.0
"""Seconds without a packet to an arm before a heartbeat; arms disconnect after 30 to 32 s."""
BATTERY_EVERY_S: Final = 60.0
_SETTINGS: Final = (SetBrightness, SetSilentMode, SetWearDetection, SetHeadUpAngle, AllowApps)


class EvenG1Codec:
    """One connection to a pair; implements `Codec[Sided]` in the central role. Used once.

    Emits `SideNews(side, up=False)` for an arm that stopped answering, which asks the transport to
    reconnect it. `skew_s`, `worst_skew_s`: seconds between both arms taking the last page, and the
    worst so far.
    """

    def __init__(
        self,
        *,
        width: Callable[[str], float],
        max_packet: int = MIN_PACKET,
        dialect: Dialect = STOCK,
    ) -> None:
        self.skew_s: float | None = None
        self.worst_skew_s: float | None = None
        size = clamp_packet(max_packet)
        self._encoder = CommandEncoder(max_packet=size, width=width, dialect=dialect)
        self._scheduler = Scheduler()
        self._decoder = EventDecoder()
        self._own = OwnEventDecoder()
        self._position = PositionSetter(self._encoder.own)
        self._inbox: deque[Incoming] = deque()
        self._given_up: deque[SideNews] = deque()
        self._number = 0
        self._page: ShowPage | None = None
        self._drawn = False
        self._settings: dict[type, Command] = {}
        self._stream: SoundStream | None = None
        self._arm_refused: Reply | None = None
        self._silenced_at = float("-inf")
        self._silencing: PairRequest | None = None
        self._battery_at: float | None = None

    def set_max_packet(self, size: int) -> None:
        """Set the packet size: that of the arm with the smaller packets."""
        self._encoder.max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: Sided, now: float) -> None:
        """Process a packet, or a side's loss or return. Raises nothing but `RemoteViolation`."""
        if isinstance(packet, SideNews):
            self._side(packet, now)
        elif packet.side in self._scheduler.up:
            self._scheduler.noticed(packet.side, now)
            if not packet.data:
                raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
            self._packet(packet.side, packet.data, now)
        self._settle(now)

    def _packet(self, side: Side, data: bytes, now: float) -> None:
        match data[0]:
            case Op.EVENT:
                self._event(side, data, now)
            case Op.SOUND:
                self._sound(side, data, now)
            case Op.FIRST:
                return  # a line of the glasses' log
            case op:
                self._scheduler.receive(side, data, now)
                if op == Op.BATTERY:
                    self._tell(*self._decoder.battery(side, data))
                elif op == Op.SILENT_GET:
                    self._tell(*self._decoder.state(data))
                elif op == Op.BRIGHTNESS_GET:
                    self._tell(*self._decoder.brightness(data))
                else:
                    self._tell(*self._own.events(data))

    def _event(self, side: Side, data: bytes, now: float) -> None:
        """Report the event; the wearer's own silent mode is not undone on a returning arm."""
        events = self._decoder.event(side, data, now)
        if any(isinstance(event, HidingChanged) and event.by is Hiding.SILENT for event in events):
            self._settings.pop(SetSilentMode, None)
        if PageClosed() in events:
            self._encoder.own.left_navigation()
        self._tell(*events)

    def _sound(self, side: Side, data: bytes, now: float) -> None:
        """Report sound; switch off a microphone that was not asked for."""
        if self._stream is not None:
            if self._stream.is_open:
                self._tell(self._stream.receive(data, now))
            return
        idle = self._silencing is None or self._silencing.ends
        if idle and now - self._silenced_at >= PAUSE_S:
            self._silenced_at = now
            self._silencing = self._encoder.microphone(on=False, arm=side)
            self._scheduler.begin(self._silencing, now)

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next answer or event."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _tell(self, *events: Event) -> None:
        self._inbox.extend(map(Incoming, events))

    # -------------------------------------------------------------- sides

    def _side(self, news: SideNews, now: float) -> None:
        if news.up is (news.side in self._scheduler.up):
            return
        if not news.up:
            self._scheduler.side_down(news.side, now)
            self._tell(SideChanged(news.side, up=False, reason=news.reason))
            return
        self._scheduler.side_up(news.side, now)
        self._encoder.own.left_navigation()
        self._tell(SideChanged(news.side, up=True, reason=news.reason))
        self._scheduler.begin(self._encoder.greeting(news.side), now)
        self._restore(news.side, now)

    def _restore(self, side: Side, now: float) -> None:
        """Restore settings, page and microphone on a returning arm, without involving the other."""
        wanted: list[Command] = [*self._settings.values(), *self._position.wanted(side)]
        if self._drawn:
            wanted.append(self._page or ClearPage())
        if self._stream is not None:
            wanted.append(StartMicrophone(self._stream.number, AudioFormat.LC3))
        for command in wanted:
            try:
                request = self._encoder.of(command)
            except CommandRefused:
                continue  # the packets of the returned arm are too small for the picture
            request.steps = {each: steps for each, steps in request.steps.items() if each is side}
            if isinstance(command, SetDisplayPosition):
                request.about = command
            if request.steps:
                self._scheduler.begin(request, now)
                if self._stream is not None and isinstance(command, StartMicrophone):
                    self._stream.reopened()

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Start a command. Raises `CommandRefused` if impossible now, `LocalMisuse` if too many."""
        if not isinstance(message, Command):
            raise CommandRefused("unsupported", f"a central never says {type(message).__name__}")
        command = whole_page(self._page, message) if isinstance(message, UpdatePage) else message
        self._check_stream(command)
        request = self._encoder.of(command)
        request.number = self._number = self._number + 1
        request.about = command
        if request.kind is LaneKind.LENS and not isinstance(command, OwnCommand):
            self._scheduler.supersede()
            self._encoder.own.left_navigation()
        if isinstance(command, SetDisplayPosition):
            self._interrupt_position()
        self._scheduler.begin(request, now)
        self._remember(command, takes_lens=request.kind is LaneKind.LENS)
        self._settle(now)
        return request.number

    def _interrupt_position(self) -> None:
        for request in self._position.replace():
            if request.number:
                failed = Failed("interrupted", "a newer position replaced it")
                self._inbox.append(Incoming(failed, re=request.number))

    def _check_stream(self, command: Command) -> None:
        if isinstance(command, StartMicrophone) and self._stream is not None:
            raise CommandRefused("busy", f"microphone stream {self._stream.number} is open")
        opened = None if self._stream is None else self._stream.number
        if isinstance(command, StopMicrophone) and opened != command.stream:
            raise CommandRefused("no_stream", f"microphone stream {command.stream} is not open")

    def _remember(self, command: Command, *, takes_lens: bool) -> None:
        """Remember what must be restored on a returning arm."""
        match command:
            case ShowPage():
                self._page, self._drawn = command, True
            case ClearPage() | ExitToDashboard():
                self._page, self._drawn = None, True
            case StartMicrophone(stream):
                self._stream = SoundStream(stream)
            case StopMicrophone():
                self._stream = None
            case _ if isinstance(command, _SETTINGS):
                self._settings[type(command)] = command
            case OwnCommand() if command.is_setting:
                self._settings[type(command)] = command
            case OwnCommand() if takes_lens:
                self._page, self._drawn = None, False

    def packets_to_send(self, now: float) -> list[Sided]:
        """Return the packets to send now: sides given up first, then packets, left before right."""
        out: list[Sided] = [*self._given_up, *self._scheduler.emit(now)]
        self._given_up.clear()
        self._settle(now)
        return out

    def backlog(self) -> int:
        """Bytes not yet sent, or sent and not yet answered."""
        return self._scheduler.backlog()

    # -------------------------------------------------------------- time

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        due = [self._scheduler.due(), self._battery_at, self._position.due()]
        due += [self._scheduler.sent_at[side] + BEAT_AFTER_S for side in self._scheduler.up]
        due.append(None if self._stream is None else self._stream.due())
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Retry, and send heartbeats to both arms. Raises `LinkLost(SILENT)` if neither answers."""
        self._scheduler.timer(now)
        for side in sorted(self._scheduler.up):
            if now >= self._scheduler.sent_at[side] + BEAT_AFTER_S:
                # due again only after another silence, also when the lane is busy
                self._scheduler.sent_at[side] = now
                self._scheduler.begin(self._encoder.beat(side), now)
        if self._battery_at is not None and now >= self._battery_at:
            self._battery_at = now + BATTERY_EVERY_S
            self._scheduler.begin(self._encoder.batteries(), now)
        for request in self._position.keep(now):
            self._scheduler.begin(request, now)
        reopen_at = None if self._stream is None else self._stream.due()
        if self._stream is not None and reopen_at is not None and now >= reopen_at:
            self._stream.reopened()
            self._scheduler.begin(self._encoder.microphone(on=True), now)
        self._settle(now)

    def _settle(self, now: float) -> None:
        """Turn finished requests into answers, and give up arms that no longer respond."""
        if self._battery_at is None and self._scheduler.up:
            self._battery_at = now + BATTERY_EVERY_S
        while self._scheduler.silent:
            side = self._scheduler.silent.popleft()
            if side in self._scheduler.up:
                self._given_up.append(SideNews(side, up=False, reason="silent"))
                self._side(self._given_up[-1], now)
        while self._scheduler.finished:
            self._answer(self._scheduler.finished.popleft(), now)
        if self._given_up and not self._scheduler.up:
            raise LinkLost(LostReason.SILENT, "neither side answers any more")

    def _answer(self, request: PairRequest, now: float) -> None:
        if self._position.asks_again(request, now):
            return
        self._position.finished(request)
        if request.number == 0:
            return
        if (skew := request.skew_s()) is not None and request.kind is LaneKind.LENS:
            self.skew_s, self.worst_skew_s = skew, max(skew, self.worst_skew_s or 0.0)
        reply = self._reply(request)
        if isinstance(request.about, StartMicrophone):
            refused = isinstance(reply, Failed) and End.REFUSED in request.ends.values()
            if refused and self._arm_refused is None:
                self._try_other_arm(request, now)
                return
            reply = self._microphone_answered(reply, now)
        if isinstance(reply, Failed) and isinstance(request.about, OwnCommand):
            self._encoder.own.left_navigation()
        if isinstance(reply, Done):
            self._tell(*self._hidden_by(request.about), *self._own.done(request.about))
        if reply is not None:
            self._inbox.append(Incoming(reply, re=request.number))

    def _try_other_arm(self, request: PairRequest, now: float) -> None:
        """Open the microphone of the other arm: by one source it is the left one's."""
        self._arm_refused = self._reply(request)
        self._encoder.microphone_arm = self._encoder.microphone_arm.other
        again = self._encoder.microphone(on=True)
        self._scheduler.begin(again, now)
        again.number, again.about = request.number, request.about

    def _microphone_answered(self, reply: Reply | None, now: float) -> Reply | None:
        """Remember the arm that took it; where neither did, the usual one's answer counts."""
        refused, self._arm_refused = self._arm_refused, None
        if isinstance(reply, Done):
            if self._stream is not None:
                self._stream.opened(now)
            return reply
        self._stream = None
        if refused is not None:
            self._encoder.microphone_arm = self._encoder.microphone_arm.other
        return refused or reply

    def _hidden_by(self, command: object) -> list[Event]:
        match command:
            case SetSilentMode(on):
                return self._decoder.hides(Hiding.SILENT, on)
            case SetHeadUpAction(dashboard):
                self._decoder.opens_looking_up = dashboard
            case SetBrightness(level, auto):
                return self._decoder.hides(Hiding.DARK, level == 0 and not auto)
        return []

    def _reply(self, request: PairRequest) -> Reply | None:
        """Return None where no arm answered: the outcome is unknown and the request times out."""
        ends = request.ends
        reached = {End.TAKEN, End.UNANSWERED, End.REFUSED} & set(ends.values())
        if isinstance(request.about, Hello) and reached:
            return GlassesInfo("G1", firmware(request.answers), serial(request.answers), {}, {})
        refusing = [side for side, end in ends.items() if end is End.REFUSED]
        if refusing and (request.kind is LaneKind.LENS or End.TAKEN not in ends.values()):
            return Failed("busy", f"the {refusing[0]} side refused")
        if End.DROPPED in ends.values():
            return Failed("interrupted", "a newer page replaced it")
        if End.TAKEN in ends.values():
            return Done(skew_s=request.skew_s())
        if set(ends.values()) == {End.GONE}:
            return Failed("busy", f"the {' and the '.join(ends)} side is away")
        return None
