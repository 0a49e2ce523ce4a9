"""The answer of a call that a tool made and that was pending: it is given to that tool."""

import asyncio

import pytest

from edge.calls import delivery
from edge.ports import CallResult
from edge.runtime.events import CallCompleted
from edge.storage.sqlite.errors import StorageUnavailable
from tests.unit.calls.orchestrator_house import FakeUplink, house, make
from tools_cache.api.tool import ErrorCode, ToolResponse

NO = ToolResponse.failure(ErrorCode.INVALID_ARGUMENTS, "nobody is there")


class LateAnswers:
    """What tools were given; the first `faults` times it fails."""

    def __init__(self, *faults):
        self.taken, self.faults, self.stored = [], list(faults), []
        self.house = None

    async def __call__(self, tool, call, answer):
        self.taken.append((tool.name, call.call_id, answer.ok))
        if self.house is not None:
            self.stored.append((await self.house.store.get(call.call_id))["response"])
        if self.faults:
            raise self.faults.pop(0)


def by_notes(**more):
    """A call that the tool `notes:add` makes of a tool that waits for the network."""
    return make("mail:send", {"text": "hi"}, **{"depth": 1, "through": "notes:add", **more})


async def test_a_tool_gets_the_answer_of_its_call_that_waited_before_it_is_stored(tmp_path):
    late, call = LateAnswers(), by_notes()
    async with house(tmp_path, late=late) as h:
        late.house, h.uplink.up = h, False
        assert (await h.orchestrator.call(call)).data["status"] == "pending"
        assert late.taken == []
        h.uplink.say(CallResult(call.call_id, NO))
        await h.happened(CallCompleted)
        assert late.taken == [("notes:add", call.call_id, False)]
        assert late.stored == [None]
        assert [message.call_id for message in h.uplink.done] == [call.call_id]


@pytest.mark.parametrize("more", [{"depth": 0, "through": ""}, {"through": "gone:tool"}])
async def test_an_answer_that_no_tool_here_waits_for_is_given_to_none(tmp_path, more):
    late, call = LateAnswers(), by_notes(**more)
    async with house(tmp_path, late=late) as h:
        h.uplink.up = False
        await h.orchestrator.call(call)
        h.uplink.say(CallResult(call.call_id, NO))
        await h.happened(CallCompleted)
    assert late.taken == []


async def test_an_answer_that_came_at_once_is_not_given_again(tmp_path):
    late, uplink = LateAnswers(), FakeUplink()
    uplink.worker = lambda call: uplink.say(CallResult(call.call_id, NO))
    async with house(tmp_path, late=late, uplink=uplink) as h:
        assert (await h.orchestrator.call(by_notes())).error.code is ErrorCode.INVALID_ARGUMENTS
    assert late.taken == []


async def test_the_next_daemon_gives_a_late_answer_to_the_tool(tmp_path):
    late, call = LateAnswers(), by_notes()
    async with house(tmp_path) as h:
        h.uplink.up = False
        await h.orchestrator.call(call)
    async with house(tmp_path, late=late) as h:
        h.uplink.say(CallResult(call.call_id, NO))
        await h.happened(CallCompleted)
    assert late.taken == [("notes:add", call.call_id, False)]


async def test_an_answer_that_a_full_disk_kept_from_the_tool_is_given_again(tmp_path, monkeypatch):
    monkeypatch.setattr(delivery, "_DISK_AGAIN_S", 0.01)
    late, call = LateAnswers(StorageUnavailable("full"), StorageUnavailable("full")), by_notes()
    async with house(tmp_path, late=late) as h:
        late.house, h.uplink.up = h, False
        await h.orchestrator.call(call)
        h.uplink.say(CallResult(call.call_id, NO))
        await h.happened(CallCompleted)
    assert len(late.taken) == 3
    assert late.stored == [None] * 3


async def test_a_fault_of_the_tool_keeps_no_answer_from_the_disk(tmp_path):
    late, call = LateAnswers(ValueError("a bug")), by_notes()
    async with house(tmp_path, late=late) as h:
        h.uplink.up = False
        await h.orchestrator.call(call)
        h.uplink.say(CallResult(call.call_id, NO))
        await h.happened(CallCompleted)
        async with asyncio.timeout(20):
            stored = await h.store.get(call.call_id)
        assert stored["response"]["error"]["code"] == "INVALID_ARGUMENTS"
    assert len(late.taken) == 1
