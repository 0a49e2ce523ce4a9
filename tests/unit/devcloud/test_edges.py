"""What the cloud keeps of its edges' words."""

import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import Inbound
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud import edges as edges_module
from edge.devcloud.edges import Edges, flags


async def hear(edges, topic, kind, body, *, payload=None):
    written, content_type = wire.encode(kind, body)
    inbound = Inbound(
        topic=topic,
        payload=written if payload is None else payload,
        qos=1,
        retain=True,
        content_type=content_type,
        correlation=None,
        response_topic=None,
        user_properties=(),
        expiry_s=None,
        ack=lambda: None,
    )
    (route,) = [r for r in edges.routes() if r.handles(topic)]
    await route.handler(inbound)


ID = "01890000-0000-7000-8000-000000000001"


async def test_the_last_message_of_each_kind_is_kept():
    edges, topics = Edges("default"), Topics("default", "e1")
    await hear(edges, topics.presence, MessageKind.PRESENCE, {"state": "online", "glasses": "none"})
    await hear(
        edges, topics.presence, MessageKind.PRESENCE, {"state": "online", "glasses": "connected"}
    )
    await hear(edges, topics.capabilities, MessageKind.CAPABILITIES, {"model": "mock:display"})
    await hear(
        edges, topics.delivery, MessageKind.DELIVERY, {"id": ID, "delivery": "shown", "age": 5}
    )
    await hear(edges, topics.event("tap"), MessageKind.EVENT, {"side": "left"})
    assert edges.to_json() == {
        "e1": {
            "presence": {"state": "online", "glasses": "connected"},
            "capabilities": {"model": "mock:display"},
            "deliveries": [{"id": ID, "delivery": "shown", "age": 5}],
            "events": [{"side": "left", "kind": "tap"}],
        }
    }


@pytest.mark.parametrize("payload", [b"", b"\xc1 nonsense"])
async def test_an_empty_or_unreadable_word_changes_nothing(payload):
    edges = Edges("default")
    await hear(edges, Topics("default", "e1").presence, MessageKind.PRESENCE, {}, payload=payload)
    assert edges.ids() == []


async def test_the_number_of_edges_is_bounded(monkeypatch):
    monkeypatch.setattr(edges_module, "MAX_EDGES", 2)
    edges = Edges("default")
    for name in ("e1", "e2", "e1", "e3"):
        await hear(edges, Topics("default", name).presence, MessageKind.PRESENCE, {})
    assert edges.ids() == ["e1", "e3"]


async def test_a_user_is_an_edge_or_anyone_if_there_is_one_edge():
    edges = Edges("default")
    assert edges.hardware_of("local") is None
    await hear(
        edges,
        Topics("default", "e1").capabilities,
        MessageKind.CAPABILITIES,
        {"capabilities": {"camera": {"value": True}}},
    )
    assert edges.hardware_of("local")["camera"] is True
    await hear(
        edges,
        Topics("default", "e2").capabilities,
        MessageKind.CAPABILITIES,
        {"capabilities": {"camera": {"value": False}}},
    )
    assert edges.hardware_of("local") is None
    assert edges.hardware_of("e2")["camera"] is False


@pytest.mark.parametrize(
    "report",
    [
        {"camera": True},
        {"camera": {"value": True}},
        {"capabilities": {"camera": {"value": True, "origin": "firmware"}}},
        {"report": {"camera": {"value": True}}},
        {"record": {"camera": True}},
    ],
)
def test_flags_are_read_wherever_the_report_puts_them(report):
    assert flags(report)["camera"] is True
    assert flags(report)["display"] is False
