"""Golden packets of OMI Glass's firmware update, as other hosts send them to the simulator (§7)."""

import pytest
from msgspec.structs import replace

from firmware_bridge.codecs.omi.peripheral import DIALECTS, OmiGlasses
from firmware_bridge.packets import SUBSCRIBE, UNSUBSCRIBE, ChannelPacket

NETWORK = b"\x01\x04Home\x06secret"
ADDRESS = b"\x05\x00\x13https://example.com"
IDLE, ERROR = b"\x00\x00", b"\xff\x00"


class Updating:
    def __init__(self, **changes):
        self.restarts = 0
        dialect = replace(DIALECTS["omi_glass"], **changes)
        self.glasses = OmiGlasses(dialect, restart=self._restart)
        self.now = 0.0
        self.write(SUBSCRIBE, "progress")

    def _restart(self):
        self.restarts += 1

    def write(self, packet, channel="update"):
        """Write to the control; return what is reported then."""
        self.glasses.receive_packet(ChannelPacket(packet, channel), self.now)
        return self.reported()

    def reported(self):
        packets = self.glasses.packets_to_send(self.now)
        assert {packet.channel for packet in packets} <= {"progress"}
        return [bytes(packet) for packet in packets]

    def later(self, seconds=600.0):
        """Let time pass; return what is reported meanwhile."""
        found, end = [], self.now + seconds
        while (due := self.glasses.next_timer()) is not None and due <= end:
            self.now = due
            found += self.reported()
        return found


@pytest.mark.parametrize(
    ("packet", "report"),
    [
        (NETWORK, IDLE),
        (NETWORK + b"more", IDLE),
        (b"\x01\x04Home\x00", IDLE),
        (b"\x01\x00\x00", IDLE),
        (b"\x01\x20" + b"n" * 32 + b"\x40" + b"p" * 64, IDLE),
        (b"\x01\x21" + b"n" * 33 + b"\x01p", ERROR),
        (b"\x01\x04Home\x41" + b"p" * 65, ERROR),
        (b"\x01\x04Hom", ERROR),
        (b"\x01\x04Home\x07secret", ERROR),
        (b"\x01\x00", ERROR),
        (ADDRESS, IDLE),
        (b"\x05\x01\x00" + b"a" * 256, IDLE),
        (b"\x05\x01\x01" + b"a" * 257, ERROR),
        (b"\x05\x00\x14https://example.com", ERROR),
        (b"\x05\x00\x00", ERROR),
        (b"\x02", ERROR),
        (b"\x04", IDLE),
        (b"\x06", ERROR),
    ],
)
def test_a_command_is_reported_on(packet, report):
    assert Updating().write(packet) == [report]


def test_an_update_needs_a_network_and_an_address():
    for only in (NETWORK, ADDRESS):
        glasses = Updating()
        glasses.write(only)
        assert glasses.write(b"\x02") == [ERROR]
        assert glasses.write(b"\x04") == [ERROR], "the last report"


def begun(**changes):
    glasses = Updating(**changes)
    glasses.write(NETWORK)
    glasses.write(ADDRESS)
    return glasses


def test_an_update_reports_every_step_and_restarts_two_seconds_after_the_last():
    glasses = begun()
    first = glasses.write(b"\x02https://elsewhere.example")
    assert first == [b"\x10\x00"], "what follows the command is ignored"
    assert glasses.write(b"\x02") == [], "it is under way"
    steps = glasses.later(10.0)
    assert steps[:2] == [b"\x11\x00", b"\x20\x00"]
    assert steps[2:-2] == [bytes([0x30, percent]) for percent in range(0, 101, 5)]
    assert steps[-2:] == [b"\x31\x64", b"\x40\x00"]
    assert glasses.restarts == 1
    assert glasses.glasses.next_timer() is None


def test_the_restart_is_not_before_its_time():
    glasses = begun()
    glasses.write(b"\x02")
    while glasses.glasses.update.status != b"\x40\x00":
        glasses.now = glasses.glasses.next_timer()
        glasses.reported()
    assert glasses.restarts == 0
    assert glasses.glasses.next_timer() == pytest.approx(glasses.now + 2.0)


def test_what_is_read_has_the_status_and_a_zero():
    glasses = begun()
    glasses.write(b"\x02")
    while glasses.later(0.1) != [b"\x30\x05"]:
        pass
    assert glasses.glasses.update.status == b"\x30\x00"


def test_an_update_is_cancelled():
    glasses = begun()
    assert glasses.write(b"\x03") == [], "nothing is under way"
    glasses.write(b"\x02")
    glasses.write(b"\x03")
    assert glasses.later() == [IDLE]
    assert glasses.restarts == 0


def test_an_address_that_is_none_fails_the_download():
    glasses = Updating()
    glasses.write(NETWORK)
    glasses.write(b"\x05\x00\x07nowhere")
    glasses.write(b"\x02")
    assert glasses.later()[-1] == b"\x22\x00"


def test_the_length_of_an_address_may_have_one_byte():
    glasses = Updating(short_address=True)
    assert glasses.write(b"\x05\x13https://example.com") == [IDLE]
    assert glasses.write(b"\x05\x14https://example.com") == [ERROR]
    glasses.write(NETWORK)
    assert glasses.write(b"\x02") == [b"\x10\x00"]


def test_progress_is_told_to_subscribers_only():
    glasses = begun()
    assert glasses.write(UNSUBSCRIBE, "progress") == []
    assert glasses.write(b"\x04") == []
