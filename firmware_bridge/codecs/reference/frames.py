"""Frames of the reference profile: header, sliding window, credits, go-back-N."""

import struct
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from firmware_bridge.errors import LinkLost, LostReason, RemoteViolation, Violation
from firmware_bridge.packets import MIN_PACKET, Cutter, Reassembler, serial_distance

INITIAL_CREDIT: Final = 4
"""Frames either side may send before the first ACK: 80 bytes of buffer at the smallest MTU."""
MAX_CREDIT: Final = 255
"""Frames outstanding at most; the credit is one byte."""
ACK_EVERY: Final = 8
"""Maximum frames between two ACKs: 8 × 512 B take 0.14 s at the 29 kB/s measured on BlueZ, far
below the first retry.
"""
RETRY_AFTER_S: Final = (1.0, 1.0, 2.0, 2.0)
"""Seconds of silence before retry 1, 2, 3, and then before the link counts as lost: 6 s in all."""

FIRST: Final = 0x01
LAST: Final = 0x02
_HEADER: Final = struct.Struct("<BBHH")


class FrameType(IntEnum):
    """Frame type. Only DATA is numbered, counted against the credit, and retransmitted."""

    DATA = 1
    ACK = 2
    NAK = 3
    ASK = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """One packet. `seq`: the own number in DATA, the next expected in ACK and NAK, 0 in ASK."""

    type: FrameType
    flags: int
    seq: int
    payload: bytes

    def pack(self) -> bytes:
        return _HEADER.pack(self.type, self.flags, self.seq, len(self.payload)) + self.payload

    @classmethod
    def parse(cls, packet: bytes) -> "Frame":
        """Parse exactly one frame. Raises `RemoteViolation`."""
        if len(packet) < _HEADER.size:
            raise RemoteViolation(Violation.TRUNCATED, f"a packet of {len(packet)} bytes")
        type_, flags, seq, length = _HEADER.unpack_from(packet)
        if type_ not in FrameType._value2member_map_:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"frame type {type_}")
        missing = _HEADER.size + length - len(packet)
        if missing:
            reason = Violation.TRUNCATED if missing > 0 else Violation.OVERSIZED
            raise RemoteViolation(
                reason, f"{len(packet)} bytes where the header says {_HEADER.size + length}"
            )
        if type_ in (FrameType.ACK, FrameType.NAK) and length != 1:
            raise RemoteViolation(Violation.TRUNCATED, "an ACK or NAK carries one byte of credit")
        return cls(FrameType(type_), flags, seq, packet[_HEADER.size :])


class Sender:
    """Outgoing direction: cuts messages as credit allows, keeps unacknowledged frames, retransmits
    them.

    Sequence numbers are unbounded here and cut to 16 bits on the wire.
    """

    def __init__(self) -> None:
        self._queue: deque[Cutter] = deque()
        # frames cut, sent and not acknowledged; the first has number _base
        self._flight: deque[bytes] = deque()
        self._bytes = 0
        self._base = 0
        self._next = 0
        self._edge = INITIAL_CREDIT
        self._ask = False
        self._nak_answered = -1
        self._retries = 0
        self._due: float | None = None

    @property
    def backlog(self) -> int:
        """Bytes queued or in flight."""
        return self._bytes

    @property
    def due(self) -> float | None:
        """The time of the next retry, or None while nothing is outstanding."""
        return self._due

    def queue(self, message: bytes) -> None:
        cutter = Cutter(message)
        self._bytes += cutter.left
        self._queue.append(cutter)

    def emit(self, now: float, max_packet: int) -> list[bytes]:
        """Return the packets the peer has room for, in order."""
        packets = [Frame(FrameType.ASK, 0, 0, b"").pack()] if self._ask else []
        self._ask = False
        while self._next < self._edge:
            at = self._next - self._base
            if at == len(self._flight):
                if not self._queue:
                    break
                self._flight.append(self._cut(max_packet))
            packets.append(self._flight[at])
            self._next += 1
        if self._due is None and self._waiting():
            self._due = now + RETRY_AFTER_S[self._retries]
        return packets

    def _cut(self, max_packet: int) -> bytes:
        payload, first, last = self._queue[0].cut(max_packet - _HEADER.size)
        if last:
            self._queue.popleft()
        flags = FIRST * first | LAST * last
        return Frame(FrameType.DATA, flags, self._next & 0xFFFF, payload).pack()

    def _waiting(self) -> bool:
        return bool(self._flight or self._queue)

    def acknowledged(self, frame: Frame, now: float) -> None:
        """Process an ACK or a NAK. Raises `RemoteViolation` if it covers frames never sent."""
        done = serial_distance(frame.seq, self._base)
        if done > len(self._flight):
            raise RemoteViolation(
                Violation.BAD_ORDER,
                f"an acknowledgement of {done - len(self._flight)} frames unsent",
            )
        if done < 0:
            return  # overtaken by a newer one
        for _ in range(done):
            self._bytes -= len(self._flight.popleft()) - _HEADER.size
        self._base += done
        self._next = max(self._next, self._base)
        credit = frame.payload[0]
        self._edge = self._base + credit
        if done or credit == 0 or not self._flight:
            self._retries = 0
            self._due = now + RETRY_AFTER_S[0] if self._waiting() else None
        if frame.type is FrameType.NAK and self._nak_answered != self._base:
            # once for each gap: a stream of NAKs must not become a stream of resends
            self._nak_answered = self._base
            self._next = self._base

    def timer(self, now: float) -> None:
        """Retransmit what is outstanding, or ask for credit. Raises `LinkLost` after the last."""
        if self._due is None or now < self._due:
            return
        if self._retries == len(RETRY_AFTER_S) - 1:
            raise LinkLost(LostReason.SILENT, f"no acknowledgement after {self._retries} retries")
        self._retries += 1
        self._due = now + RETRY_AFTER_S[self._retries]
        if self._edge > self._base:
            self._next = self._base
        else:
            self._ask = True


