"""What a connection to a broker takes, receives and raises; and its socket."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from edge.cloud.mqtt.faults import BrokerVerdict
from edge.core.words.secret_fields import repr_without

WINDOW: Final = 32
"""QoS 1 publishes under way at once, when the broker allows as many."""
RECEIVE_MAXIMUM: Final = 16
"""Unacknowledged messages a broker may have on its way to us."""
MAX_PACKET: Final = 288 * 1024
"""Bytes of one inbound packet: a body of 256 KiB and room for topic and properties."""
HIGH_WATER: Final = 64
"""From so many messages not taken on, the socket is not read, whatever the broker sends."""
ANY_PACKET: Final = 268_435_460
"""Bytes of the largest packet MQTT has."""
LOW_WATER: Final = 16
MOST_UNREAD: Final = 32 * 1024 * 1024
"""Bytes received and not yet taken: the bound while an acknowledgement is awaited."""
_ENTRY: Final = 1024
"""Bytes of memory that a received message takes beside its payload and its user properties."""
_MOST_HEAD: Final = 4096
"""Bytes of a PUBLISH beside its payload."""
NO_SUBSCRIBERS: Final = 0x10
"""PUBACK: the broker took it and nobody was there to get it."""


class _BrokerError(Exception):
    """`verdict` says what is wrong and what to do."""

    def __init__(self, verdict: BrokerVerdict) -> None:
        super().__init__(f"{verdict.fault}: {verdict.detail}")
        self.verdict = verdict


class ConnectionFailed(_BrokerError):
    """The broker did not let us in."""


class ConnectionOver(_BrokerError):
    """This connection is gone; whether what was under way arrived is unknown. Make a new one."""


class PublishRefused(Exception):
    """The broker answered a publish with a reason code ≥ 0x80: it did not take it."""

    def __init__(self, code: int, topic: str, name: str) -> None:
        super().__init__(f"publish to {topic} refused: {name} (0x{code:02X})")
        self.code = code
        self.topic = topic


class PacketTooLarge(PublishRefused):
    """The broker said at the start that it takes `limit` bytes: this one was not sent."""

    def __init__(self, size: int, limit: int, topic: str) -> None:
        super().__init__(0x95, topic, f"{size} bytes, the broker takes {limit}")
        self.size, self.limit = size, limit


class Will(Struct, frozen=True):
    """What the broker publishes for us when we vanish, `delay_s` later."""

    topic: str
    payload: bytes
    content_type: str
    delay_s: float
    expiry_s: int
    user_properties: tuple[tuple[str, str], ...] = ()


class BrokerOptions(Struct, frozen=True, kw_only=True):
    """Where and how to connect. TCP or TLS only: WebSockets cost 1 s per 40 kB message (T8)."""

    host: str
    client_id: str
    port: int = 1883
    username: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None
    keepalive_s: int = 8
    clean_start: bool = False
    session_expiry_s: int = 24 * 3600
    will: Will | None = None
    window: int = WINDOW
    receive_maximum: int = RECEIVE_MAXIMUM
    connect_timeout_s: float = 10.0
    ack_timeout_s: float = 15.0
    user_timeout_s: float = 15.0
    nodelay: bool = True

    def __repr__(self) -> str:
        return repr_without(self, "password")

    def __post_init__(self) -> None:
        if not self.host or any(c in "/ ?#@" or not c.isprintable() for c in self.host):
            raise ValueError(
                f"uplink.host is {self.host[:80]!r}: give a bare host name or address; "
                "the uplink speaks MQTT 5 over TCP or TLS, not over WebSockets or URLs"
            )
        if not 0 < self.port < 65536:
            raise ValueError(f"uplink.port is {self.port}: give 1 to 65535")
        if self.keepalive_s < 1:
            fix = "give at least 1, or silence is never noticed"
            raise ValueError(f"uplink.keepalive_s is {self.keepalive_s}: {fix}")

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class Inbound(Struct, frozen=True):
    """One received message. Call `ack()` once it is safe; else the broker delivers it again."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    content_type: str | None
    correlation: bytes | None
    response_topic: str | None
    user_properties: tuple[tuple[str, str], ...]
    expiry_s: int | None
    ack: Callable[[], None]

    def __repr__(self) -> str:
        return repr_without(self, "ack")


class Received:
    """Messages received and not yet taken, in order."""

    def __init__(self) -> None:
        self._messages: deque[Inbound] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Inbound) -> None:
        self._messages.append(message)
        self._bytes += _size(message)
        self._arrived.set()

    def take(self) -> Inbound:
        message = self._messages.popleft()
        self._bytes -= _size(message)
        return message

    async def wait(self) -> None:
        """Wait for the next message, or for `wake`."""
        self._arrived.clear()
        await self._arrived.wait()

    def wake(self) -> None:
        self._arrived.set()

    def drained(self) -> bool:
        """Whether to read again."""
        return len(self._messages) <= LOW_WATER

    def full(self, *, awaiting: bool) -> bool:
        """Whether to stop reading; not while an acknowledgement is awaited, which comes last."""
        return self._bytes >= MOST_UNREAD if awaiting else len(self._messages) >= HIGH_WATER


def _size(message: Inbound) -> int:
    properties = sum(len(key) + len(value) for key, value in message.user_properties)
    return _ENTRY + len(message.payload) + properties


Codes = list[tuple[int, str]]
"""Reason codes of one acknowledgement, each with the specification's name for it."""


class Waiting:
    """Who waits for which acknowledgement, by packet id."""

    def __init__(self) -> None:
        self._futures: dict[int, asyncio.Future[Codes]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    async def answer(self, mid: int) -> Codes:
        """Wait for the reason codes of packet `mid`."""
        future = self._futures[mid] = asyncio.get_running_loop().create_future()
        try:
            codes: Codes = await future
            return codes
        finally:
            self._futures.pop(mid, None)

    def settle(self, mid: int, codes: Codes) -> None:
        future = self._futures.get(mid)
        if future is not None and not future.done():
            future.set_result(codes)

    def fail_all(self, verdict: BrokerVerdict) -> None:
        for future in self._futures.values():
            if not future.done():
                future.set_exception(ConnectionOver(verdict))


def check_size(topic: str, payload: bytes, pack: Callable[[], bytes], limit: int) -> None:
    """Raise PacketTooLarge if a QoS 1 PUBLISH exceeds `limit`; `pack` returns its properties."""
    if len(payload) + _MOST_HEAD < limit:
        return
    rest = 2 + len(topic.encode()) + 2 + len(pack()) + len(payload)
    size = 1 + next(n for n in range(1, 5) if rest < 1 << 7 * n) + rest
    if size > limit:
        raise PacketTooLarge(size, limit, topic)


def open_socket(o: BrokerOptions) -> socket.socket:
    """Connect and shake hands, blocking; options come before the first byte. Raise OSError."""
    sock = socket.create_connection((o.host, o.port), timeout=o.connect_timeout_s)
    try:
        if o.nodelay:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(o.user_timeout_s * 1000))
        if o.tls is not None:
            sock = o.tls.wrap_socket(sock, server_hostname=o.host, do_handshake_on_connect=False)
            sock.do_handshake()
    except BaseException:
        sock.close()
        raise
    return sock
