"""Codec of our open profile (PROFILE.md) for both roles; see also frames.py and messages.py."""

from collections import deque
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, Role, _NeedData
from firmware_bridge.codecs.reference.frames import (
    INITIAL_CREDIT,
    MAX_CREDIT,
    Frame,
    FrameType,
    Receiver,
    Sender,
)
from firmware_bridge.codecs.reference.messages import (
    MAX_MESSAGE_BYTES,
    RefusedMessage,
    decode,
    encode,
    is_answered,
)
from firmware_bridge.codecs.reference.photos import PhotoPart, PhotoParts, split
from firmware_bridge.codecs.reference.tiles import TileTable
from firmware_bridge.errors import LocalMisuse, RemoteViolation
from firmware_bridge.messages import Command, Done, Event, Failed, GlassesInfo, PhotoTaken, Reply
from firmware_bridge.packets import MIN_PACKET, clamp_packet

MAX_BACKLOG_BYTES: Final = 8 * MAX_MESSAGE_BYTES
"""Bytes that may wait here for the peer; callers check `backlog()` before sending."""

_WINDOW: Final = 32
"""Frames the glasses may have outstanding: at most 16 KiB; BlueZ loses notifications near 200."""
_ANSWER_ROOM: Final = 16 * 1024
"""Backlog in bytes above which invalid messages get no answer: a flood cannot fill memory."""
_LEAST_LIMIT: Final = 256
"""Smallest message size any glasses accept: a page of two short lines."""
_PEER: Final = {Role.CENTRAL: Role.PERIPHERAL, Role.PERIPHERAL: Role.CENTRAL}


class ReferenceCodec:
    """State of one connection in one role; implements `Codec`. Numbers start at 1; 0 means no
    answer is expected.

    In the glasses' role, sending `GlassesInfo` applies its `limits` to both directions.
    """

    def __init__(self, role: Role, *, max_packet: int = MIN_PACKET) -> None:
        self._role = role
        self._max_packet = clamp_packet(max_packet)
        self._sender = Sender()
        # until the glasses announce their window, they grant the default every sender may assume
        window = _WINDOW if role is Role.CENTRAL else INITIAL_CREDIT
        self._receiver = Receiver(window=window, limit=MAX_MESSAGE_BYTES)
        self._tiles = TileTable()
        self._message_limit = MAX_MESSAGE_BYTES
        self._number = 0
        self._photos = PhotoParts()
        self._inbox: deque[tuple[Incoming, int]] = deque()

    def set_max_packet(self, size: int) -> None:
        """Set the packet size (ATT MTU − 3); frames already cut keep their size."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises `RemoteViolation`, and nothing else, for any bytes."""
        frame = Frame.parse(packet)
        match frame.type:
            case FrameType.DATA:
                whole = self._receiver.data(frame)
                if whole is not None:
                    self._message(*whole)
            case FrameType.ASK:
                self._receiver.owe_ack()
            case FrameType.ACK | FrameType.NAK:
                self._sender.acknowledged(frame, now)

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next complete message; this makes room for the peer to send more."""
        if not self._inbox:
            return NEED_DATA
        incoming, frames = self._inbox.popleft()
        self._receiver.release(frames)
        return incoming

    def _message(self, data: bytes, frames: int) -> None:
        try:
            incoming = decode(data, sender=_PEER[self._role], tiles=self._tiles)
        except RefusedMessage as refused:
            self._receiver.release(frames)
            self._answer(refused)
            if refused.violation is not None:
                raise RemoteViolation(refused.violation, refused.detail) from None
            return
        part: object = incoming.message
        if isinstance(part, PhotoPart):
            self._receiver.release(frames)
            photo = self._photos.add(part)
            if photo is not None:
                self._inbox.append((Incoming(photo), 0))
            return
        if self._role is Role.CENTRAL:
            self._learn(incoming.message)
        elif isinstance(incoming.message, Failed):
            # the central did not know one of our events: nothing to do
            self._receiver.release(frames)
            return
        self._inbox.append((incoming, frames))

    def _learn(self, message: Command | Event | Reply) -> None:
        """Apply the glasses' limits; after a refusal, assume that its tiles were not kept."""
        if isinstance(message, GlassesInfo):
            self._message_limit = _message_limit(message)
            self._tiles.resize(message.limits.get("tiles", 0))
        elif isinstance(message, Failed):
            self._tiles.clear()

    def _promise(self, info: GlassesInfo) -> None:
        """As glasses, apply the limits about to be announced."""
        self._receiver.promise(window=_window(info), limit=_message_limit(info))
        self._tiles.resize(info.limits.get("tiles", 0))

    def _answer(self, refused: RefusedMessage) -> None:
        """Report which message was refused, unless too much is already waiting."""
        if self._sender.backlog <= _ANSWER_ROOM:
            failed = Failed(refused.code, refused.detail)
            self._sender.queue(
                encode(failed, sender=self._role, tiles=self._tiles, re=refused.number)
            )

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue a message.

        Raises `LocalMisuse` for a message of the other role or one too large, `CommandRefused` for
        a command the profile does not have.
        """
        if re is None and isinstance(message, Done | GlassesInfo):
            raise LocalMisuse(
                f"{type(message).__name__} answers a command: give its number as `re`"
            )
        if self._sender.backlog > MAX_BACKLOG_BYTES:
            raise LocalMisuse(
                f"{self._sender.backlog} bytes wait already: look at backlog() before sending"
            )
        if isinstance(message, PhotoTaken) and self._role is Role.PERIPHERAL:
            for part in split(message):
                self._sender.queue(encode(part, sender=self._role, tiles=self._tiles))
            return 0
        number = self._number + 1 if is_answered(message) else 0
        body = encode(message, sender=self._role, tiles=self._tiles, number=number, re=re)
        if len(body) > self._message_limit:
            self._tiles.clear()
            raise LocalMisuse(
                f"a message of {len(body)} bytes; the peer takes "
                f"{self._message_limit}: split its tiles"
            )
        if self._role is Role.PERIPHERAL and isinstance(message, GlassesInfo):
            self._promise(message)
        self._sender.queue(body)
        self._number = max(self._number, number)
        return number

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return the packets to send: the ACK that is due, then data within the peer's credit."""
        return self._receiver.emit() + self._sender.emit(now, self._max_packet)

    def backlog(self) -> int:
        """Bytes queued or sent and not yet acknowledged by the peer."""
        return self._sender.backlog

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        return self._sender.due

    def handle_timer(self, now: float) -> None:
        """Retransmit what is due. Raises `LinkLost(SILENT)`."""
        self._sender.timer(now)


def _window(info: GlassesInfo) -> int:
    return min(max(1, info.limits.get("window", _WINDOW)), MAX_CREDIT)


def _message_limit(info: GlassesInfo) -> int:
    return min(max(_LEAST_LIMIT, info.limits.get("message", MAX_MESSAGE_BYTES)), MAX_MESSAGE_BYTES)
