"""The real driver with both connections of a pair against the simulated G1: what fails on one
arm stays on that arm.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.driver import Driver
from firmware_bridge.errors import BridgeError
from firmware_bridge.messages import Event, Hello, ShowPage, SideChanged, TextLine
from firmware_bridge.sides import Side
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.side_radio import connect_any
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear

pytestmark = pytest.mark.enable_socket

L, R = Side.LEFT, Side.RIGHT


class Wearing:
    """A driver on a simulated pair, and everything it hears."""

    def __init__(self, mock: Mock, driver: Driver[Any], ear: Ear) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.heard: list[Event] = []
        self._read = 0
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.heard.append(event)
            self._news.set()

    async def side(self, side: Side, *, up: bool) -> SideChanged:
        """Wait until the driver says this of a side, and read on from there: what comes and
        goes at once is not missed.
        """
        async with asyncio.timeout(DEADLINE_S):
            while True:
                while self._read < len(self.heard):
                    event = self.heard[self._read]
                    self._read += 1
                    if isinstance(event, SideChanged) and (event.side, event.up) == (side, up):
                        return event
                self._news.clear()
                await self._news.wait()

    async def inject(self, word: str) -> None:
        await self.mock.injector.inject(parse_fault(word))

    async def show(self, words: str, *, timeout_s: float = DEADLINE_S * 2) -> None:
        await self.driver.request(ShowPage("s", lines=(TextLine(0, words),)), timeout_s=timeout_s)

    def lines(self, side: Side) -> list[str]:
        return self.mock.glasses.lenses[side].text()


@asynccontextmanager
async def wearing(out: Path) -> AsyncIterator[Wearing]:
    radio = await open_radio("inproc")
    ear = Ear()
    mock = await start_mock("sim:even_g1", radio.air, out_dir=out, tell=ear, speed=30)
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport: Any = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
        driver: Driver[Any] = Driver(
            transport, sighting.entry.codec(transport.max_packet), clock=time.monotonic
        )
        worn = Wearing(mock, driver, ear)
        running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(worn.listen())]
        try:
            await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
            yield worn
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            await transport.close()
    finally:
        await radio.close()
        await mock.close()


@pytest.mark.requirement("I4-sim-g1")
async def test_a_page_is_drawn_left_first_then_right_alike(tmp_path: Path) -> None:
    async with wearing(tmp_path) as worn:
        await worn.show("Good morning, Ada")
        drawn = [e for e in worn.ear.events if e["event"] == "lens" and e["lines"]]
        told = [(e["sides"][L]["lines"], e["sides"][R]["lines"], e["same"]) for e in drawn]
        assert [
            state for state, _ in groupby(told)
        ] == [  # a slow answer is asked for again, and the page with it
            (["Good morning, Ada"], [], False),
            (["Good morning, Ada"], ["Good morning, Ada"], True),
        ]


@pytest.mark.parametrize("gone", [L, R])
async def test_an_arm_out_of_range_gets_the_page_later(tmp_path: Path, gone: Side) -> None:
    other = R if gone is L else L
    async with wearing(tmp_path) as worn:
        await worn.show("before")
        await worn.inject(f"away:3600:{gone}")  # until it is called back
        await worn.side(gone, up=False)
        await worn.show("meanwhile")
        assert (worn.lines(other), worn.lines(gone)) == (["meanwhile"], ["before"])
        worn.mock.servers[gone].come_back()
        await worn.side(gone, up=True)
        await worn.ear.wait("lens", where=lambda e: e["same"] and e["lines"] == ["meanwhile"])


async def test_what_is_cut_in_the_middle_is_whole_after_the_reconnect(tmp_path: Path) -> None:
    async with wearing(tmp_path) as worn:
        await worn.inject("cut:right")
        long = "a long line of words " * 15
        await worn.show(long)
        await worn.side(R, up=False)
        await worn.side(R, up=True)
        await worn.ear.wait("lens", where=lambda e: e["same"] and e["lines"] == [long])


async def test_lost_acknowledgements_of_one_arm_cost_time_and_no_page(tmp_path: Path) -> None:
    async with wearing(tmp_path) as worn:
        await worn.inject("lose-acks:2:right")
        for number in range(3):
            await worn.show(f"page {number}")
        assert (worn.lines(L), worn.lines(R)) == (["page 2"], ["page 2"])


async def test_an_arm_that_refuses_everything_keeps_the_link(tmp_path: Path) -> None:
    async with wearing(tmp_path) as worn:
        await worn.inject("refuse:1")
        with pytest.raises(BridgeError):
            await worn.show("no")
        await worn.inject("refuse:0")
        await worn.show("yes")
        assert worn.lines(L) == worn.lines(R) == ["yes"]


async def test_one_arm_at_the_smallest_mtu_shows_what_the_other_shows(tmp_path: Path) -> None:
    async with wearing(tmp_path) as worn:
        await worn.inject("mtu:23:left")
        await worn.side(L, up=False)
        await worn.side(L, up=True)
        await worn.show("in many small pieces, one by one")
        assert worn.lines(L) == worn.lines(R) == ["in many small pieces, one by one"]
