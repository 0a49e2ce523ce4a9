"""The cloud's MQTT connection: reconnects, subscribes, and passes each message to the route of its
topic. It has no session: the broker would hold messages for an absent worker that another one could
handle.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import (
    BrokerOptions,
    ConnectionFailed,
    ConnectionOver,
    Inbound,
    MqttConnection,
    PublishRefused,
)
from edge.cloud.mqtt.wire import MessageKind
from edge.runtime.first_completed import race
from tools_cache.api.tool import Json

log = logging.getLogger(__name__)

FIRST_S: Final = 0.1
CAP_S: Final = 2.0
"""Seconds between reconnects; the broker is on this machine, so they may be frequent."""


class NotConnected(Exception):
    """The broker is not reachable now; callers publish again after the next connect."""


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """A subscription and the handler of its messages. The handler acknowledges."""

    filter: str
    handles: Callable[[str], bool]
    handler: Callable[[Inbound], Awaitable[None]]


def decode(inbound: Inbound, kind: MessageKind | None = None) -> tuple[str, wire.WireMessage]:
    """Return edge id and message; `kind`: of a message that does not name its own. Raises
    WireError.
    """
    edge = wire.edge_of(inbound.topic)
    return edge, wire.decode(
        inbound.payload,
        content_type=inbound.content_type,
        user_properties=inbound.user_properties,
        correlation=inbound.correlation,
        default_kind=kind,
    )


class CloudLink:
    """`run()` until cancelled; `publish` while connected. `on_up` runs after every (re)connect,
    once subscribed.
    """

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        *,
        routes: Sequence[TopicRoute],
        on_up: Sequence[Callable[[], Awaitable[None]]] = (),
        first_s: float = FIRST_S,
    ) -> None:
        self._options = options
        self._routes = routes
        self._on_up = on_up
        self._first_s = first_s
        self._connection: MqttConnection | None = None
        self.connected = asyncio.Event()
        self.connects = 0

    @property
    def up(self) -> bool:
        return self._connection is not None

    async def run(self) -> None:
        """Connect, serve, reconnect; full jitter, from `first_s` up to `CAP_S` seconds."""
        failures = 0
        while True:
            try:
                await self._serve()
            except (ConnectionFailed, ConnectionOver) as e:
                failures = 0 if isinstance(e, ConnectionOver) else failures + 1
                level = logging.WARNING if failures <= 1 else logging.DEBUG
                log.log(level, "no broker at %s: %s; trying again", self._options().address, e)
            await asyncio.sleep(random.uniform(0.2, 1.0) * min(CAP_S, self._first_s * 2**failures))

    async def publish(
        self,
        topic: str,
        kind: MessageKind,
        body: Mapping[str, Json],
        *,
        json: bool = False,
        correlation: bytes | None = None,
        response_topic: str | None = None,
        expiry_s: float | None = None,
        retain: bool = False,
        attempt: int = 1,
    ) -> int:
        """Publish at QoS 1; returns when the broker has it. Raises NotConnected, WireError."""
        payload, content_type = wire.encode(kind, body, json=json)
        if self._connection is None:
            raise NotConnected("the broker is away")
        try:
            return await self._connection.publish(
                topic,
                payload,
                retain=retain,
                content_type=content_type,
                correlation=correlation,
                response_topic=response_topic,
                expiry_s=expiry_s,
                user_properties=(("k", kind.value), ("a", str(attempt))),
            )
        except (ConnectionOver, PublishRefused) as e:
            raise NotConnected(str(e)) from None

    async def _serve(self) -> None:
        async with MqttConnection(self._options()) as connection:
            await connection.subscribe(*(route.filter for route in self._routes))
            self._connection = connection
            self.connects += 1
            self.connected.set()
            log.info("connected to the broker at %s", connection.options.address)
            try:
                await race(self._greet(), self._receive(connection))
                raise ConnectionOver(await connection.lost)
            finally:
                self._connection = None
                self.connected.clear()

    async def _greet(self) -> None:
        """Run `on_up` in parallel with receiving."""
        for hello in self._on_up:
            with suppress(NotConnected):  # repeated on the next connect
                await hello()
        await asyncio.Event().wait()

    async def _receive(self, connection: MqttConnection) -> None:
        """Dispatch every message; returns when the connection is lost."""
        while True:
            try:
                message = await connection.receive()
            except ConnectionOver:
                return
            for route in self._routes:
                if route.handles(message.topic):
                    await self._hand_over(route, message)
                    break
            else:
                message.ack()

    async def _hand_over(self, route: TopicRoute, message: Inbound) -> None:
        try:
            await route.handler(message)
        except Exception:
            # One bad message must not end the cloud for all edges; log the trace for its fix.
            log.exception("a message on %.120r could not be handled", message.topic)
            message.ack()
