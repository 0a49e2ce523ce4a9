"""One MQTT 5 connection, used once: the only file that uses aiomqtt and paho.

T1 to T9 mark faults of theirs that are worked around here; tests/e2e/test_mqtt_traps.py shows each.
"""

import asyncio
import logging
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from edge.cloud.mqtt.connection_types import (
    ANY_PACKET,
    HIGH_WATER,
    MAX_PACKET,
    NO_SUBSCRIBERS,
    WINDOW,
    BrokerOptions,
    Codes,
    ConnectionFailed,
    ConnectionOver,
    Inbound,
    PublishRefused,
    Received,
    Waiting,
    Will,
    check_size,
    open_socket,
)
from edge.cloud.mqtt.faults import BrokerVerdict, Fault, of_connack, of_end, of_os_error
from edge.cloud.mqtt.tls import explained
from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import aiomqtt
    from paho.mqtt.client import Client as Paho, ConnectFlags, DisconnectFlags, MQTTMessage
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

_log = logging.getLogger(__name__)

__all__ = [
    "HIGH_WATER",
    "MAX_PACKET",
    "NO_SUBSCRIBERS",
    "WINDOW",
    "BrokerOptions",
    "ConnectionFailed",
    "ConnectionOver",
    "Inbound",
    "MqttConnection",
    "PublishRefused",
    "Will",
]

_REFUSAL: Final = 0x80


