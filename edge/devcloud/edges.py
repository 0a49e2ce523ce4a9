"""Last known state of each edge: presence, capabilities, deliveries, events. For listings only."""

import logging
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireError
from edge.devcloud.link import TopicRoute, decode
from tools_cache.api.tool import Json

log = logging.getLogger(__name__)

MAX_EDGES: Final = 1000
KEPT: Final = 50
"""Deliveries and events kept of each edge."""
HARDWARE: Final = ("camera", "display", "microphone", "speaker", "imu", "button", "light", "wifi")
_RECORD_KEYS: Final = ("capabilities", "report", "record", "glasses")
_EVENT: Final = "/event/"


@dataclass(slots=True)
class ConnectedEdge:
    """Last message of each kind from one edge."""

    presence: Mapping[str, Json] = field(default_factory=dict)
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    deliveries: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=KEPT))
    events: deque[Mapping[str, Json]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def to_json(self) -> dict[str, Json]:
        return {
            "presence": dict(self.presence),
            "capabilities": dict(self.capabilities),
            "deliveries": [dict(d) for d in self.deliveries],
            "events": [dict(e) for e in self.events],
        }


class Edges:
    """Subscribes to the topics of every edge."""

    def __init__(self, tenant: str) -> None:
        self._all: OrderedDict[str, ConnectedEdge] = OrderedDict()
        self._topics = Topics.for_cloud(tenant)

    def routes(self) -> tuple[TopicRoute, ...]:
        t = self._topics
        return (
            TopicRoute(t.presence, lambda topic: topic.endswith("/presence"), self._hear),
            TopicRoute(t.capabilities, lambda topic: topic.endswith("/capabilities"), self._hear),
            TopicRoute(t.delivery, lambda topic: topic.endswith("/delivery"), self._hear),
            TopicRoute(t.event("+"), lambda topic: _EVENT in topic, self._hear),
        )

    def ids(self) -> list[str]:
        return list(self._all)

    def to_json(self) -> dict[str, Json]:
        return {edge_id: edge.to_json() for edge_id, edge in self._all.items()}

    def hardware_of(self, user_id: str) -> Mapping[str, bool] | None:
        """Return the hardware of a user's glasses; None if unknown. The user is an edge id, or
        anyone if there is only one edge.
        """
        edge = self._all.get(user_id)
        if edge is None and len(self._all) == 1:
            edge = next(iter(self._all.values()))
        return None if edge is None or not edge.capabilities else flags(edge.capabilities)

    async def _hear(self, inbound: Inbound) -> None:
        inbound.ack()
        if not inbound.payload:  # a retained message was deleted
            return
        try:
            edge_id, message = decode(inbound, _kind_of(inbound.topic))
        except WireError as e:
            log.debug("a message on %.120r cannot be read: %s", inbound.topic, e)
            return
        edge = self._all.setdefault(edge_id, ConnectedEdge())
        self._all.move_to_end(edge_id)
        if len(self._all) > MAX_EDGES:
            self._all.popitem(last=False)
        body = {k: v for k, v in message.body.items() if k not in ("v", "k")}
        match message.kind:
            case MessageKind.PRESENCE:
                edge.presence = body
            case MessageKind.CAPABILITIES:
                edge.capabilities = body
            case MessageKind.DELIVERY:
                edge.deliveries.append(body)
            case MessageKind.EVENT:
                edge.events.append({**body, "kind": inbound.topic.rpartition(_EVENT)[2]})


def _kind_of(topic: str) -> MessageKind:
    return MessageKind.EVENT if _EVENT in topic else MessageKind(topic.rpartition("/")[2])


def flags(report: Mapping[str, Json]) -> dict[str, bool]:
    """Return the hardware flags of a capability report, each value plain or as {value, origin,
    age}; unknown ones are absent.
    """
    nested = (report[key] for key in _RECORD_KEYS if isinstance(report.get(key), dict))
    record: Mapping[str, Json] = next(nested, report)
    found = {}
    for key in HARDWARE:
        value = record.get(key)
        found[key] = (value.get("value") if isinstance(value, dict) else value) is True
    return found
