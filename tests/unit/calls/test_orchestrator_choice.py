"""What the gate asks of the choice of tools: off, shut, rates and turns; in the order of C-13,
and audited.
"""

import pytest

from edge.calls.dependencies import CallLimits, CallPolicy
from edge.core.tools import selection_rules
from tests.unit.calls.orchestrator_house import house, tool
from tools_cache.api.tool import CallOrigin, ErrorCode, ExecutionType, Mode, RateLimit


class Choice:
    """`SelectionPort` by hand."""

    def __init__(self):
        self.off, self.shut, self.rates, self.turns = {}, {}, {}, []

    def why_not(self, user_id, tool):
        return self.off.get((user_id, tool.name), "") or self.shut.get(tool.name, "")

    def refusal(self, call, tool):
        if why := self.off.get((call.user_id, tool.name)):
            return selection_rules.refused(tool.name, why)
        why = self.shut.get(tool.name)
        return selection_rules.shut(tool.name, why) if why else None

    def rate(self, user_id, tool):
        return self.rates.get((user_id, tool))

    def turn(self, turn_id):
        self.turns.append(turn_id)


@pytest.fixture
def choice():
    return Choice()


@pytest.mark.requirement("S0-69", "S4-23")
async def test_a_tool_off_for_its_user_does_not_run_and_is_audited(tmp_path, choice):
    choice.off["ann", "notes:add"] = "disabled: glassd tools enable notes:add"
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        refused = await h.call("notes:add", {"text": "milk"}, user_id="ann")
        assert (refused.error.code, refused.error.type) == (ErrorCode.USER_DISABLED, "PERMANENT")
        assert (await h.call("notes:add", {"text": "milk"})).ok
        assert [call.user_id for call in h.tools.runs] == ["local"]
        assert [(a["outcome"], a["reason"], a["userId"]) for a in h.audit] == [
            ("refused", "user_disabled", "ann"),
            ("answered", "lives on this edge", "local"),
        ]


@pytest.mark.requirement("S4-20", "C-39")
async def test_a_gate_that_opens_between_two_calls_lets_the_second_run(tmp_path, choice):
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        choice.shut["notes:list"] = "no calendar is configured"
        assert (await h.call("notes:list")).error.code is ErrorCode.TOOL_UNAVAILABLE
        choice.shut.clear()
        assert (await h.call("notes:list")).ok
        choice.shut["notes:list"] = "no calendar is configured"
        assert (
            await h.call("notes:list")
        ).error.message == "Tool notes:list is not available now: no calendar is configured"


async def test_off_is_judged_before_mode_arguments_and_budget(tmp_path, choice):
    choice.off["local", "desk:type"] = choice.off["local", "notes:add"] = "disabled"
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        assert (await h.call("desk:type", mode=Mode.VOICE)).error.code is ErrorCode.USER_DISABLED
        assert (await h.call("notes:add", {"text": 5})).error.code is ErrorCode.USER_DISABLED


@pytest.mark.requirement("S0-69")
async def test_a_users_own_rate_counts_beside_the_others(tmp_path, choice):
    choice.rates["ann", "notes:list"] = RateLimit(1, 60.0)
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        assert (await h.call("notes:list", user_id="ann", turn_id="t1")).ok
        limited = (await h.call("notes:list", user_id="ann", turn_id="t2")).error
        assert (limited.code, 0 < limited.retry_after_ms <= 60_000) == (ErrorCode.RATE_LIMIT, True)
        for turn in ("t1", "t2", "t3"):
            assert (await h.call("notes:list", turn_id=turn)).ok
        assert choice.turns == ["t1", "t2", "t1", "t2", "t3"]


async def test_a_phrase_prefers_a_tool_that_is_switched_on(tmp_path, choice):
    choice.off["local", "notes:list"] = "disabled"
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        h.registry.entries["memo:list"] = type(h.registry.entries["notes:list"])(
            tool("memo:list", activation_phrases=("my notes",)), "app"
        )
        assert (await h.orchestrator.heard("my notes")).meta["tool"] == "memo:list"
        choice.off["local", "memo:list"] = "disabled"
        refused = await h.orchestrator.heard("my notes")
        assert (refused.meta["tool"], refused.error.code) == ("notes:list", ErrorCode.USER_DISABLED)
        assert len(choice.turns) >= 2, "an utterance is a turn"


async def test_another_policy_takes_force_at_the_next_call(tmp_path, choice):
    async with house(tmp_path, policy_=CallPolicy(choice=choice)) as h:
        h.orchestrator.adopt(CallLimits(), CallPolicy(rates={"notes:list": RateLimit(1, 60.0)}))
        assert (await h.call("notes:list")).ok
        assert (await h.call("notes:list")).error.code is ErrorCode.RATE_LIMIT
        choice.off["local", "notes:add"] = "disabled"
        assert (await h.call("notes:add", {"text": "x"})).error.code is ErrorCode.USER_DISABLED, (
            "the choice stays"
        )
        h.orchestrator.adopt(CallLimits(), CallPolicy(enabled=False))
        assert (await h.call("find:one")).error.code is ErrorCode.DENIED


@pytest.mark.requirement("S3-05")
async def test_calls_through_invoke_are_shown_and_calls_of_other_tools_are_not(
    tmp_path,
):
    async with house(tmp_path) as h:
        h.registry.entries["registry:invoke"] = type(h.registry.entries["notes:list"])(
            tool("registry:invoke", execution_type=ExecutionType.INTERNAL, visible=True), "app"
        )
        assert (await h.call("registry:invoke")).meta["delivery"] == "none"
        assert (
            await h.call("notes:list", depth=1, through="registry:invoke", origin=CallOrigin.MCP)
        ).meta["delivery"] == "shown"
        assert (await h.call("notes:list", depth=1, through="notes:add")).meta["delivery"] == "none"
        assert h.glasses.texts() == ["did notes:list"]
