"""Both codecs of a Mentra Display, joined by an air on a clock of its own. `air(way, packet)` may
lose or double a packet.
"""

from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Incoming
from firmware_bridge.codecs.mentra_nex.central import MentraNexCodec
from firmware_bridge.codecs.mentra_nex.peripheral import MentraNexGlasses
from firmware_bridge.codecs.mentra_nex.wire import STOCK, Dialect
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Command, Done, Hello, Reply


def drain(codec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class Pair:
    """`heard`: what came out of the central; `done`: commands that reached the glasses; `said`:
    packets of the central.
    """

    def __init__(
        self,
        *,
        dialect: Dialect = STOCK,
        max_packet: int = 509,
        air: Callable[[str, bytes], list[bytes]] = lambda _way, packet: [packet],
    ) -> None:
        self.central = MentraNexCodec(width=lambda text: 8.0 * len(text), max_packet=max_packet)
        self.glasses = MentraNexGlasses(max_packet=max_packet, dialect=dialect)
        self.air = air
        self.now = 100.0
        self.heard: list[Incoming] = []
        self.done: list[Command] = []
        self.said: list[bytes] = []
        self.refused: list[RemoteViolation] = []
        self.reply: Callable[[Command], Reply] = lambda _command: Done()

    def greet(self, *, for_s: float = 5.0) -> Reply | None:
        answer = self.ask(Hello("test", "0"), for_s=for_s)
        self.run()
        for log in (self.heard, self.said, self.done):
            log.clear()
        return answer

    def ask(self, command: Command, *, for_s: float = 30.0) -> Reply | None:
        number = self.central.send(command, self.now)
        self.run(for_s=for_s, until=lambda: self.answer(number) is not None)
        return self.answer(number)

    def answer(self, number: int) -> Reply | None:
        return next((i.message for i in self.heard if i.re == number), None)

    def events(self) -> list[object]:
        return [i.message for i in self.heard if i.re is None]

    def tell(self, packet: bytes | str) -> None:
        """A packet of the glasses, straight from the sheet."""
        self._up(bytes.fromhex(packet) if isinstance(packet, str) else packet)

    def run(self, *, for_s: float = 1.0, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + for_s
        while True:
            self._settle()
            self.heard += drain(self.central)
            if until():
                return
            due = [self.central.next_timer(), self.glasses.next_timer()]
            moments = [moment for moment in due if moment is not None]
            if not moments or min(moments) > end:
                self.now = end
                return
            self.now = max(self.now, min(moments))
            self.central.handle_timer(self.now)
            self.glasses.handle_timer(self.now)

    def _settle(self) -> None:
        moved = True
        while moved:
            moved = False
            for packet in self.central.packets_to_send(self.now):
                moved = True
                self.said.append(packet)
                for each in self.air("down", packet):
                    self._down(each)
            for packet in self.glasses.packets_to_send(self.now):
                moved = True
                for each in self.air("up", packet):
                    self._up(each)

    def _up(self, packet: bytes) -> None:
        try:
            self.central.receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        self.heard += drain(self.central)

    def _down(self, packet: bytes) -> None:
        try:
            self.glasses.receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        for incoming in drain(self.glasses):
            self.done.append(incoming.message)
            self.glasses.send(self.reply(incoming.message), self.now, re=incoming.number)
