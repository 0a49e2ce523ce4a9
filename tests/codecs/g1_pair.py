"""A central codec and two arms joined by an air of two sides, on a clock of their own. After
pair.py.

It does not know what is said over it; `air` may lose, delay or change a packet: (side, up?, packet)
→ packets.
"""

from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Incoming
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.central import EvenG1Codec
from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.wire import STOCK, Dialect
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Command, Done, Failed, Hello, Reply
from firmware_bridge.sides import Side, SideNews, SidePacket

L, R = Side.LEFT, Side.RIGHT
HOP_S = 0.015
"""One connection interval as it was captured (§2)."""


def six_wide(text: str) -> float:
    return 6.0 * len(text)


def drain(codec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class Pair:
    """`said[side]`: packets of the central; `heard`: what came out of the central; `shown[side]`:
    commands that arrived.

    `reply(side, command)` answers for the glasses; None leaves the command unanswered.
    """

    def __init__(
        self,
        *,
        dialect: Dialect = STOCK,
        glasses: Dialect | None = None,
        max_packet: int = 244,
        up=(L, R),
        air: Callable[[Side, str, bytes], list[bytes]] = lambda _side, _way, packet: [packet],
    ) -> None:
        self.central = EvenG1Codec(width=six_wide, max_packet=max_packet, dialect=dialect)
        self.arms = {
            side: EvenG1Arm(
                side, max_packet=max_packet, dialect=glasses or dialect, facts=ArmFacts()
            )
            for side in Side
        }
        self.air = air
        self.now = 100.0
        self.said: dict[Side, list[bytes]] = {L: [], R: []}
        self.told: dict[Side, list[bytes]] = {L: [], R: []}
        self.order: list[tuple[Side, str, bytes]] = []
        self.given_up: list[SideNews] = []
        self.heard: list[Incoming] = []
        self.shown: dict[Side, list[Command]] = {L: [], R: []}
        self.refused: list[RemoteViolation] = []
        self.reply: Callable[[Side, Command], Reply | None] = lambda _side, _command: Done()
        self._flying: list[tuple[float, Side, str, bytes]] = []
        for side in up:
            self.news(side, up=True)

    def news(self, side: Side, *, up: bool, reason: str = "") -> None:
        self._receive(SideNews(side, up, reason))

    def greet(self) -> None:
        self.run()
        number = self.central.send(Hello("test", "0"), self.now)
        self.run()
        assert self.answer(number) is not None
        for packets in (*self.said.values(), *self.told.values(), self.order, self.heard):
            packets.clear()

    def ask(self, command: Command, *, for_s: float = 60.0) -> Reply | None:
        """Say a command, let it come to rest, give its answer."""
        number = self.central.send(command, self.now)
        self.run(for_s=for_s, until=lambda: self.answer(number) is not None)
        self.run()
        return self.answer(number)

    def answer(self, number: int) -> Reply | None:
        return next((i.message for i in self.heard if i.re == number), None)

    def events(self) -> list[object]:
        return [i.message for i in self.heard if i.re is None]

    def tell(self, side: Side, *packets: bytes) -> None:
        """Packets of the glasses, straight from the sheet."""
        for packet in packets:
            self._receive(SidePacket(side, packet))

    def run(self, *, for_s: float = 0.5, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, event by event."""
        end = self.now + for_s
        while not until():
            self._pump()
            moments = [flight[0] for flight in self._flying]
            moments += [due for due in (self.central.next_timer(),) if due is not None]
            if not moments or (soonest := min(moments)) > end:
                self.now = end
                return
            self.now = max(self.now, soonest)
            self._land()
            self.central.handle_timer(self.now)
            self.heard += drain(self.central)

    def _pump(self) -> None:
        for packet in self.central.packets_to_send(self.now):
            if isinstance(packet, SideNews):
                self.given_up.append(packet)
                continue
            assert len(packet.data) <= self.central._encoder.max_packet
            self.said[packet.side].append(packet.data)
            self.order.append((packet.side, "down", packet.data))
            self._fly(packet.side, "down", packet.data)
        for side, arm in self.arms.items():
            for packet in arm.packets_to_send(self.now):
                self.told[side].append(packet)
                self._fly(side, "up", packet)

    def _fly(self, side: Side, way: str, packet: bytes) -> None:
        for each in self.air(side, way, packet):
            self._flying.append((self.now + HOP_S, side, way, each))

    def _land(self) -> None:
        landing = [flight for flight in self._flying if flight[0] <= self.now]
        self._flying = [flight for flight in self._flying if flight[0] > self.now]
        for _, side, way, packet in landing:
            if way == "up":
                self.order.append((side, "up", packet))
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
        arm = self.arms[side]
        try:
            arm.receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        for incoming in drain(arm):
            self.shown[side].append(incoming.message)
            answer = self.reply(side, incoming.message)
            if answer is not None:
                arm.send(answer, self.now, re=incoming.number)


def accepts(*sides: Side):
    """A `reply` that accepts on these sides and refuses on the others."""
    return lambda side, _command: Done() if side in sides else Failed("refused")
