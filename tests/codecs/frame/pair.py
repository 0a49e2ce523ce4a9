"""A central codec and a Frame, Halo or Monocle joined by an air that may lose or change packets, on
a clock of their own. After g1_pair.py; it does not know what is said over it.
"""

from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Incoming
from firmware_bridge.codecs.frame.central import FrameCodec
from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.monocle import MonoclePeripheral
from firmware_bridge.codecs.frame.peripheral import FramePeripheral
from firmware_bridge.codecs.frame.program import FILE, START, program
from firmware_bridge.codecs.frame.terminal import MonocleDevice
from firmware_bridge.errors import LinkLost, RemoteViolation
from firmware_bridge.messages import Command, Done, Hello, Reply
from firmware_bridge.sim.monocle.glasses import start

HOP_S = 0.015


def ten_wide(text: str) -> float:
    return 10.0 * len(text)


def eight_wide(text: str) -> float:
    return 8.0 * len(text)


def twenty_four_wide(text: str) -> float:
    return 24.0 * len(text)


def drain(codec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


def equipped_monocle() -> MonocleDevice:
    """A Monocle on which our program runs already."""
    device = MonocleDevice()
    start(device, "glassd")
    return device


def equipped(**more) -> FrameDevice:
    """Glasses on which our program runs already."""
    device = FrameDevice(**more)
    device.files[FILE] = program(device.hardware.key).text
    device.run(START)
    return device


class FramePair:
    """`said`: packets of the central; `told`: of the glasses; `heard`: what came out of the
    central; `shown`: commands that arrived. `reply(command)` answers for the glasses.
    """

    def __init__(
        self,
        device: FrameDevice | None = None,
        *,
        max_packet: int = 244,
        app=None,
        now: float = 100.0,
        air: Callable[[str, bytes], list[bytes]] = lambda _way, packet: [packet],
    ) -> None:
        self.device = device or FrameDevice()
        hardware = self.device.hardware
        self.central = FrameCodec(
            width={"frame": ten_wide, "halo": eight_wide}.get(hardware.key, twenty_four_wide),
            max_packet=max_packet,
            app=app,
            hardware=hardware,
        )
        kind = MonoclePeripheral if hardware.is_monocle else FramePeripheral
        self.glasses = kind(max_packet=max_packet, device=self.device)
        self.max_packet = max_packet
        self.air = air
        self.now = now
        self.said: list[bytes] = []
        self.told: list[bytes] = []
        self.heard: list[Incoming] = []
        self.shown: list[Command] = []
        self.refused: list[RemoteViolation] = []
        self.lost: LinkLost | None = None
        self.reply: Callable[[Command], Reply | None] = lambda _command: Done()
        self._flying: list[tuple[float, str, bytes]] = []

    def greet(self):
        info = self.ask(Hello("test", "0"), for_s=60.0)
        for packets in (self.said, self.told, self.heard, self.shown):
            packets.clear()
        return info

    def ask(self, command: Command, *, for_s: float = 30.0) -> Reply | None:
        number = self.central.send(command, self.now)
        self.run(for_s=for_s, until=lambda: self.answer(number) is not None)
        return self.answer(number)

    def answer(self, number: int) -> Reply | None:
        return next((i.message for i in self.heard if i.re == number), None)

    def events(self) -> list[object]:
        return [i.message for i in self.heard if i.re is None]

    def tell(self, *packets: bytes) -> None:
        """Packets of the glasses, straight from the sheet."""
        for packet in packets:
            self._receive(packet)

    def event(self, event) -> None:
        """What happens at the glasses."""
        self.glasses.send(event, self.now)

    def run(self, *, for_s: float = 1.0, until: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, event by event."""
        end = self.now + for_s
        while self.lost is None and not until():
            self._pump()
            moments = [flight[0] for flight in self._flying]
            timers = (self.central.next_timer(), self.glasses.next_timer())
            moments += [due for due in timers if due is not None]
            if not moments or (soonest := min(moments)) > end:
                self.now = end
                return
            self.now = max(self.now, soonest)
            self._land()
            self._timers()

    def _timers(self) -> None:
        try:
            self.central.handle_timer(self.now)
        except LinkLost as lost:
            self.lost = lost
        self.heard += drain(self.central)
        self._serve(lambda: self.glasses.handle_timer(self.now))

    def _pump(self) -> None:
        for way, codec, kept in (
            ("down", self.central, self.said),
            ("up", self.glasses, self.told),
        ):
            for packet in codec.packets_to_send(self.now):
                assert len(packet) <= self.max_packet
                kept.append(packet)
                self._flying += [(self.now + HOP_S, way, each) for each in self.air(way, packet)]

    def _land(self) -> None:
        landing = [flight for flight in self._flying if flight[0] <= self.now]
        self._flying = [flight for flight in self._flying if flight[0] > self.now]
        for _, way, packet in landing:
            if way == "up":
                self._receive(packet)
            else:
                self._serve(lambda packet=packet: self.glasses.receive_packet(packet, self.now))

    def _receive(self, packet: bytes) -> None:
        try:
            self.central.receive_packet(packet, self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        self.heard += drain(self.central)

    def _serve(self, work) -> None:
        try:
            work()
        except RemoteViolation as violation:
            self.refused.append(violation)
        for incoming in drain(self.glasses):
            self.shown.append(incoming.message)
            answer = self.reply(incoming.message)
            if answer is not None and incoming.number is not None:
                self.glasses.send(answer, self.now, re=incoming.number)
