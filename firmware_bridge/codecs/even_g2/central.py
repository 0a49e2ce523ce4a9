"""Even Realities G2, central role: translates messages to the packets of both arms and back.

Pages, settings and queries go to the right arm; the left one is authenticated, kept alive, asked
for its battery, and heard: its microphone is the usual one.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.even_g2 import PAGE_BYTES, SOUND, config, files, hub
from firmware_bridge.codecs.even_g2.events import EventDecoder
from firmware_bridge.codecs.even_g2.hub import Code
from firmware_bridge.codecs.even_g2.lanes import NEVER, Flow, Lane, Task, ask, once
from firmware_bridge.codecs.even_g2.own import OwnEncoder
from firmware_bridge.codecs.even_g2.pages import HubPage
from firmware_bridge.codecs.even_g2.picture import pictures
from firmware_bridge.codecs.even_g2.sound import PAUSE_S, SoundStream
from firmware_bridge.codecs.even_g2.wire import RAW, STOCK, Dialect, Joiner, Kind, Manner, Received
from firmware_bridge.errors import CommandRefused, LinkLost, LocalMisuse, LostReason
from firmware_bridge.messages import (
    AllowApps,
    AudioFormat,
    ClearPage,
    Command,
    Done,
    Event,
    ExitToDashboard,
    Failed,
    Hello,
    Hiding,
    OwnCommand,
    PageClosed,
    Ping,
    Reply,
    SetBrightness,
    SetClock,
    SetSilentMode,
    ShowNotification,
    ShowPage,
    SideChanged,
    StartMicrophone,
    StopMicrophone,
    UpdatePage,
)
from firmware_bridge.own_commands import GetMotion, MotionRead
from firmware_bridge.packets import MIN_PACKET, channel_of, clamp_packet
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side, Sided, SideNews
from firmware_bridge.text_rows import lay_out
from firmware_bridge.whole_page import whole_page

BATTERY_EVERY_S: Final = 60.0
DOUBT_S: Final = 1.5
"""Seconds after which a page that may be gone is looked for, as one host waits."""
MAX_REQUESTS: Final = 64
"""Commands without an answer; beyond it the caller is not waiting for answers."""
UNKNOWN: Final = float("-inf")
_LENS: Final = (ShowPage, UpdatePage, ClearPage, ExitToDashboard)


class EvenG2Codec:
    """One connection to a pair; implements `Codec[Sided]` in the central role. Used once.

    Emits `SideNews(side, up=False)` for an arm that stopped answering, which asks the transport to
    reconnect it.
    """

    def __init__(
        self,
        *,
        width: Callable[[str], float],
        max_packet: int = MIN_PACKET,
        dialect: Dialect = STOCK,
    ) -> None:
        self._width = width
        self._dialect = dialect
        self._inbox: deque[Incoming] = deque()
        self._given_up: deque[SideNews] = deque()
        self._silent: deque[Side] = deque()
        self._held: deque[Task] = deque()
        self._up: dict[Side, Lane] = {}
        """The arms that are there, left before right."""
        self._met = False
        manner = Manner(dialect)
        self._lanes = {
            side: Lane(side, self._ended, partial(self._silent.append, side), manner)
            for side in Side
        }
        self._joiners = {side: Joiner(Kind.GLASSES) for side in Side}
        self._events = EventDecoder(self._doubt)
        self._hub = HubPage(dialect.image_bytes)
        self._number = 0
        self._page: ShowPage | None = None
        self._stream: SoundStream | None = None
        self._silenced_at = self._rested_at = UNKNOWN
        self._wants_motion = False
        self._own_commands = OwnEncoder(dialect)
        self._offset_s = 0
        self._now = 0.0
        self._battery_at = NEVER
        self._hub_beat_at = 0.0
        self._probe_at = NEVER
        self._quiet_until = UNKNOWN
        """Until then nothing is due but packets that wait."""
        self.set_max_packet(max_packet)

    def set_max_packet(self, size: int) -> None:
        """Set the packet size: that of the arm with the smaller packets."""
        for lane in self._lanes.values():
            lane.max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: Sided, now: float) -> None:
        """Process a packet, or a side's loss or return. Raises nothing but `RemoteViolation`."""
        self._now, self._quiet_until = now, UNKNOWN
        try:
            if isinstance(packet, SideNews):
                self._side(packet, now)
            elif packet.side in self._up:
                self._lanes[packet.side].heard_at = now
                self._packet(packet.side, packet.data, now)
        finally:
            self._settle(now)

    def _packet(self, side: Side, data: bytes, now: float) -> None:
        if channel_of(data) == SOUND:
            self._sound(side, data, now)
            return
        received = self._joiners[side].add(data)
        if received is not None and not self._lanes[side].receive(received, now):
            self._unasked(side, received)

    def _sound(self, side: Side, data: bytes, now: float) -> None:
        """Report sound; switch off a microphone that was not asked for."""
        if self._stream is None:
            if now - self._silenced_at >= PAUSE_S:
                self._silenced_at = now
                self._own(once(ask(hub.audio(on=False))))
        elif self._stream.is_open:
            chunk = self._stream.receive(side, data, now)
            if chunk is not None:
                self._tell(chunk)

    def _unasked(self, side: Side, received: Received) -> None:
        if not received.payload or received.sid in RAW:
            return
        events = self._events.decode(side, received.sid, Message(received.payload))
        if any(isinstance(event, MotionRead) for event in events):
            self._moved(events)
        else:
            self._tell(*events)

    def _moved(self, events: list[Event]) -> None:
        """Report motion that was asked for, once; then the sensor rests again."""
        if self._wants_motion:
            self._tell(*events)
        if self._wants_motion or self._now - self._rested_at >= PAUSE_S:
            self._wants_motion, self._rested_at = False, self._now
            self._own(self._own_commands.motion(on=False))

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next answer or event."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _tell(self, *events: Event) -> None:
        self._inbox.extend(map(Incoming, events))

    # -------------------------------------------------------------- sides

    def _side(self, news: SideNews, now: float) -> None:
        side, lane = news.side, self._lanes[news.side]
        if news.up is (side in self._up):
            return
        self._tell(SideChanged(side, up=news.up, reason=news.reason))
        if not news.up:
            self._up.pop(side, None)
            self._joiners[side] = Joiner(Kind.GLASSES)
            if side is Side.RIGHT:
                self._hub.lost()
            lane.clear(f"the {side} side is away")
            return
        self._up = dict(sorted({**self._up, side: lane}.items()))
        lane.heard_at = lane.beat_at = now
        lane.add(Task(config.greet(side, self._state_of(side), self._dialect)))
        if side is Side.RIGHT:
            self._restore()
        if not self._met:
            self._met, self._battery_at = True, now + BATTERY_EVERY_S
        while self._held:
            self._begin(self._held.popleft())

    def _state_of(self, side: Side) -> config.Report:
        """Return what reports the state that an arm answers with."""
        return lambda sid, answer: self._tell(*self._events.decode(side, sid, answer))

    def _restore(self) -> None:
        """Restore page and microphone on the right arm: it lost both."""
        lane = self._lanes[Side.RIGHT]
        if self._page is not None:
            lane.add(Task(self._draw(self._page), about=self._page, lens=True))
        if self._stream is not None:
            lane.add(Task(self._listen(), about=self._stream))

    def _doubt(self) -> None:
        """The page may be gone: look for it soon."""
        if self._hub.alive and self._probe_at == NEVER:
            self._probe_at = self._now + DOUBT_S

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Start a command. Raises `CommandRefused` if impossible now, `LocalMisuse` if too many."""
        self._now, self._quiet_until = now, UNKNOWN
        if not isinstance(message, Command):
            raise CommandRefused("unsupported", f"a central never says {type(message).__name__}")
        tasks = [task for lane in self._lanes.values() for task in lane.tasks()]
        if sum(task.number > 0 for task in [*tasks, *self._held]) >= MAX_REQUESTS:
            raise LocalMisuse(f"{MAX_REQUESTS} commands are under way: wait for their answers")
        command = whole_page(self._page, message) if isinstance(message, UpdatePage) else message
        self._check_stream(command)
        lens = isinstance(command, _LENS)
        task = Task(self._flow(command), self._number + 1, command, lens)
        self._number += 1
        if lens:
            for older in tasks:
                older.stale |= older.lens
        self._remember(command)
        if self._met:
            self._begin(task)
        else:
            self._held.append(task)  # wait for the first side
        self._settle(now)
        return task.number

    def _begin(self, task: Task) -> None:
        """Start a command at the right arm; a greeting and a ping at the left one if need be."""
        for side in (Side.RIGHT, Side.LEFT):
            if side in self._up and (side is Side.RIGHT or isinstance(task.about, Hello | Ping)):
                self._lanes[side].add(task, urgent=isinstance(task.about, Ping))
                return
        self._ended(task, Failed("busy", "the right side is away"))

    def _flow(self, command: Command) -> Flow:
        """Return how a command is carried out. Raises `CommandRefused`."""
        match command:
            case Hello():
                return config.hello()
            case Ping():
                return once(config.heartbeat())
            case ShowPage():
                return self._draw(command)
            case ClearPage():
                return self._hub.clear()
            case ExitToDashboard():
                return self._hub.leave()
            case StartMicrophone(format=form):
                if form is not AudioFormat.LC3:
                    raise CommandRefused("unsupported", f"{form}; the microphone speaks lc3")
                return self._listen()
            case StopMicrophone():
                return once(ask(hub.audio(on=False)))
            case AllowApps() | ShowNotification():
                return files.send(command, self._offset_s)
            case SetClock():
                self._offset_s = command.offset_s
                return self._own_commands.flow(command)
            case GetMotion():
                return self._move()
            case OwnCommand():
                return self._own_commands.flow(command)
        return once(config.setting(command, self._dialect))

    def _draw(self, page: ShowPage) -> Flow:
        """Return the flow that shows a page. Raises `CommandRefused` if it is too large."""
        text = lay_out(page.lines, self._width, PAGE_BYTES).removesuffix("\n")
        size = len(text.encode())
        if size > PAGE_BYTES:
            raise CommandRefused("too_big", f"a page of {size} bytes; at most {PAGE_BYTES}")
        return self._hub.draw(text, pictures(page.tiles) if page.tiles else ())

    def _check_stream(self, command: Command) -> None:
        if isinstance(command, StartMicrophone) and self._stream is not None:
            raise CommandRefused("busy", f"microphone stream {self._stream.number} is open")
        opened = None if self._stream is None else self._stream.number
        if isinstance(command, StopMicrophone) and opened != command.stream:
            raise CommandRefused("no_stream", f"microphone stream {command.stream} is not open")

    def _remember(self, command: Command) -> None:
        """Remember what must be restored when the right arm returns."""
        match command:
            case ShowPage():
                self._page = command
            case ClearPage() | ExitToDashboard():
                self._page = None
            case StartMicrophone(stream):
                self._stream = SoundStream(stream)
            case StopMicrophone():
                self._stream = None

    def packets_to_send(self, now: float) -> list[Sided]:
        """Return the packets to send now: sides given up first, then packets, left before right."""
        self._now = now
        out: list[Sided] = []
        if self._given_up:
            out += self._given_up
            self._given_up.clear()
        for lane in self._up.values():
            if lane.emit(now, out):
                self._quiet_until = UNKNOWN
        if self._silent:
            self._settle(now)
        return out

    def backlog(self) -> int:
        """Bytes of the messages under way."""
        return sum(lane.backlog() for lane in self._lanes.values())

    # -------------------------------------------------------------- flows

    def _listen(self) -> Flow:
        """Switch the microphone on; it needs a page."""
        failed = yield from self._hub.ensure()
        if not self._hub.alive:
            return failed
        answer = yield ask(hub.audio(on=True))
        if answer is None:
            return None
        if answer.result or hub.code_of(answer.message) == Code.AUDIO_FAILED:
            return Failed("busy", "the glasses refused the microphone")
        if self._stream is not None:
            self._stream.opened(self._now)
        return Done()

    def _move(self) -> Flow:
        """Switch the motion sensor on until its first report; it needs a page."""
        failed = yield from self._hub.ensure()
        if not self._hub.alive:
            return failed
        self._wants_motion = True
        return (yield from self._own_commands.motion(on=True))

    def _look_for_page(self) -> Flow:
        """Find out whether the page is still there, and report if not."""
        yield from self._hub.probe()
        if not self._hub.alive:
            self._tell(PageClosed())
            if self._stream is not None:
                yield from self._listen()
        return None

    # -------------------------------------------------------------- time

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        if self._quiet_until == UNKNOWN:
            self._quiet_until = self._next_due()
        soonest = self._quiet_until
        for lane in self._up.values():
            if lane.has_packets() and lane.free_at < soonest:
                soonest = lane.free_at
        return None if soonest == NEVER else soonest

    def _next_due(self) -> float:
        """Return when something but a packet is due; infinity if nothing is."""
        soonest = min(self._battery_at, self._probe_at)
        for lane in self._up.values():
            soonest = min(soonest, lane.due(), lane.beat_due())
        if self._hub.alive:
            soonest = min(soonest, self._hub_beat_at)
        if self._stream is not None:
            soonest = min(soonest, self._stream.due())
        return soonest

    def handle_timer(self, now: float) -> None:
        """Retry, and send heartbeats. Raises `LinkLost(SILENT)` if neither arm answers."""
        if now < self._quiet_until:
            return
        self._now, self._quiet_until = now, UNKNOWN
        for lane in self._up.values():
            lane.timer(now)
            if now >= lane.beat_due():
                lane.beat_at = now
                lane.add(Task(once(config.heartbeat())), urgent=True)
        if now >= self._battery_at:
            self._battery_at = now + BATTERY_EVERY_S
            for side, lane in self._up.items():
                lane.add(Task(config.look(side, self._state_of(side))))
        if now >= self._probe_at:
            self._probe_at = NEVER
            self._own(self._look_for_page())
        if self._stream is not None and now >= self._stream.due():
            self._stream.reopening()
            self._own(self._listen())
        self._beat_page(now)
        self._settle(now)

    def _beat_page(self, now: float) -> None:
        """Keep the page alive: without heartbeats it is gone after 10 s."""
        if self._hub.alive and now >= self._hub_beat_at:
            self._hub_beat_at = now + self._dialect.hub_beat_s
            self._own(self._beat(), urgent=True)

    def _beat(self) -> Flow:
        """Send the heartbeat of the page; glasses without a page do not answer it."""
        answer = yield ask(hub.beat)
        if answer is None:
            self._doubt()
        return None

    def _own(self, flow: Flow, *, urgent: bool = False) -> None:
        if Side.RIGHT in self._up:
            self._lanes[Side.RIGHT].add(Task(flow), urgent=urgent)

    def _settle(self, now: float) -> None:
        """Give up arms that no longer answer."""
        while self._silent:
            side = self._silent.popleft()
            if side in self._up:
                self._given_up.append(SideNews(side, up=False, reason="silent"))
                self._side(self._given_up[-1], now)
        if self._given_up and not self._up:
            raise LinkLost(LostReason.SILENT, "neither side answers any more")

    def _ended(self, task: Task, reply: Reply | None) -> None:
        """Answer a command; where no arm answered the outcome is unknown and it times out."""
        if task.number == 0 or reply is None:
            return
        if isinstance(task.about, StartMicrophone) and not isinstance(reply, Done):
            self._stream = None
        if isinstance(reply, Done):
            self._tell(*self._hidden_by(task.about))
        self._inbox.append(Incoming(reply, re=task.number))

    def _hidden_by(self, command: object) -> list[Event]:
        match command:
            case SetSilentMode(on):
                return self._events.hides(Hiding.SILENT, on)
            case SetBrightness(level, auto):
                return self._events.hides(Hiding.DARK, level == 0 and not auto)
        return []