class MqttConnection:
    """`async with MqttConnection(options)`: connect, and DISCONNECT, which drops the will.

    Publish, subscribe and `receive` raise ConnectionOver as soon as the link is known to be gone.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.options = options
        self.session_present = False
        self.max_packet = ANY_PACKET
        self._client: aiomqtt.Client | None = None
        self._loop = asyncio.get_running_loop()
        self._connack: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[BrokerVerdict] = self._loop.create_future()
        """Done as soon as the link is known to be gone."""
        self._window = asyncio.Semaphore(1)
        self._waiting = Waiting()
        self._inbox = Received()
        self._thread = threading.get_ident()
        self._paused = False
        self._writing = False
        self._abandoned = False

    # -------------------------------------------------------------- life

    async def __aenter__(self) -> Self:
        if self._client is not None:
            # T2: paho would send old publishes again.
            raise RuntimeError("a Connection is used once; make a new one")
        await self._loop.run_in_executor(None, _import_aiomqtt)
        self._client = self._make_client()
        try:
            async with timeout(self.options.connect_timeout_s):
                await self._dial()
                await self._connack
        except BaseException as error:
            self._abandon()
            if isinstance(error, TimeoutError):
                raise ConnectionFailed(BrokerVerdict(Fault.TIMEOUT, "no answer in time")) from None
            if isinstance(error, OSError):
                raise ConnectionFailed(of_os_error(error)) from None
            if isinstance(error, ConnectionFailed):
                raise ConnectionFailed(await explained(error.verdict, self.options)) from None
            raise
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _tb: TracebackType | None,
    ) -> None:
        if not self.lost.done():
            self._paho.disconnect()
            with suppress(TimeoutError):
                # DISCONNECT leaves from the socket buffer; a silent link must not keep us.
                async with timeout(1.0):
                    await asyncio.shield(self.lost)
        self._over(BrokerVerdict(Fault.CLOSED, "closed"))
        self._abandon()

    async def _dial(self) -> None:
        """Resolve, connect and shake hands in a thread: paho does all three blocking."""
        o = self.options
        dialing = self._loop.run_in_executor(
            None,
            lambda: self._paho.connect(
                o.host, o.port, o.keepalive_s, "", 0, o.clean_start, self._connect_properties()
            ),
        )
        try:
            await asyncio.shield(dialing)
        except (asyncio.CancelledError, TimeoutError):
            # The thread cannot be stopped; when it is done at last, what it opened is closed.
            dialing.add_done_callback(self._dialed_too_late)
            raise

    def _dialed_too_late(self, dialing: "asyncio.Future[Any]") -> None:
        if not dialing.cancelled():
            dialing.exception()
        self._abandon()

    def _abandon(self) -> None:
        """Close the socket and stop aiomqtt's keep-alive task. Safe to call again."""
        self._abandoned = True
        if self._connack.done() and not self._connack.cancelled():
            self._connack.exception()
        if self._client is not None:
            self._paho._sock_close()  # noqa: SLF001 - paho's own close keeps the socket until its next loop call

    @property
    def _paho(self) -> "Paho":
        assert self._client is not None
        return self._client._client  # noqa: SLF001 - aiomqtt shows no acknowledgements; see T1, T3

    # -------------------------------------------------------------- talking

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        content_type: str | None = None,
        correlation: bytes | None = None,
        response_topic: str | None = None,
        expiry_s: float | None = None,
        user_properties: Sequence[tuple[str, str]] = (),
    ) -> int:
        """Publish and wait for the PUBACK; return its code (0, NO_SUBSCRIBERS). QoS 0: at once.

        Raise PublishRefused, and ConnectionOver also when no PUBACK comes in `ack_timeout_s`. Then
        the link is over: a publish that failed is never sent by this connection again (T2).
        """
        properties = _properties(
            "PUBLISH",
            {
                "ContentType": content_type,
                "CorrelationData": correlation,
                "ResponseTopic": response_topic,
                # Expiry 0 would mean "never" to some brokers; whole seconds, at least one.
                "MessageExpiryInterval": None if expiry_s is None else max(1, round(expiry_s)),
                "UserProperty": list(user_properties) or None,
            },
        )
        # T6: paho knows neither the broker's Receive Maximum nor its Maximum Packet Size.
        async with self._window:
            self._check()
            check_size(topic, payload, properties.pack, self.max_packet)
            info = self._paho.publish(topic, payload, qos, retain, properties)
            if info.rc != 0:
                raise self._mark_gone(Fault.LOST, "the socket is gone")
            if qos == 0:
                return 0
            ((code, name),) = await self._answer(info.mid)
        if code >= _REFUSAL:
            raise PublishRefused(code, topic, name)
        return code

    async def subscribe(self, *filters: str, qos: int = 1, own: bool = True) -> None:
        """Subscribe in one packet; `own`: to our messages, too. Raise ConnectionFailed."""
        from paho.mqtt.subscribeoptions import SubscribeOptions  # noqa: PLC0415

        self._check()
        result, mid = self._paho.subscribe(
            [(f, SubscribeOptions(qos=qos, noLocal=not own)) for f in filters]
        )
        if result != 0 or mid is None:
            raise self._mark_gone(Fault.LOST, "the socket is gone")
        for wanted, (code, name) in zip(filters, await self._answer(mid), strict=False):
            if code >= _REFUSAL:
                why = f"{wanted}: {name} (0x{code:02X})"
                raise ConnectionFailed(BrokerVerdict(Fault.SUBSCRIBE_REFUSED, why))

    def unsubscribe(self, topic: str) -> None:
        self._paho.unsubscribe(topic)  # its acknowledgement is not waited for

    async def receive(self) -> Inbound:
        """Return the next message, in order. Raise ConnectionOver when none will come."""
        while not self._inbox:
            self._check()
            await self._inbox.wait()
        message = self._inbox.take()
        if self._paused and self._inbox.drained():
            self._resume()
        return message

    def waiting(self) -> int:
        return len(self._inbox)

    async def _answer(self, mid: int) -> Codes:
        try:
            if self._paused and not self._inbox.full(awaiting=True):
                self._resume()
            async with timeout(self.options.ack_timeout_s):
                return await self._waiting.answer(mid)
        except TimeoutError:
            raise self._mark_gone(Fault.SILENT, "no acknowledgement in time") from None

    def _check(self) -> None:
        if self.lost.done():
            raise ConnectionOver(self.lost.result())

    def _mark_gone(self, fault: Fault, detail: str) -> ConnectionOver:
        """Mark the connection as gone; return the error to raise."""
        return ConnectionOver(self._over(BrokerVerdict(fault, detail)))

    def _over(self, verdict: BrokerVerdict) -> BrokerVerdict:
        """Mark the connection as gone, once, and wake all who wait. Return the first reason."""
        if not self.lost.done():
            self.lost.set_result(verdict)
            self._inbox.wake()
            self._waiting.fail_all(verdict)
        return self.lost.result()

    # -------------------------------------------------------------- paho's callbacks, all but one
    # in the loop's thread

    def _on_connect(
        self,
        _c: "Paho",
        _u: Any,
        flags: "ConnectFlags",
        reason: "ReasonCode",
        connack: "Properties | None",
    ) -> None:
        if self._connack.done():
            return
        if reason.value >= _REFUSAL:
            self._connack.set_exception(ConnectionFailed(of_connack(reason.value, str(reason))))
            return
        self.session_present = bool(flags.session_present)
        self.max_packet = getattr(connack, "MaximumPacketSize", ANY_PACKET)
        most = min(self.options.window, getattr(connack, "ReceiveMaximum", 65535))
        self._window = asyncio.Semaphore(max(1, most))
        self._connack.set_result(None)

    def _on_disconnect(
        self, _c: "Paho", _u: Any, flags: "DisconnectFlags", reason: "ReasonCode", _p: Any
    ) -> None:
        verdict = of_end(
            reason.value, str(reason), by_broker=flags.is_disconnect_packet_from_server
        )
        if not self._connack.done():  # what a broker of another MQTT version does
            failed = ConnectionFailed(BrokerVerdict(Fault.NOT_MQTT5, "closed before CONNACK"))
            self._connack.set_exception(failed)
        self._over(verdict)

    def _on_acknowledged(self, _c: "Paho", _u: Any, mid: int, reason: Any, _p: Any) -> None:
        """Pass on a PUBACK (one code) or SUBACK (a list); aiomqtt drops codes (T1)."""
        reasons = reason if isinstance(reason, list) else [reason]
        self._waiting.settle(mid, [(r.value, str(r)) for r in reasons])

    def _on_message(self, client: "Paho", _u: Any, message: "MQTTMessage") -> None:
        mid, qos = message.mid, message.qos

        def ack() -> None:
            if not self.lost.done():
                client.ack(mid, qos)

        try:
            topic = message.topic
        except UnicodeDecodeError:
            _log.warning("a message on a topic that is not UTF-8 was dropped")
            ack()
            return
        p = message.properties
        self._inbox.put(
            Inbound(
                topic=topic,
                payload=bytes(message.payload),
                qos=qos,
                retain=bool(message.retain),
                content_type=getattr(p, "ContentType", None),
                correlation=getattr(p, "CorrelationData", None),
                response_topic=getattr(p, "ResponseTopic", None),
                user_properties=tuple(getattr(p, "UserProperty", ())),
                expiry_s=getattr(p, "MessageExpiryInterval", None),
                ack=ack,
            )
        )
        if not self._paused and self._inbox.full(awaiting=len(self._waiting) > 0):
            self._pause()

    # -------------------------------------------------------------- the socket

    def _on_socket_open(self, _c: "Paho", _u: Any, sock: Any) -> None:
        """Hand the socket to the loop. The dialing thread may be late."""
        if self._abandoned:
            raise ConnectionAbortedError("nobody waits for this connection any more")
        self._loop.call_soon_threadsafe(self._adopt, sock)

    def _adopt(self, sock: Any) -> None:
        """Watch the socket. Not aiomqtt's reader: ours can pause (T4) and bounds a packet."""
        if self._abandoned or sock.fileno() < 0:
            return
        assert self._client is not None
        self._loop.add_reader(sock.fileno(), self._read)
        self._client._misc_task = self._loop.create_task(self._client._misc_loop())  # noqa: SLF001 - keep-alive; cancelled by _sock_close

    def _read(self) -> None:
        try:
            self._paho.loop_read()
            while not self._paused and self._pending_tls() and not self.lost.done():
                self._paho.loop_read()
        except Exception as error:  # noqa: BLE001 - whatever paho raises, the link is over and says why
            self._mark_gone(Fault.PROTOCOL, f"{type(error).__name__}: {error}"[:200])
        if self._paho._in_packet["remaining_length"] > MAX_PACKET:  # noqa: SLF001 - some brokers ignore our maximum
            self._mark_gone(Fault.PROTOCOL, "a packet over our maximum size")
            self._paho._sock_close()  # noqa: SLF001

    def _pending_tls(self) -> bool:
        """Tell whether OpenSSL holds bytes that the socket will not announce."""
        sock = self._paho.socket()
        return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0

    def _on_want_write(self, _c: "Paho", _u: Any, _sock: Any) -> None:
        """Write in the loop's next turn: watching the socket costs two system calls."""
        ours = threading.get_ident() == self._thread
        (self._loop.call_soon if ours else self._loop.call_soon_threadsafe)(self._write)

    def _write(self) -> None:
        sock = self._paho.socket()
        if sock is None:
            return
        try:
            self._paho.loop_write()
        except Exception as error:  # noqa: BLE001 - as in _read
            self._mark_gone(Fault.PROTOCOL, f"{type(error).__name__}: {error}"[:200])
        if self._paho.want_write() and sock.fileno() >= 0 and not self._writing:
            self._writing = True
            self._loop.add_writer(sock.fileno(), self._write)

    def _on_wrote_all(self, _c: "Paho", _u: Any, sock: Any) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(sock.fileno())

    def _pause(self) -> None:
        sock = self._paho.socket()
        if sock is not None:
            self._paused = True
            self._loop.remove_reader(sock.fileno())

    def _resume(self) -> None:
        self._paused = False
        sock = self._paho.socket()
        if sock is not None:
            self._loop.add_reader(sock.fileno(), self._read)
            self._loop.call_soon(self._read)  # bytes already inside OpenSSL wake nobody

    # -------------------------------------------------------------- making the client

    def _make_client(self) -> "aiomqtt.Client":
        import aiomqtt  # noqa: PLC0415 - 60 ms of import, paid by the first connection only

        o = self.options
        client = aiomqtt.Client(
            o.host,
            o.port,
            identifier=o.client_id,
            username=o.username,
            password=o.password,
            protocol=aiomqtt.ProtocolVersion.V5,
            keepalive=o.keepalive_s,
            will=_will(o.will),
            max_inflight_messages=0,
        )
        paho = client._client  # noqa: SLF001
        paho.disable_logger()  # it calls a lost network an ERROR; the uplink logs it once
        paho.manual_ack_set(True)  # T3
        paho.on_connect = self._on_connect
        paho.on_disconnect = self._on_disconnect
        paho.on_publish = self._on_acknowledged
        paho.on_subscribe = self._on_acknowledged
        paho.on_unsubscribe = self._on_acknowledged
        paho.on_message = self._on_message
        # Paho's own leaks the socket when TLS fails.
        paho._create_socket = partial(open_socket, o)  # type: ignore[method-assign]  # noqa: SLF001
        paho.on_socket_open = self._on_socket_open
        paho.on_socket_register_write = self._on_want_write
        paho.on_socket_unregister_write = self._on_wrote_all
        return client

    def _connect_properties(self) -> "Properties":
        # No TopicAliasMaximum and no aliases of our own: paho sends aliases again without their
        # topic (T7).
        return _properties(
            "CONNECT",
            {
                "SessionExpiryInterval": self.options.session_expiry_s,
                "ReceiveMaximum": self.options.receive_maximum,
                "MaximumPacketSize": MAX_PACKET,
            },
        )


def _import_aiomqtt() -> None:
    import aiomqtt  # noqa: F401, PLC0415 - in a thread, so that the loop goes on meanwhile


def _properties(packet: str, values: dict[str, Any]) -> "Properties":
    from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415
    from paho.mqtt.properties import Properties  # noqa: PLC0415

    properties: Properties = Properties(getattr(PacketTypes, packet))  # type: ignore[no-untyped-call]  # paho's
    for name, value in values.items():
        if value is not None:
            setattr(properties, name, value)
    return properties


def _will(will: Will | None) -> "aiomqtt.Will | None":
    import aiomqtt  # noqa: PLC0415

    if will is None:
        return None
    properties = _properties(
        "WILLMESSAGE",
        {
            "WillDelayInterval": round(will.delay_s),
            "MessageExpiryInterval": will.expiry_s,
            "ContentType": will.content_type,
            "UserProperty": list(will.user_properties) or None,
        },
    )
    return aiomqtt.Will(will.topic, will.payload, 1, True, properties)
