"""Where to connect is checked; what was received and not taken yet is bounded."""

import pytest

from edge.cloud.mqtt.connection_types import (
    HIGH_WATER,
    LOW_WATER,
    MOST_UNREAD,
    BrokerOptions,
    Inbound,
    Received,
)


def message(payload: bytes = b"", properties: int = 0) -> Inbound:
    return Inbound(
        topic="t",
        payload=payload,
        qos=1,
        retain=False,
        content_type=None,
        correlation=None,
        response_topic=None,
        user_properties=(("k", "v" * properties),),
        expiry_s=None,
        ack=lambda: None,
    )


@pytest.mark.requirement("I11-uplink-backlog")
@pytest.mark.parametrize(
    ("payload", "properties"),
    [(b"", 0), (b"", 100_000), (b"x" * 100_000, 0)],
    ids=["empty", "properties", "payload"],
)
def test_what_comes_before_an_awaited_acknowledgement_is_bounded_in_memory(payload, properties):
    received, one = Received(), message(payload, properties)
    most = MOST_UNREAD // max(
        500, len(payload) + properties
    )  # even an empty one takes about 800 bytes of memory
    while not received.full(awaiting=True):
        received.put(one)
        assert len(received) <= most
    assert len(received) > 4 * HIGH_WATER, "many may come before the SUBACK"
    while not received.drained():
        received.take()
    assert len(received) == LOW_WATER
    assert not received.full(awaiting=True)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        *(
            ({"host": host}, "uplink.host is .*: give a bare host name")
            for host in ("", "mqtts://b", "b/mqtt", "b?x", "b#x", "me@b", "a b", "b\n", "b\x00")
        ),
        ({"port": 0}, "uplink.port is 0: give 1 to 65535"),
        ({"port": 65536}, "uplink.port is 65536: give 1 to 65535"),
        ({"keepalive_s": 0}, "uplink.keepalive_s is 0: give at least 1"),
    ],
    ids=repr,
)
def test_an_address_that_is_none_is_refused_before_it_is_tried(wrong, why):
    with pytest.raises(ValueError, match=why):
        BrokerOptions(**{"host": "b", "client_id": "c", **wrong})
