"""HCI H4 on a byte stream: splits packets, carries them over TCP, detects the end."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from firmware_bridge.deadlines import timeout

BUSY: Final = bytes([0x04, 0x10, 0x01, 0xB5])
"""HCI Hardware Error with our vendor code, from a virtual radio: "there already is a host"."""
MAX_UNSENT_BYTES: Final = 1 << 20
"""Bytes a peer may leave unread before the stream is closed: a controller would not wait either."""
CLOSE_S: Final = 1.0

_LENGTH_FIELD: Final = {0x01: (3, 1), 0x02: (3, 2), 0x03: (3, 1), 0x04: (2, 1), 0x05: (3, 2)}
"""Packet type → (offset, size) of the length field: command, ACL, SCO, event, ISO (Core 5.4, Vol 4,
Part E, 5.4).
"""


class NotH4(ValueError):
    """A byte that is not a packet type where one was expected."""


class H4Splitter:
    """Splits a byte stream into packets, type byte included, of at most 64 KiB + 5 bytes."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the packets completed by `data`. Raises `NotH4`."""
        self._pending += data
        packets = []
        while (size := self._next_size()) is not None:
            packets.append(bytes(self._pending[:size]))
            del self._pending[:size]
        return packets

    def _next_size(self) -> int | None:
        if not self._pending:
            return None
        if self._pending[0] not in _LENGTH_FIELD:
            raise NotH4(f"0x{self._pending[0]:02x} is no HCI packet type")
        offset, size = _LENGTH_FIELD[self._pending[0]]
        if len(self._pending) < offset + size:
            return None
        length = int.from_bytes(self._pending[offset : offset + size], "little")
        if self._pending[0] == 0x05:
            length &= 0x3FFF  # the two upper bits are reserved
        whole = offset + size + length
        return whole if len(self._pending) >= whole else None


class TcpHci(asyncio.Protocol):
    """HCI over TCP as bumble's source (`set_packet_sink`) and sink (`on_packet`). Used once."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        self._lost = lost
        self._splitter = H4Splitter()
        self._sink: Any = None
        self._transport: asyncio.Transport | None = None
        self._why = "the HCI stream ended"
        self._ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, not the class; an isinstance here would refuse them.
        self._transport = cast(asyncio.Transport, transport)

    def set_packet_sink(self, sink: Any) -> None:
        self._sink = sink

    def data_received(self, data: bytes) -> None:
        try:
            packets = self._splitter.feed(data)
        except NotH4 as error:
            self.fail(f"the other end does not speak HCI: {error}")
            return
        for packet in packets:
            if packet == BUSY:
                self.fail("the virtual adapter is busy: another program uses it")
            elif self._sink is not None and self._transport is not None:
                self._sink.on_packet(packet)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._ended.set()
        self._lost(self._why)

    def on_packet(self, packet: bytes) -> None:
        """Send one packet."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(packet)
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.fail("the other end of the HCI stream reads nothing")

    def fail(self, why: str) -> None:
        """End the stream now; `lost` receives the reason."""
        self._why = why
        if self._transport is not None:
            self._transport.abort()

    def hang_up(self) -> None:
        """Send what is queued, then end the stream; `lost` is called."""
        if self._transport is not None:
            self._transport.close()

    async def close(self) -> None:
        """`hang_up`, and wait for it; a peer that does not read is disconnected."""
        self.hang_up()
        try:
            async with timeout(CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            self.fail("closed")
