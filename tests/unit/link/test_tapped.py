"""Who records the link is shown all of a connection from its beginning, and nobody else is."""

import asyncio

import pytest

from edge.ports import TapTaken
from firmware_bridge.driver import Passing
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import GlassesInfo, Hello
from firmware_bridge.own_commands import JoinWifi
from tests.unit.link.test_manager import PAGE, Story


class Shown(list):
    def __call__(self, now, passing, value):
        self.append((passing, value))

    def of(self, passing):
        return [value for each, value in self if each is passing]


async def test_a_recording_begins_with_a_new_connection(tmp_path):
    shown = Shown()
    async with asyncio.timeout(40), Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        assert len(story.finder.ends) == 1
        async with story.manager.tapped(shown, reconnect=True):
            await story.until("glasses.ready")
            await story.manager.request(PAGE, timeout_s=20)
        before = len(shown)
        await story.manager.request(PAGE, timeout_s=20)
    assert len(story.finder.ends) == 2
    assert shown[0][0] is Passing.CONNECTED
    assert isinstance(shown.of(Passing.COMMAND)[0][0], Hello)
    assert PAGE in [command for command, _ in shown.of(Passing.COMMAND)]
    assert isinstance(shown.of(Passing.MESSAGE)[0].message, GlassesInfo)
    assert shown.of(Passing.OUT)
    assert shown.of(Passing.IN)
    assert len(shown) == before


async def test_without_a_new_connection_what_passes_from_now_on_is_shown(tmp_path):
    shown = Shown()
    async with asyncio.timeout(40), Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        async with story.manager.tapped(shown, reconnect=False):
            await story.manager.request(PAGE, timeout_s=20)
    assert len(story.finder.ends) == 1
    assert [command for command, _ in shown.of(Passing.COMMAND)] == [PAGE]
    assert not shown.of(Passing.CONNECTED)


async def test_only_one_records_at_a_time(tmp_path):
    async with asyncio.timeout(40), Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        async with story.manager.tapped(Shown(), reconnect=False):
            with pytest.raises(TapTaken):
                async with story.manager.tapped(Shown(), reconnect=False):
                    pass
        async with story.manager.tapped(Shown(), reconnect=False):
            pass


async def test_a_secret_is_not_sent_while_packets_are_recorded(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        shown = Shown()
        async with story.manager.tapped(shown, reconnect=False):
            with pytest.raises(CommandRefused, match="packets are recorded"):
                await story.manager.request(JoinWifi("Home", "hunter22"))
        assert len(story.finder.ends) == 1
        with pytest.raises(CommandRefused, match="unsupported"):
            await story.manager.request(JoinWifi("Home", "hunter22"))
        async with story.manager.tapped(shown, reconnect=False):
            assert shown.of(Passing.CONNECTED) or await story.until("glasses.ready")
        assert len(story.finder.ends) == 2, "a repetition of it is not recorded either"
