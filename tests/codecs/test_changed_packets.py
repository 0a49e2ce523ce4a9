"""No packet, however changed, makes a codec crash, hang or grow. `make fuzz` sends a hundred times
as many.
"""

import pytest

from firmware_bridge.codec import NEED_DATA, Role
from firmware_bridge.errors import RemoteViolation
from tests.fuzz.codecs import Target, conversation, feed, targets

PACKETS = 10_000


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_changed_packets_do_no_harm(target):
    found = feed(target, PACKETS, seed=1)
    assert found.problems == []
    assert found.packets == PACKETS
    assert found.violations < PACKETS, "some packets are taken"


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_the_packets_come_from_a_real_conversation(target):
    assert len(conversation(target)) >= 3


class Careless:
    """A codec that crashes at one byte and keeps the rest."""

    def __init__(self):
        self.kept = []

    def receive_packet(self, packet, now):
        if packet[:1] == b"\x17":
            raise IndexError("a bug")
        if not packet:
            raise RemoteViolation("truncated", "an empty packet")
        self.kept.append(packet + bytes(4096))

    def next_event(self):
        return NEED_DATA

    def packets_to_send(self, now):
        return []

    def next_timer(self):
        return None


def careless(codec_made, monkeypatch):
    target = next(each for each in targets() if each.role is Role.PERIPHERAL)
    monkeypatch.setattr("tests.fuzz.codecs.conversation", lambda _target: [b"\x10 seed packet"])
    monkeypatch.setattr(Target, "make", lambda _self: codec_made)
    return feed(target, 20_000, seed=1)


def test_a_codec_that_crashes_is_found(monkeypatch):
    problems = careless(Careless(), monkeypatch).problems
    assert any("IndexError: a bug after 17" in problem for problem in problems)


def test_a_codec_that_grows_is_found(monkeypatch):
    monkeypatch.setattr(
        Careless,
        "receive_packet",
        lambda self, packet, _now: self.kept.append(bytes(packet) + bytes(4096)),
    )
    assert any("bytes are held" in each for each in careless(Careless(), monkeypatch).problems)
