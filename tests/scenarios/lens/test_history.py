"""Story: a daemon that records its history, found and forgotten through the whole pipeline."""

import asyncio

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.world import world
from tools_cache.api.history import HistoryQuery

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

ON = {"enabled": True, "transcripts": True}


async def test_what_was_shown_is_found_after_a_restart_and_forgotten_after_a_yes(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon(history=ON)
        await place.ready()
        assert (await place.call("glasses:show_text", {"text": "Gate B12 at noon"})).ok
        await until_found(place, "noon", 1)
        await place.stop_daemon()
        await place.start_daemon(history=ON)
        await place.ready()
        found = await place.call("continuum:search", {"query": "GATE"})
        assert found.data["entries"][0]["text"] == "Gate B12 at noon"
        history = [path.read_bytes() for path in (tmp_path / "state").glob("history.db*")]
        assert history
        assert not [content for content in history if b"noon" in content]

        place.start_call("continuum:forget", {"what": "gate"})
        await place.answer_question(Gesture.TAP)
        assert (await place.answer()).data["forgotten"] == 1
        assert (await place.call("continuum:search", {"query": "noon"})).data["total"] == 0


@pytest.mark.requirement("I15-history-off")
async def test_a_daemon_without_a_history_makes_no_file_and_has_no_such_service(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on(speed=8.0)
        daemon = await place.start_daemon()
        await place.ready()
        assert (await place.call("glasses:show_text", {"text": "Gate B12"})).ok
        assert "history" not in {service.name for service in daemon.services}
        found = await place.call("context:recent")
        assert "set enabled = true in [history]" in found.error.message
        assert not list((tmp_path / "state").glob("history*"))


async def until_found(place, word, total):
    """Wait until the recorder, which follows the answers, has stored it."""
    history = place.daemon.tool_services.history("local")
    async with asyncio.timeout(20):
        while (await history.search(HistoryQuery(words=(word,)))).total != total:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("I15-calls-forgotten")
@pytest.mark.parametrize("what", ["quokkaberg", "*"])
async def test_after_forgetting_no_file_of_the_daemon_has_the_words(tmp_path, what):
    state = tmp_path / "state"
    async with world(tmp_path) as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon(history=ON)
        await place.ready()
        assert (await place.call("glasses:show_text", {"text": "Quokkaberg at noon"})).ok
        await until_found(place, "quokkaberg", 1)
        assert (await place.call("continuum:search", {"query": "Quokkaberg"})).data["total"] == 1
        await place.stop_daemon()
        assert {"glassd.db"} <= set(traces(state))
        await place.start_daemon(history=ON)
        await place.ready()
        place.start_call("continuum:forget", {"what": what})
        await place.answer_question(Gesture.TAP)
        done = (await place.answer()).data
        assert done["forgotten"] == 1
        assert done["calls"] == 2
        assert not traces(state)
        recent = await place.call("context:recent")
        assert "uokka" not in str(recent.data)
        await place.stop_daemon()
        assert not traces(state)


def traces(folder):
    """Return the names of the files that have the word, in any case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if b"quokkaberg" in path.read_bytes().lower()]
