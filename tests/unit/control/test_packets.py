"""`GET /v1/packets`: what passes is streamed while one client listens, and to nobody else."""

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from edge.control.packets import MAX_WAITING
from edge.ports import TapTaken
from firmware_bridge.catalog import find
from firmware_bridge.codec import Incoming
from firmware_bridge.driver import Passing
from firmware_bridge.messages import Gesture, Gestured, Ping
from tests.unit.control.house import DEADLINE_S, open_house

pytestmark = pytest.mark.enable_socket
REQUEST = b"GET /v1/packets%s HTTP/1.1\r\nHost: x\r\n\r\n"


class Link:
    """A link that shows what a test lets pass."""

    def __init__(self, error=None):
        self.tap = None
        self.reconnects = []
        self.listened, self.left = asyncio.Event(), asyncio.Event()
        self.error = error

    @asynccontextmanager
    async def tapped(self, tap, *, reconnect):
        if self.error:
            raise self.error
        self.tap = tap
        self.reconnects.append(reconnect)
        self.listened.set()
        try:
            yield
        finally:
            self.tap = None
            self.left.set()


@asynccontextmanager
async def listening(tmp_path, link, query=b""):
    """The lines of the stream, as they come."""
    async with open_house(tmp_path, packets=link.tapped) as house, asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_unix_connection(str(house.owners))
        writer.write(REQUEST % query)

        async def event():
            while not (line := await reader.readline()).startswith(b"data: "):
                assert line, "the stream ended"
            return json.loads(line[6:])

        try:
            yield event, writer, house
        finally:
            writer.close()


@pytest.mark.parametrize(("query", "reconnect"), [(b"", False), (b"?reconnect=1", True)])
async def test_all_that_passes_is_streamed_in_order(tmp_path, query, reconnect):
    link = Link()
    async with listening(tmp_path, link, query) as (event, _, _house):
        await link.listened.wait()
        transport = SimpleNamespace(max_packet=244, address="AA:BB")
        link.tap(1.0, Passing.CONNECTED, (find("mock:full"), transport))
        link.tap(1.5, Passing.COMMAND, (Ping(), 3))
        link.tap(1.6, Passing.OUT, b"\x01\x02")
        link.tap(1.7, Passing.IN, b"\x03")
        link.tap(1.8, Passing.MESSAGE, Incoming(Gestured(Gesture.TAP)))
        first, *rest = [await event() for _ in range(5)]
    assert link.reconnects == [reconnect]
    assert first == {
        "event": "connected",
        "at": 1.0,
        "session": 244,
        "model": "mock:full",
        "mtu": 247,
        "glassd": "0.1.0",
        "names": ["AA:BB"],
    }
    assert [each.pop("event") for each in rest] == ["passed"] * 4
    assert rest == [
        {"at": 1.5, "command": {"type": "Ping"}, "number": 3},
        {"at": 1.6, "to": "glasses", "data": "0102"},
        {"at": 1.7, "to": "glassd", "data": "03"},
        {
            "at": 1.8,
            "message": {"type": "Gestured", "gesture": "tap", "side": None},
        },
    ]


async def test_nobody_listens_any_more_once_the_client_hung_up(tmp_path):
    link = Link()
    async with listening(tmp_path, link) as (_, writer, _house):
        await link.listened.wait()
        writer.close()
        await link.left.wait()
    assert link.tap is None


async def test_a_client_that_reads_too_slowly_is_told_and_gets_no_gap(tmp_path):
    link = Link()
    async with listening(tmp_path, link) as (event, writer, house):
        await link.listened.wait()
        for number in range(MAX_WAITING + 10):
            link.tap(float(number), Passing.IN, b"\x01")
        came = [await event() for _ in range(MAX_WAITING + 1)]
        writer.close()
        others = [(await house.ask("GET", "/v1/status"))[0] for _ in range(10)]
    assert others == [200] * 10, "the server serves others all the same"
    assert [each["at"] for each in came[:-1]] == [float(n) for n in range(MAX_WAITING)]
    assert (came[-1]["event"], came[-1]["code"]) == ("failed", "BUSY")


@pytest.mark.parametrize(
    ("error", "code"), [(TapTaken("taken"), "CONFLICT"), (TimeoutError(), "TIMEOUT")]
)
async def test_a_link_that_cannot_be_recorded_is_the_last_event(tmp_path, error, code):
    async with listening(tmp_path, Link(error)) as (event, _, _house):
        failed = await event()
    assert (failed["event"], failed["code"]) == ("failed", code)
    assert failed["text"]
    assert failed["fix"]


async def test_without_a_link_the_request_is_refused(tmp_path):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask_as_owner("GET", "/v1/packets")
        assert (status, answer["error"]["code"]) == (501, "UNSUPPORTED")
