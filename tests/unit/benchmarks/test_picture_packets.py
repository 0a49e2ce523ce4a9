"""What `make bench` measures of the packets of a picture."""

import asyncio

import pytest

from benchmarks.picture_packets import Sent, _apart, _model
from benchmarks.table import Note, Row
from firmware_bridge.catalog import find
from firmware_bridge.sides import Side, SidePacket


def test_packets_bytes_and_computing_are_measured() -> None:
    measured = [(row.what, row.value) for row in asyncio.run(_model(find("mock:display")))]
    assert all(value > 0 for _, value in measured)
    assert min(value for what, value in measured if what == "  packets") > 40
    assert min(value for what, value in measured if what == "  bytes") > 576 * 136 // 8


@pytest.mark.parametrize(("right", "what"), [(30, Row), (3, Note)])
def test_sides_are_compared_where_both_get_the_picture(right: int, what: type) -> None:
    sent = Sent()
    for side, count in ((Side.LEFT, 30), (Side.RIGHT, right)):
        sent.add([SidePacket(side, b"piece")] * count)
    assert isinstance(_apart(sent), what)
