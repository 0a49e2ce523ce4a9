"""The real driver with both connections of a pair against the simulated G1: what fails on one
arm stays on that arm.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.driver import Driver
from firmware_bridge.errors import BridgeError
from firmware_bridge.messages import Event, ShowPage, SideChanged, TextLine
from firmware_bridge.sides import Side
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.inproc import Mock
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, worn

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


def wearing(out: Path) -> AbstractAsyncContextManager[Wearing]:
    return worn("sim:even_g1", out, Wearing, speed=30)


@pytest.mark.requirement("I4-sim-g1")
async def test_a_page_is_drawn_left_first_then_right_alike(tmp_path: Path) -> None:
    async with wearing(tmp_path) as pair:
        await pair.show("Good morning, Ada")
        drawn = [e for e in pair.ear.events if e["event"] == "lens" and e["lines"]]
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
    async with wearing(tmp_path) as pair:
        await pair.show("before")
        await pair.inject(f"away:3600:{gone}")  # until it is called back
        await pair.side(gone, up=False)
        await pair.show("meanwhile")
        assert (pair.lines(other), pair.lines(gone)) == (["meanwhile"], ["before"])
        pair.mock.servers[gone].come_back()
        await pair.side(gone, up=True)
        await pair.ear.wait("lens", where=lambda e: e["same"] and e["lines"] == ["meanwhile"])


async def test_what_is_cut_in_the_middle_is_whole_after_the_reconnect(tmp_path: Path) -> None:
    async with wearing(tmp_path) as pair:
        await pair.inject("cut:right")
        long = "a long line of words " * 15
        await pair.show(long)
        await pair.side(R, up=False)
        await pair.side(R, up=True)
        await pair.ear.wait("lens", where=lambda e: e["same"] and e["lines"] == [long])


async def test_lost_acknowledgements_of_one_arm_cost_time_and_no_page(tmp_path: Path) -> None:
    async with wearing(tmp_path) as pair:
        await pair.inject("lose-acks:2:right")
        for number in range(3):
            await pair.show(f"page {number}")
        assert (pair.lines(L), pair.lines(R)) == (["page 2"], ["page 2"])


async def test_an_arm_that_refuses_everything_keeps_the_link(tmp_path: Path) -> None:
    async with wearing(tmp_path) as pair:
        await pair.inject("refuse:1")
        with pytest.raises(BridgeError):
            await pair.show("no")
        await pair.inject("refuse:0")
        await pair.show("yes")
        assert pair.lines(L) == pair.lines(R) == ["yes"]


async def test_one_arm_at_the_smallest_mtu_shows_what_the_other_shows(tmp_path: Path) -> None:
    async with wearing(tmp_path) as pair:
        await pair.inject("mtu:23:left")
        await pair.side(L, up=False)
        await pair.side(L, up=True)
        await pair.show("in many small pieces, one by one")
        assert pair.lines(L) == pair.lines(R) == ["in many small pieces, one by one"]
