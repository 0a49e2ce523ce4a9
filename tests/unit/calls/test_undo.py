"""Taking a call back: offered only where it can be, run once with exactly what was offered."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.calls.undo import MAX_OFFERS
from edge.core.grants import Grant, Granted
from edge.core.tools.snapshot import Entry
from edge.runtime.events import CallAnswered, CallReceived, OfferTaken
from firmware_bridge.messages import Answer
from tests.unit.calls.orchestrator_house import FakeRegistry, house, make, tool
from tools_cache.api.tool import CallOrigin, ErrorCode, Source, ToolResponse
from tools_cache.api.wearer import Undo, WearerTexts

ARGS = {"id": "{{data.id}}", "why": "undo of {{input.text}}"}
SCHEMA = {"type": "object", "properties": {}}


def tools(undo="desk:back", source=Source.LOCAL, args=ARGS, **more):
    wearer = WearerTexts(undo=Undo(undo, args))
    registry = FakeRegistry()
    for made in (
        tool("desk:do", source, wearer=wearer),
        tool("desk:back", schema=SCHEMA, requires_confirmation="always", **more),
        tool("other:back", schema=SCHEMA),
    ):
        registry.entries[made.name] = Entry(made, "Desk")
    return registry


async def done(call, _progress):
    return ToolResponse(data={"id": 7, "text": f"did {call.tool}"})


async def do(h, call_id="c1", **more):
    h.tools.handler = done
    answer = await h.call("desk:do", {"text": "tea"}, call_id=call_id, **more)
    assert answer.ok


def undone(h):
    return [call for call in h.tools.runs if call.tool != "desk:do"]


async def tapped(h, call_id="c1"):
    h.bus.publish(OfferTaken(call_id))
    await asyncio.sleep(0)


@pytest.mark.requirement("I13-undo")
async def test_a_tap_runs_the_tool_once_with_the_arguments_that_were_offered(tmp_path):
    async with house(tmp_path, registry=tools()) as h:
        await do(h)
        assert h.stage.lens()["lines"] == ["did desk:do", "tap to undo"]
        await tapped(h)
        await tapped(h)
        await h.happened(CallAnswered, lambda e: e.tool == "desk:back")
        assert h.orchestrator._undos.take("c1") is None
        (call,) = undone(h)
        assert (call.tool, call.origin, call.idempotency_key, call.depth) == (
            "desk:back",
            CallOrigin.GLASSES,
            "undo:c1",
            0,
        )
        assert call.args["id"] == 7, "a number stays a number"
        assert call.args["why"] == "undo of tea"
        assert not h.wearer.asked, "the tap was the yes"
        assert len([e for e in h.heard if isinstance(e, CallReceived)]) == 2


async def test_an_undo_that_cannot_begin_is_said(tmp_path, monkeypatch):
    async with house(tmp_path, registry=tools()) as h:
        await do(h)
        monkeypatch.setattr(h.orchestrator._queue, "full", lambda _call: True)
        await tapped(h)
        async with asyncio.timeout(40):
            while "Not undone." not in " ".join(h.glasses.texts()):
                await asyncio.sleep(0.01)
        assert not undone(h)


@pytest.mark.requirement("I13-undo")
@pytest.mark.parametrize(
    "registry",
    [
        tools("other:back"),
        tools("desk:none"),
        tools("desk:do"),
        tools(source=Source.CLOUD),
        tools(own=True),
        tools(args={"id": "{{data.number}}"}),
        tools(args={"id": "{{input.who}}"}),
    ],
    ids="package missing itself source own no-data no-input".split(),
)
async def test_nothing_is_offered_that_could_not_be_taken_back(tmp_path, registry):
    async with house(tmp_path, registry=registry) as h:
        undos = h.orchestrator._undos
        call = h.orchestrator._new_call(make("desk:do", {"text": "tea"}, call_id="c1"))
        call.tool = registry.entries["desk:do"].definition
        assert undos.offer(call, ToolResponse(data={"id": 7})) is None
        assert undos.take("c1") is None


@pytest.mark.requirement("I13-undo")
async def test_a_failure_or_a_hidden_tool_offers_nothing(tmp_path):
    registry = tools(args={})
    async with house(tmp_path, registry=registry) as h:
        undos = h.orchestrator._undos
        call = h.orchestrator._new_call(make("desk:do", {"text": "tea"}, call_id="c1"))
        call.tool = registry.entries["desk:do"].definition
        assert undos.offer(call, ToolResponse.failure(ErrorCode.TIMEOUT, "slow")) is None
        registry.hide("desk:back", "disabled in the configuration")
        assert undos.offer(call, ToolResponse(data={"id": 7})) is None


@pytest.mark.requirement("I13-undo")
async def test_a_tool_that_changed_since_the_offer_is_asked_about(tmp_path):
    registry = tools()
    async with house(tmp_path, registry=registry) as h:
        await do(h)
        now = registry.entries["desk:back"]
        changed = replace(now.definition, description="Does something else.")
        registry.entries["desk:back"] = replace(now, definition=changed)
        await tapped(h)
        question = await h.wearer.question()
        assert question.text.startswith("Desk: Back?")
        assert not undone(h)
        h.wearer.say(Answer.DENY)


@pytest.mark.requirement("I13-undo")
async def test_a_never_holds_and_the_wearer_reads_that_the_call_stands(tmp_path):
    async with house(tmp_path, registry=tools()) as h:
        await do(h)
        await h.confirmations.grant("local", "desk:back", Granted(Grant.NEVER, "", "this device"))
        await tapped(h)
        await h.happened(CallAnswered, lambda e: e.tool == "desk:back")
        assert not undone(h)
        assert h.stage.lens()["lines"][0].startswith("Not undone. ")


@pytest.mark.requirement("I13-undo")
@pytest.mark.parametrize(
    ("perhaps", "says"), [(False, "Not undone."), (True, "Perhaps not undone")]
)
async def test_a_failed_undo_is_said_honestly(tmp_path, perhaps, says):
    async with house(tmp_path, registry=tools()) as h:
        await do(h)

        async def fails(_call, _progress):
            return ToolResponse.failure(
                ErrorCode.NETWORK_ERROR, "refused", partial_side_effects=perhaps
            )

        h.tools.handler = fails
        await tapped(h)
        await h.happened(CallAnswered, lambda e: e.tool == "desk:back")
        assert h.stage.lens()["lines"][0].startswith(says)


@pytest.mark.requirement("I13-undo")
async def test_a_call_of_somebody_else_with_that_key_or_id_is_asked_about(tmp_path):
    """Only the tap is a yes: nothing that a caller may send is one."""
    async with house(tmp_path, registry=tools()) as h:
        await do(h)
        for more in ({"origin": CallOrigin.GLASSES}, {"idempotency_key": "undo:c1"}):
            answer = await h.orchestrator.begin(make("desk:back", {"id": 7}, **more))
            assert answer.error.code is ErrorCode.CONFIRMATION_REQUIRED
        assert not undone(h)


@pytest.mark.requirement("I13-undo")
async def test_only_so_many_offers_are_remembered(tmp_path):
    registry = tools()
    async with house(tmp_path, registry=registry) as h:
        undos = h.orchestrator._undos
        for n in range(MAX_OFFERS + 1):
            call = h.orchestrator._new_call(make("desk:do", {"text": "tea"}, call_id=f"c{n}"))
            call.tool = registry.entries["desk:do"].definition
            assert undos.offer(call, ToolResponse(data={"id": n})) is not None
        assert undos.take("c0") is None
        assert undos.take(f"c{MAX_OFFERS}")[0].args["id"] == MAX_OFFERS
