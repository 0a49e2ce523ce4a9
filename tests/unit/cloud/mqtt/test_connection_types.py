"""What was received and not taken yet is bounded, whatever the messages look like."""

import pytest

from edge.cloud.mqtt.connection_types import HIGH_WATER, LOW_WATER, MOST_UNREAD, Inbound, Received


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
