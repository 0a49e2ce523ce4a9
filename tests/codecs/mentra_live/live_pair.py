"""Both codecs of a Mentra Live, joined by an air on a clock of its own.

`air(way, packet)` may lose or double a packet; way is "down" to the glasses or "up" from them.
"""

import json
import random
from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Incoming
from firmware_bridge.codecs.mentra_live.central import MentraLiveCodec
from firmware_bridge.codecs.mentra_live.conflicts import STOCK, Dialect
from firmware_bridge.codecs.mentra_live.peripheral import Facts, MentraLiveGlasses
from firmware_bridge.codecs.mentra_live.wire import FrameReader, json_frame
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    Command,
    Done,
    Failed,
    Hello,
    PhotoTaken,
    Reply,
    TakePhoto,
)
from firmware_bridge.packets import ChannelPacket, channel_of

JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20


def drain(codec) -> list[Incoming]:
    taken = []
    while (incoming := codec.next_event()) is not NEED_DATA:
        taken.append(incoming)
    return taken


class Pair:
    """`heard`: what came out of the central; `done`: commands that reached the glasses; `said`:
    packets of the central; `told`: packets of the glasses.
    """

    def __init__(
        self,
        *,
        dialect: Dialect = STOCK,
        max_packet: int = 509,
        air: Callable[[str, bytes], list[bytes]] = lambda _way, packet: [packet],
        picture: bytes = JPEG,
        facts: Facts | None = None,
    ) -> None:
        self.central = MentraLiveCodec(max_packet=max_packet)
        self.glasses = MentraLiveGlasses(max_packet=max_packet, dialect=dialect, facts=facts)
        self.air = air
        self.picture: bytes | None = picture
        self.now = 1000.0
        self.heard: list[Incoming] = []
        self.done: list[Command] = []
        self.said: list[bytes] = []
        self.told: list[bytes] = []
        self.refused: list[RemoteViolation] = []
        self.reply: Callable[[Command], Reply] = lambda _command: Done()

    # -------------------------------------------------------------- acts

    def greet(self, *, for_s: float = 5.0) -> Reply | None:
        return self.ask(Hello("test", "0"), for_s=for_s)

    def ask(self, command: Command, *, for_s: float = 5.0) -> Reply | None:
        """Say a command, let time pass until it is answered, give its answer."""
        number = self.central.send(command, self.now)
        self.run(for_s=for_s, until=lambda: self.answer(number) is not None)
        return self.answer(number)

    def answer(self, number: int) -> Reply | None:
        return next((i.message for i in self.heard if i.re == number), None)

    def events(self, *kinds: type) -> list[object]:
        events = [i.message for i in self.heard if i.re is None]
        return [event for event in events if not kinds or isinstance(event, kinds)]

    def tell(self, message: dict, *, channel: str = "", order="big") -> None:
        """Something that the application of the glasses says, built by hand."""
        outer = {"C": json.dumps(message), "V": 1, "B": {}}
        self.raw(json_frame(json.dumps(outer).encode(), order), channel)

    def chip(self, name: str, **body: object) -> None:
        self.raw(json_frame(json.dumps({"C": name, "B": body}).encode(), "big"))

    def raw(self, packet: bytes, channel: str = "") -> None:
        self._up(ChannelPacket(packet, channel) if channel else packet)

    def messages(self) -> list[dict]:
        """What the central said, as JSON objects."""
        reader, found = FrameReader("little"), []
        for packet in self.said:
            if channel_of(packet) == "":
                for payload in reader.add(packet, self.now):
                    outer = json.loads(payload)
                    inner = outer["C"]
                    found.append(json.loads(inner) if inner.startswith("{") else outer)
        return found

    def types(self) -> list[str]:
        return [message.get("type", message.get("C")) for message in self.messages()]

    # -------------------------------------------------------------- time

    def run(self, *, for_s: float = 1.0, until: Callable[[], bool] = lambda: False) -> None:
        end = self.now + for_s
        while not until():
            self.settle()
            self.heard += drain(self.central)
            due = self.central.next_timer()
            if until() or due is None or due > end:
                break
            self.now = max(self.now, due)
            self.central.handle_timer(self.now)
            self.heard += drain(self.central)
        else:
            return
        if not until():
            self.now = end

    def settle(self) -> None:
        """Move packets until both are silent; time stands still."""
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
                assert len(packet) <= 253
                self.told.append(packet)
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
            if incoming.number is None:
                continue
            reply = self.reply(incoming.message)
            self.glasses.send(reply, self.now, re=incoming.number)
            if isinstance(incoming.message, TakePhoto) and not isinstance(reply, Failed):
                self.take(incoming.message.photo)

    def take(self, photo: int) -> None:
        if self.picture is not None:
            self.glasses.send(PhotoTaken(photo, self.picture), self.now)


def losing(way: str, *, percent: int) -> Callable[[str, bytes], list[bytes]]:
    """An air that loses this share of the packets of one way, always the same ones."""
    source = random.Random(percent)

    def air(going: str, packet: bytes) -> list[bytes]:
        return [] if going == way and 100 * source.random() < percent else [packet]

    return air
