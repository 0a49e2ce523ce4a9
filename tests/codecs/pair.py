"""Two codecs joined by an air that can lose and double packets, on a clock of their own. After
h11's ConnectionPair.

It does not know what is said over it.
"""

from collections.abc import Iterable
from typing import Final

from firmware_bridge.codec import NEED_DATA, Incoming, Role
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.codecs.reference.frames import Frame, FrameType
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import GlassesInfo, Hello
from firmware_bridge.transports.loopback import Air, clear_air

MODEL: Final = "mock:full"


def info(**limits: int) -> GlassesInfo:
    return GlassesInfo(MODEL, "1.0", "0001", {"display": True}, limits)


def drain(codec: ReferenceCodec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class CodecPair:
    """`central` and `glasses`, what each heard, what it refused, and the packets each put into
    the air.
    """

    def __init__(self, *, max_packet: int = 20, down: Air = clear_air, up: Air = clear_air) -> None:
        self.central = ReferenceCodec(Role.CENTRAL, max_packet=max_packet)
        self.glasses = ReferenceCodec(Role.PERIPHERAL, max_packet=max_packet)
        self.heard: dict[Role, list[Incoming]] = {role: [] for role in Role}
        self.refused: dict[Role, list[RemoteViolation]] = {role: [] for role in Role}
        self.sent: dict[Role, list[bytes]] = {role: [] for role in Role}
        self.now = 0.0
        self._ways = (
            (Role.CENTRAL, self.central, down, Role.PERIPHERAL, self.glasses),
            (Role.PERIPHERAL, self.glasses, up, Role.CENTRAL, self.central),
        )

    def settle(self) -> None:
        """Move packets until both are silent; time stands still."""
        moved = True
        while moved:
            moved = False
            for speaker, source, air, listener, sink in self._ways:
                for packet in source.packets_to_send(self.now):
                    moved = True
                    self.sent[speaker].append(packet)
                    self._deliver(air(packet), listener, sink)

    def _deliver(self, packets: Iterable[bytes], listener: Role, sink: ReferenceCodec) -> None:
        for packet in packets:
            try:
                sink.receive_packet(packet, self.now)
            except RemoteViolation as violation:
                self.refused[listener].append(violation)
            self.heard[listener] += drain(sink)

    def settle_in_time(self, *, at_most_s: float = 30.0) -> None:
        """Move packets and let timers fire until nothing waits any more."""
        self.settle()
        until = self.now + at_most_s
        while timers := [
            due for codec in (self.central, self.glasses) if (due := codec.next_timer()) is not None
        ]:
            self.now = min(timers)
            assert self.now <= until, "the two never came to rest"
            self.central.handle_timer(self.now)
            self.glasses.handle_timer(self.now)
            self.settle()

    def greet(self, **limits: int) -> None:
        """Hello and its answer, so that limits are in force."""
        number = self.central.send(Hello("test", "0"), self.now)
        self.settle_in_time()
        self.glasses.send(info(**limits), self.now, re=number)
        self.settle_in_time()

    def messages(self, role: Role) -> list[object]:
        return [incoming.message for incoming in self.heard[role]]


def data_frames(packets: Iterable[bytes]) -> list[Frame]:
    return [frame for frame in map(Frame.parse, packets) if frame.type is FrameType.DATA]
