"""A central codec and two arms of an Even G2, joined by an air of two sides, on their own clock.

`air` may lose, double or change a packet: (side, way, packet) → packets.
"""

from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Incoming
from firmware_bridge.codecs.even_g2 import SOUND
from firmware_bridge.codecs.even_g2.central import EvenG2Codec
from firmware_bridge.codecs.even_g2.peripheral import EvenG2Arm, Variant
from firmware_bridge.codecs.even_g2.wire import STOCK, Dialect, Joiner, Kind
from firmware_bridge.errors import LinkLost, RemoteViolation
from firmware_bridge.messages import Command, Done, Event, Hello, Reply, ShowPage, TextLine
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side, SideNews, SidePacket

L, R = Side.LEFT, Side.RIGHT
HOP_S = 0.015


def wide(text: str) -> float:
    return 10.0 * len(text)


def page(*texts: str, scene: str = "s", tiles=()) -> ShowPage:
    return ShowPage(scene, lines=tuple(TextLine(*line) for line in enumerate(texts)), tiles=tiles)


def drain(codec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class Pair:
    """`said[side]`: packets of the central; `heard`: what came out of it; `shown`: commands that
    arrived at the right arm, `reply(command)` answers them, None does not.
    """

    def __init__(
        self,
        *,
        dialect: Dialect = STOCK,
        variant: Variant | None = None,
        max_packet: int = 244,
        up=(L, R),
        air: Callable[[Side, str, bytes], list[bytes]] = lambda _side, _way, packet: [packet],
    ) -> None:
        self.central = EvenG2Codec(width=wide, max_packet=max_packet, dialect=dialect)
        self.variant = variant or Variant()
        self.max_packet = max_packet
        self.arms = {side: self.new_arm(side) for side in Side}
        self.air = air
        self.now = 100.0
        self.said: dict[Side, list[bytes]] = {L: [], R: []}
        self.told: dict[Side, list[bytes]] = {L: [], R: []}
        self.sent_at: list[tuple[float, Side]] = []
        self.heard: list[Incoming] = []
        self.shown: list[Command] = []
        self.given_up: list[SideNews] = []
        self.refused: list[RemoteViolation] = []
        self.lost: LinkLost | None = None
        self.reply: Callable[[Command], Reply | None] = lambda _command: Done()
        self._flying: list[tuple[float, Side, str, bytes]] = []
        for side in up:
            self.news(side, up=True)

    def new_arm(self, side: Side) -> EvenG2Arm:
        return EvenG2Arm(side, max_packet=self.max_packet, variant=self.variant)

    # -------------------------------------------------------------- what happens

    def news(self, side: Side, *, up: bool) -> None:
        if up:
            self.arms[side] = self.new_arm(side)
        self._flying = [each for each in self._flying if each[1] is not side]
        self._receive(SideNews(side, up))

    def ready(self) -> "Pair":
        """Let the session begin, and forget what was said."""
        assert self.ask(Hello("test", "0")) is not None
        for record in (*self.said.values(), *self.told.values(), self.heard, self.shown):
            record.clear()
        return self

    def send(self, command: Command) -> int:
        return self.central.send(command, self.now)

    def ask(self, command: Command, *, for_s: float = 15.0) -> Reply | None:
        """Say a command, let it come to rest, return its answer."""
        number = self.send(command)
        self.run(for_s=for_s, until=lambda: self.answer(number) is not None)
        self.run(for_s=0.2)
        return self.answer(number)

    def answer(self, number: int) -> Reply | None:
        return next((each.message for each in self.heard if each.re == number), None)

    def events(self) -> list[object]:
        return [each.message for each in self.heard if each.re is None]

    def tell(self, side: Side, *packets: str | bytes, channel: str = "") -> None:
        """Packets of the glasses, straight from the sheet."""
        for packet in packets:
            data = bytes.fromhex(packet) if isinstance(packet, str) else packet
            self._receive(SidePacket(side, ChannelPacket(data, channel)))

    def event(self, event: Event, side: Side = R) -> None:
        """The glasses report an event."""
        self.arms[side].send(event, self.now)
        self.run(for_s=0.1)

    def messages(self, side: Side = R, sid: int = 0xE0) -> list[Message]:
        """Return what the central said to a service, joined and decoded."""
        joiner, out = Joiner(Kind.HOST), []
        for packet in self.said[side]:
            received = joiner.add(packet)
            if received is not None and received.sid == sid:
                out.append(Message(received.payload))
        return out

    def commands(self, side: Side = R, sid: int = 0xE0) -> list[int]:
        """Return the commands the central sent to a service, but for heartbeats of the page."""
        found = [message.integer(1) for message in self.messages(side, sid)]
        return [each for each in found if (sid, each) != (0xE0, 12)]

    # -------------------------------------------------------------- time

    def run(self, *, for_s: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, event by event."""
        end = self.now + for_s
        while not until() and self.lost is None:
            self._pump()
            self.heard += drain(self.central)
            if until():
                return
            codecs = (self.central, *self.arms.values())
            moments = [flight[0] for flight in self._flying]
            moments += [due for codec in codecs if (due := codec.next_timer()) is not None]
            if not moments or (soonest := min(moments)) > end:
                self.now = end
                return
            self.now = max(self.now + 1e-6, soonest)
            self._land()
            try:
                self.central.handle_timer(self.now)
            except LinkLost as lost:
                self.lost = lost
            self.heard += drain(self.central)
            for side, arm in self.arms.items():
                arm.handle_timer(self.now)
                self._carry_out(side)

    def _pump(self) -> None:
        for packet in self.central.packets_to_send(self.now):
            if isinstance(packet, SideNews):
                self.given_up.append(packet)
                continue
            assert len(packet.data) <= self.max_packet
            self.said[packet.side].append(packet.data)
            self.sent_at.append((self.now, packet.side))
            self._fly(packet.side, "down", packet.data)
        for side, arm in self.arms.items():
            for packet in arm.packets_to_send(self.now):
                assert len(packet) <= self.max_packet
                if channel_of(packet) != SOUND:
                    self.told[side].append(packet)
                self._fly(side, "up", packet)

    def _fly(self, side: Side, way: str, packet: bytes) -> None:
        channel = channel_of(packet)
        for each in self.air(side, way, packet):
            self._flying.append((self.now + HOP_S, side, way, ChannelPacket(each, channel)))

    def _land(self) -> None:
        landing = [flight for flight in self._flying if flight[0] <= self.now]
        self._flying = [flight for flight in self._flying if flight[0] > self.now]
        for _, side, way, packet in landing:
            if way == "up":
                self._receive(SidePacket(side, packet))
            else:
                self._arrive(side, packet)

    def _receive(self, packet) -> None:
        try:
            self.central.receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        self.heard += drain(self.central)

    def _arrive(self, side: Side, packet: bytes) -> None:
        try:
            self.arms[side].receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        self._carry_out(side)

    def _carry_out(self, side: Side) -> None:
        for incoming in drain(self.arms[side]):
            self.shown.append(incoming.message)
            answer = self.reply(incoming.message)
            if answer is not None and incoming.number is not None:
                self.arms[side].send(answer, self.now, re=incoming.number)