class Receiver:
    """Incoming: takes frames in order, grants credit for the free room, requests missing ones."""

    def __init__(self, *, window: int, limit: int) -> None:
        self._window = window
        self._assembler = Reassembler(limit)
        self._expected = 0
        self._edge = INITIAL_CREDIT  # first number the peer may not send; never moves back
        self._acked = 0
        self._partial = 0
        self._held = 0
        self._owed = False
        self._gap = False
        self._nak_owed = False

    def promise(self, *, window: int, limit: int) -> None:
        """Apply the limits that were announced to the peer."""
        self._window = window
        self._assembler.limit = limit

    def data(self, frame: Frame) -> tuple[bytes, int] | None:
        """Process a DATA frame; return a complete (message, frames). Raises `RemoteViolation`."""
        ahead = serial_distance(frame.seq, self._expected)
        if ahead < 0:
            self._owed = True  # a duplicate, or our ACK was lost
            return None
        if self._expected + ahead >= self._edge:
            self._owed = True
            raise RemoteViolation(Violation.BAD_ORDER, f"frame {frame.seq} was sent without credit")
        if ahead:
            self._nak_owed |= not self._gap
            self._gap = True
            return None
        return self._in_order(frame)

    def _in_order(self, frame: Frame) -> tuple[bytes, int] | None:
        self._expected += 1
        self._gap = self._nak_owed = False
        last = bool(frame.flags & LAST)
        granted = self._edge - self._acked
        self._owed |= last or self._expected - self._acked >= min(ACK_EVERY, max(1, granted // 2))
        self._partial = 1 if frame.flags & FIRST else self._partial + 1
        message = self._assembler.add(frame.payload, first=bool(frame.flags & FIRST), last=last)
        if message is None:
            return None
        self._held += self._partial
        return message, self._partial

    def release(self, frames: int) -> None:
        """Free the room of a consumed message of so many frames."""
        self._held -= frames
        # the peer waits for this; else the next ACK is early enough
        self._owed |= self._edge == self._expected

    def owe_ack(self) -> None:
        self._owed = True

    def _grant(self) -> int:
        return max(self._edge, self._expected + max(0, self._window - self._held))

    def emit(self) -> list[bytes]:
        """Return the ACK or NAK that is due; one covers all frames since the last."""
        if not (self._owed or self._nak_owed):
            return []
        kind = FrameType.NAK if self._nak_owed else FrameType.ACK
        self._edge = self._grant()
        self._acked = self._expected
        self._owed = self._nak_owed = False
        credit = min(MAX_CREDIT, self._edge - self._expected)
        return [Frame(kind, 0, self._expected & 0xFFFF, bytes((credit,))).pack()]


assert _HEADER.size + 4 < MIN_PACKET, "the smallest packet holds a first piece"
