"""A second reader of the air: raw HCI bytes → pages, sound and events, from PROFILE.md's words and
the Core Specification.

Imports neither firmware_bridge nor edge nor bumble, so that a mistake made twice in one codec is
seen here.
"""

import asyncio
import contextlib
import socket
import uuid
from dataclasses import dataclass, field
from typing import Any, Self

import msgpack
import opuslib_next

RX = "1cb70003-9a97-4c4c-abdc-2194059f5b11"
TX = "1cb70004-9a97-4c4c-abdc-2194059f5b11"

COMMAND, ACL, SCO, EVENT, ISO = 1, 2, 3, 4, 5
DATA, ACK, NAK, ASK = 1, 2, 3, 4
ATT_CHANNEL = 0x0004
ERROR, MTU_ANSWER, TYPE_ANSWER, WRITE, WRITE_NO_ANSWER, NOTIFY = 0x01, 0x03, 0x09, 0x12, 0x52, 0x1B


class Tap:
    """A TCP proxy between a host and its controller that keeps every byte of both directions."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.to_controller = bytearray()
        self.to_host = bytearray()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._flows: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for flow in self._flows:
            flow.cancel()
        await asyncio.gather(*self._flows, return_exceptions=True)

    async def _join(self, host_in: asyncio.StreamReader, host_out: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._flows.add(current)
        writers = [host_out]
        try:
            ours, theirs = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(theirs)
            for writer in writers:
                writer.get_extra_info("socket").setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
                )
            await asyncio.gather(
                self._flow(host_in, theirs, self.to_controller),
                self._flow(ours, host_out, self.to_host),
            )
        finally:
            for writer in writers:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    @staticmethod
    async def _flow(
        source: asyncio.StreamReader, drain: asyncio.StreamWriter, record: bytearray
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await source.read(65536):
                record += chunk
                drain.write(chunk)
                await drain.drain()
        drain.close()


@dataclass
class Air:
    """What was said over the air, in the order of each direction."""

    mtu: int = 23
    commands: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    duplicates: int = 0
    acknowledged: int = -1
    packets: list[int] = field(default_factory=list)

    def pages(self) -> list[list[str]]:
        """The texts of every page shown, one list of lines a page."""
        return [[line[1] for line in c.get("lines", [])] for c in self.commands if c["t"] == "show"]

    def sound(self, stream: int) -> bytes:
        """PCM of one stream: decoded if it was Opus, joined if it was PCM."""
        start = next(c for c in self.commands if c["t"] == "audio_start" and c["stream"] == stream)
        chunks = [c for c in self.commands if c["t"] == "audio" and c["stream"] == stream]
        assert [c["index"] for c in chunks] == list(range(len(chunks))), "a chunk is missing"
        frames = [frame for c in chunks for frame in c["frames"]]
        if start["format"] == "pcm16":
            return b"".join(frames)
        decoder = opuslib_next.Decoder(start.get("rate", 16000), 1)
        return b"".join(decoder.decode(frame, 1920) for frame in frames)


def read_air(to_controller: bytes, to_host: bytes) -> Air:
    """Read a whole recording of both directions of one connection."""
    air = Air()
    outward, inward = list(_att(to_controller)), list(_att(to_host))
    air.mtu = next((int.from_bytes(p[1:3], "little") for p in inward if p[0] == MTU_ANSWER), 23)
    rx, tx = _handles(inward)
    writes = [p[3:] for p in outward if p[0] in (WRITE, WRITE_NO_ANSWER) and _number(p[1:3]) == rx]
    notifications = [p[3:] for p in inward if p[0] == NOTIFY and _number(p[1:3]) == tx]
    air.packets = [len(packet) for packet in writes]
    air.commands, repeated = _messages(writes)
    air.answers, again = _messages(notifications)
    air.duplicates = repeated + again
    acks = [_number(p[2:4]) for p in notifications if p[0] in (ACK, NAK)]
    air.acknowledged = acks[-1] if acks else -1
    return air


# ------------------------------------------------------------------ Core Specification: H4, ACL,
# L2CAP, ATT


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _h4(stream: bytes):
    """Vol 4 Part A 2: (type, packet)."""
    at = 0
    while at < len(stream):
        kind = stream[at]
        assert kind in (COMMAND, ACL, SCO, EVENT, ISO), f"no HCI packet at byte {at}: {kind}"
        if kind == EVENT:
            header, size = 2, stream[at + 2 : at + 3]
        elif kind in (COMMAND, SCO):
            header, size = 3, stream[at + 3 : at + 4]
        else:
            header, size = 4, stream[at + 3 : at + 5]
        end = at + 1 + header + _number(size)
        if not size or end > len(stream):
            return  # the recording ends inside a packet
        yield kind, stream[at + 1 : end]
        at = end


def _l2cap(stream: bytes):
    """Vol 4 Part E 5.4.2 and Vol 3 Part A 3.1: (channel, payload), fragments joined for each
    connection handle.
    """
    parts: dict[int, bytes] = {}
    for kind, packet in _h4(stream):
        if kind != ACL:
            continue
        head = _number(packet[:2])
        handle, boundary = head & 0x0FFF, head >> 12 & 0b11
        payload = packet[4:]
        parts[handle] = parts.get(handle, b"") + payload if boundary == 0b01 else payload
        whole = parts[handle]
        if len(whole) >= 4 and len(whole) >= 4 + _number(whole[:2]):
            yield _number(whole[2:4]), whole[4 : 4 + _number(whole[:2])]
            parts[handle] = b""


def _att(stream: bytes):
    for channel, payload in _l2cap(stream):
        if channel == ATT_CHANNEL and payload:
            yield payload


def _handles(answers: list[bytes]) -> tuple[int, int]:
    """Vol 3 Part F 3.4.4.2: where rx and tx live, from the answers to the characteristic
    discovery.
    """
    found: dict[str, int] = {}
    for pdu in answers:
        if pdu[0] != TYPE_ANSWER:
            continue
        size = pdu[1]
        for at in range(2, len(pdu) - size + 1, size):
            value = pdu[at + 2 : at + size]  # properties, value handle, UUID
            if len(value) == 19:
                found[str(uuid.UUID(bytes=value[3:][::-1]))] = _number(value[1:3])
    return found[RX], found[TX]


# ------------------------------------------------------------------ PROFILE.md: frames and messages


def _messages(packets: list[bytes]) -> tuple[list[dict[str, Any]], int]:
    """Sections 2 to 4: whole messages in order, and how many DATA frames came more than once."""
    wanted = repeated = 0
    message = b""
    whole: list[dict[str, Any]] = []
    for packet in packets:
        kind, flags, number, length = (
            packet[0],
            packet[1],
            _number(packet[2:4]),
            _number(packet[4:6]),
        )
        assert length == len(packet) - 6, "a packet is exactly one frame"
        if kind != DATA:
            continue
        if number != wanted & 0xFFFF:
            repeated += 1
            continue
        wanted += 1
        message = packet[6:] if flags & 1 else message + packet[6:]
        if flags & 2:
            assert _number(message[:4]) == len(message) - 4
            whole.append(msgpack.unpackb(message[4:]))
    return whole, repeated
