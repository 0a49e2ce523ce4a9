"""A central and simulated glasses joined by an air that can lose, double and change packets, on a
clock of their own.
"""

from collections.abc import Callable, Iterable
from typing import Any

from firmware_bridge.catalog import find
from firmware_bridge.codec import NEED_DATA
from firmware_bridge.codecs.omi.central import OmiCodec
from firmware_bridge.codecs.omi.peripheral import DIALECTS, OmiGlasses
from firmware_bridge.codecs.omi.wire import Dialect
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Hello, MicrophoneChunk
from firmware_bridge.packets import ChannelPacket, channel_of

Air = Callable[[ChannelPacket], Iterable[ChannelPacket]]


def drain(codec: Any) -> list[Any]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class Pair:
    """`heard`: what came out of the central; `taken`: what reached the glasses; `settings`: what
    was set at them; `said`: the central's packets, `sent`: the glasses'; each with its channel.
    """

    def __init__(
        self,
        key: str,
        dialect: Dialect | None = None,
        *,
        max_packet: int = 244,
        air: Air = lambda packet: [packet],
    ) -> None:
        self.dialect = dialect or DIALECTS[key]
        self.central = OmiCodec(find(key).capabilities, max_packet=max_packet)
        self.settings: dict[str, float] = {}
        self.glasses = OmiGlasses(
            self.dialect, max_packet=max_packet, set=self.settings.__setitem__
        )
        self.air = air
        self.now = 0.0
        self.heard: list[Any] = []
        self.taken: list[Any] = []
        self.refused: list[RemoteViolation] = []
        self.said: list[tuple[str, bytes]] = []
        self.sent: list[tuple[str, bytes]] = []
        self.values = {"codec": bytes([self.dialect.codec])}

    def tell(self, channel: str, packet: bytes) -> list[Any]:
        """The glasses say something; return what is new to the central."""
        try:
            self.central.receive_packet(ChannelPacket(packet, channel), self.now)
        except RemoteViolation as violation:
            self.refused.append(violation)
        return self._heard()

    def _heard(self) -> list[Any]:
        new = drain(self.central)
        self.heard += new
        return [incoming.message for incoming in new]

    def greet(self) -> Any:
        number = self.central.send(Hello("test", "0"), self.now)
        self.settle()
        return next(incoming.message for incoming in self.heard if incoming.re == number)

    def ask(self, command: Any) -> Any:
        """Send a command, return its answer; None if there is none yet."""
        number = self.central.send(command, self.now)
        self.settle()
        return next((each.message for each in self.heard if each.re == number), None)

    def settle(self) -> None:
        """Move packets until both are silent; time goes on as far as the glasses wait for it."""
        moved = True
        while moved:
            moved = self._down() | self._up()
            due = self.glasses.next_timer()
            if not moved and due is not None:
                self.now, moved = max(self.now, due), True

    def _down(self) -> bool:
        packets = self.central.packets_to_send(self.now)
        self._heard()
        for packet in packets:
            channel = channel_of(packet)
            self.said.append((channel, bytes(packet)))
            if channel in self.values:
                self.tell(channel, self.values[channel])
            else:
                self.glasses.receive_packet(packet, self.now)
                self.taken += [incoming.message for incoming in drain(self.glasses)]
        return bool(packets)

    def _up(self) -> bool:
        packets = self.glasses.packets_to_send(self.now)
        for packet in packets:
            assert isinstance(packet, ChannelPacket)
            self.sent.append((packet.channel, bytes(packet)))
            for arrived in self.air(packet):
                self.tell(arrived.channel, arrived)
        return bool(packets)

    def event(self, event: Any) -> list[Any]:
        """The glasses report an event; return what the central makes of it."""
        before = len(self.heard)
        self.glasses.send(event, self.now)
        self.settle()
        return [incoming.message for incoming in self.heard[before:]]

    def sound(self) -> list[tuple[int, bytes]]:
        """Every frame of sound so far, with its index."""
        messages = [incoming.message for incoming in self.heard]
        return [(m.index, b"".join(m.frames)) for m in messages if isinstance(m, MicrophoneChunk)]
