"""The small rules: life of a call, ids, routes, keys, sessions."""

import itertools
import uuid
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from edge.core import idempotency, policy, turns
from edge.core.call_state import (
    ANSWERED_STATES,
    RECOVERY,
    STEPS,
    CallState,
    Recovery,
    UnlistedStep,
    check,
    diagram,
)
from edge.core.rate_limit import MAX_SLICES, RateLimits
from edge.core.routing import Circumstances, RouteKind, choose
from edge.core.session import IDLE_S, MAX_TURNS, NoEffect, SessionController, Spent, TurnLedger
from edge.core.turns import Turn
from edge.runtime.ids import new_call_id
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Mode,
    RateLimit,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)

# ------------------------------------------------------------------ life of a call


def test_the_way_of_a_good_call_is_listed_from_end_to_end() -> None:
    way = ["RECEIVED", "ADMITTED", "RUNNING", "ANSWERED", "DELIVERED"]
    for before, after in itertools.pairwise(way):
        check(before, after)
    check("ADMITTED", "PENDING")
    check("PENDING", "EXPIRED")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DELIVERED", "RUNNING"),
        ("ANSWERED", "RUNNING"),
        ("RECEIVED", "ANSWERED"),
        ("RUNNING", "ADMITTED"),
        ("EXPIRED", "DELIVERED"),
        ("PENDING", "ADMITTED"),
        ("NOWHERE", "RUNNING"),
        ("RUNNING", "nowhere"),
    ],
)
def test_an_unlisted_step_raises(before: str, after: str) -> None:
    with pytest.raises(UnlistedStep, match=after):
        check(before, after)


def test_every_state_can_be_reached_and_no_answered_call_goes_back() -> None:
    assert set(STEPS) == set(CallState)
    assert {target for targets in STEPS.values() for target in targets} == set(CallState) - {
        CallState.RECEIVED
    }
    for state in ANSWERED_STATES:
        assert STEPS[state] <= ANSWERED_STATES


def test_the_diagram_shows_every_step() -> None:
    drawn = diagram()
    assert drawn.startswith("stateDiagram-v2")
    assert all(f"    {a} --> {b}\n" in drawn for a, targets in STEPS.items() for b in targets)


# ------------------------------------------------------------------ ids


@pytest.mark.requirement("K3-ids")
def test_a_call_id_is_a_uuid7_stamped_with_the_wall_clock() -> None:
    made = uuid.UUID(new_call_id(1_700_000_000.123, random_bits=lambda n: (1 << n) - 1))
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == 1_700_000_000_123


def test_call_ids_sort_by_age_and_do_not_repeat() -> None:
    old, new = (new_call_id(t) for t in (1.7e9, 1.7e9 + 0.001))
    assert old < new
    assert len({new_call_id(1.7e9) for _ in range(200)}) == 200


# ------------------------------------------------------------------ routes


def tool(source: Source, **more) -> ToolDefinition:
    return ToolDefinition(name="a:b", description="", input_schema={}, source=source, **more)


def world(**more) -> Circumstances:
    return Circumstances(
        **{
            "origin": CallOrigin.CLI,
            "glasses_ready": True,
            "uplink_configured": True,
            "uplink_up": True,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("definition", "now", "kind", "code"),
    [
        (tool(Source.LOCAL), world(uplink_up=False, glasses_ready=False), RouteKind.LOCAL, None),
        (tool(Source.GLASSES), world(), RouteKind.GLASSES, None),
        (
            tool(Source.GLASSES),
            world(glasses_ready=False),
            RouteKind.FALLBACK,
            ErrorCode.SESSION_INACTIVE,
        ),
        (
            tool(Source.GLASSES, side_effects=SideEffects.READ_ONLY),
            world(glasses_ready=False),
            RouteKind.GLASSES,
            None,
        ),
        (tool(Source.CLOUD), world(), RouteKind.CLOUD, None),
        (tool(Source.CLOUD), world(uplink_up=False), RouteKind.FALLBACK, ErrorCode.OFFLINE),
        (tool(Source.CLOUD, queueable=True), world(uplink_up=False), RouteKind.QUEUE, None),
        (
            tool(Source.CLOUD, queueable=True),
            world(uplink_up=False, uplink_configured=False),
            RouteKind.FALLBACK,
            ErrorCode.OFFLINE,
        ),
        (
            tool(Source.CLOUD),
            world(origin=CallOrigin.CLOUD),
            RouteKind.FALLBACK,
            ErrorCode.UNSUPPORTED,
        ),
        (
            tool(Source.UPSTREAM),
            world(uplink_up=False, glasses_ready=False),
            RouteKind.UPSTREAM,
            None,
        ),
        (
            tool(Source.UPSTREAM),
            world(origin=CallOrigin.CLOUD),
            RouteKind.FALLBACK,
            ErrorCode.UNSUPPORTED,
        ),
        (tool(Source.LOCAL), world(time_left_s=0), RouteKind.FALLBACK, ErrorCode.DEADLINE_EXPIRED),
    ],
)
def test_a_call_goes_where_it_can_be_served_and_the_decision_has_a_reason(
    definition, now, kind, code
) -> None:
    route = choose(definition, now)
    assert (route.kind, route.code) == (kind, code)
    assert route.reason


# ------------------------------------------------------------------ keys


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("call_abc123", "provider:call_abc123"),
        ("12345678", None),
        ("123456789", "provider:123456789"),
        ("temp_123456789", None),
        ("x-temp-123456", None),
        ("", None),
    ],
)
def test_only_a_stable_provider_id_is_a_key(given: str, key: str | None) -> None:
    assert idempotency.provider_key(given) == key


def test_the_same_question_in_the_same_turn_has_one_key_and_another_turn_another() -> None:
    one = idempotency.hash_key("s", "t1", "a:b", {"x": 1, "y": [2]})
    assert one == idempotency.hash_key("s", "t1", "a:b", {"y": [2], "x": 1})
    others = {
        idempotency.hash_key(*k)
        for k in [
            ("s", "t2", "a:b", {"x": 1}),
            ("r", "t1", "a:b", {"x": 1}),
            ("s", "t1", "a:c", {"x": 1}),
            ("s", "t1", "a:b", {}),
        ]
    }
    assert len(others) == 4
    assert one.startswith("hash:s:t1:")
    assert len(one.split(":")[-1]) == 16


def test_the_same_call_with_other_answers_to_its_tool_has_other_keys() -> None:
    call = ToolCall(
        call_id="c",
        tool="a:b",
        args={},
        origin=CallOrigin.CLI,
        turn_id="t",
        idempotency_key="k",
        provider_call_id="call_12345678",
    )
    keys = [
        idempotency.keys_of(replace(call, input=answers), "e")
        for answers in (None, {"x": 1}, {"x": 2}, {"x": 1})
    ]
    assert keys[1] == keys[3]
    assert len({key for some in keys for key in some}) == 3 * 3


@pytest.mark.parametrize(
    ("code", "yes"),
    [
        (ErrorCode.TIMEOUT, False),
        (ErrorCode.RATE_LIMIT, False),
        (ErrorCode.INVALID_ARGUMENTS, False),
        (ErrorCode.CONFIRMATION_REQUIRED, False),
        (ErrorCode.BUDGET_EXCEEDED, False),
        (ErrorCode.MODE_RESTRICTED, False),
        (ErrorCode.INTERNAL, True),
        (ErrorCode.DENIED, True),
        (ErrorCode.AUTH, True),
    ],
)
@pytest.mark.requirement("C-15")
def test_only_final_answers_are_replayed(code: ErrorCode, yes: bool) -> None:
    assert idempotency.replayable(ToolResponse.failure(code, "x")) is yes
    assert idempotency.replayable(ToolResponse(data=1))


# ------------------------------------------------------------------ session and budget


def test_a_call_without_a_turn_is_a_turn_of_its_own_and_old_turns_are_forgotten() -> None:
    ledger, turn = TurnLedger(), ("u", "s", "t")
    ledger.spend(None, retrieval=True)
    assert ledger.spent(None).calls == 0
    ledger.spend(turn, retrieval=True)
    ledger.spend(turn, retrieval=False)
    assert (ledger.spent(turn).calls, ledger.spent(turn).retrievals) == (2, 1)
    assert ledger.spent(("other", "s", "t")).calls == ledger.spent(("u", "other", "t")).calls == 0
    for n in range(MAX_TURNS):
        ledger.spend(("u", "s", f"n{n}"), retrieval=False)
    assert ledger.spent(turn).calls == 0


@pytest.mark.parametrize(
    ("mode", "calls", "retrievals", "refused"),
    [
        (Mode.VOICE, 2, 1, ""),
        (Mode.VOICE, 3, 0, "tool call budget exceeded (max 3 per turn)"),
        (Mode.VOICE, 2, 2, "retrieval budget exceeded (max 2 per turn)"),
        (Mode.TEXT, 9, 9, ""),
    ],
)
def test_a_spoken_turn_has_three_calls_two_of_them_retrievals(
    mode, calls, retrievals, refused
) -> None:
    search = tool(Source.LOCAL, category=policy.RETRIEVAL)
    error = policy.budget_problem(search, mode, Spent(calls, retrievals), policy.VoiceBudget())
    assert (error is None) if not refused else error is not None and refused in error.message


def test_a_session_that_fell_silent_is_not_described_as_going_on() -> None:
    session = SessionController()
    session.begin_voice(100.0)
    assert session.described(100.0 + IDLE_S)["voice_active"]
    assert not session.described(100.1 + IDLE_S)["voice_active"]


def test_intents_move_the_session_and_each_move_names_its_cause() -> None:
    session = SessionController()
    with pytest.raises(NoEffect, match="Cannot end inactive session"):
        session.apply({"type": "END_VOICE_SESSION"}, tool="a:b")
    session.begin_voice()
    before = session.snapshot()
    session.apply({"type": "SUPPRESS_AUDIO", "value": True}, tool="a:b")
    session.apply({"type": "SUPPRESS_TRANSCRIPT", "value": True}, tool="a:b")
    session.apply({"type": "SET_PENDING_MESSAGE", "message": "later"}, tool="a:b")
    after = session.snapshot()
    assert (after.suppress_audio, after.suppress_transcript, after.pending_message) == (
        True,
        True,
        "later",
    )
    assert not before.suppress_audio, "a snapshot is a copy"
    session.apply({"type": "END_VOICE_SESSION", "after": "speech"}, tool="c:d")
    assert (session.snapshot().voice_active, session.snapshot().end_after) == (False, "speech")
    assert [cause for cause, _, _ in session.transitions] == ["voice", "a:b", "a:b", "a:b", "c:d"]
    with pytest.raises(NoEffect, match="Unknown intent type: DANCE"):
        session.apply({"type": "DANCE"}, tool="a:b")


# ------------------------------------------------------------------ previews and confirmation


def test_previews_are_the_contracts_words() -> None:
    def named(name: str, source: Source = Source.LOCAL, **more: Any) -> ToolDefinition:
        return ToolDefinition(name=name, description="", input_schema={}, source=source, **more)

    attendees = {"attendees": [1, 2]}
    assert (
        policy.preview(named("calendar:create_event"), attendees)
        == "Create calendar event with 2 attendees"
    )
    assert (
        policy.preview(named("calendar:create_event", Source.CLOUD), attendees)
        == "Execute calendar:create_event"
    )
    assert (
        policy.preview(named("calendar:create_event", own=True), attendees)
        == "Execute calendar:create_event"
    )
    assert (
        policy.preview(named("g:calendar_create_event"), attendees)
        == "Execute g:calendar_create_event"
    )
    assert (
        policy.preview(named("g:image_generate"), {"prompt": "a cat"}) == "Execute g:image_generate"
    )
    assert policy.preview(named("g:other"), {}) == "Execute g:other"


@pytest.mark.parametrize(
    ("asks", "effects", "yes"),
    [
        ("always", SideEffects.NONE, True),
        ("never", SideEffects.WRITES, False),
        ("policy", SideEffects.WRITES, True),
        ("policy", SideEffects.READ_ONLY, False),
    ],
)
@pytest.mark.requirement("C-20")
def test_confirmation_is_asked_always_never_or_for_what_writes(
    asks: str, effects: SideEffects, yes: bool
) -> None:
    assert (
        policy.needs_confirmation(
            tool(Source.LOCAL, requires_confirmation=asks, side_effects=effects)
        )
        is yes
    )


# ------------------------------------------------------------------ durable calls


def test_every_way_a_call_can_be_left_has_a_rule_and_only_what_may_run_twice_does() -> None:
    open_states = set(CallState) - ANSWERED_STATES - {CallState.RECEIVED}
    assert {(left.state, left.elsewhere, left.repeatable) for left in RECOVERY} == {
        (state, elsewhere, repeatable)
        for state in open_states
        for elsewhere in (True, False)
        for repeatable in (True, False)
    }
    begun = {
        left: rule
        for left, rule in RECOVERY.items()
        if left.state in (CallState.RUNNING, CallState.PENDING)
    }
    assert {left.repeatable for left, rule in begun.items() if rule is Recovery.AGAIN} == {True}
    assert all(
        rule in (Recovery.WAIT, Recovery.END) for left, rule in begun.items() if not left.repeatable
    )
    assert all(
        rule is Recovery.ASK
        for left, rule in RECOVERY.items()
        if left.state is CallState.AWAITING_CONFIRMATION
    )


def test_a_rate_is_a_sliding_window_that_says_how_long_to_wait() -> None:
    limits, rate = RateLimits(), RateLimit(2, 10.0)
    assert [limits.take("u", "t:t", rate, at) for at in (100.0, 104.0, 105.0)] == [0.0, 0.0, 5.0]
    assert limits.take("u", "t:t", rate, 109.0) == pytest.approx(1.0)
    assert limits.take("u", "t:t", rate, 110.0) == 0.0, "the call at 100.0 has left the window"
    assert limits.take("u", "t:t", rate, 110.0) == pytest.approx(4.0), (
        "the next to leave is the call at 104.0"
    )
    assert limits.take("u", "other:t", rate, 110.0) == 0.0
    assert limits.take("v", "t:t", rate, 110.0) == 0.0
    assert limits.take("u", "t:t", rate, 50.0) > 0, "a clock that seems to go back frees nothing"


@pytest.mark.requirement("I12-sliding-rate")
def test_ten_calls_in_a_minute_are_ten_however_they_are_spread() -> None:
    limits, rate = RateLimits(), RateLimit(10, 60.0)
    let_through = [at for at in range(60) if limits.take("u", "t:t", rate, 100.0 + at) == 0.0]
    assert let_through == list(range(10))
    assert limits.take("u", "t:t", rate, 159.999) == pytest.approx(0.001)
    assert limits.take("u", "t:t", rate, 160.0) == 0.0


@given(
    st.integers(1, 6) | st.integers(129, 140),
    st.lists(st.sampled_from([0.0, 0.1, 1.0, 7.0, 20.0]), min_size=1, max_size=400),
)
@pytest.mark.requirement("I12-sliding-rate")
def test_no_window_ever_holds_more_calls_than_its_limit(calls: int, pauses: list[float]) -> None:
    limits, rate, now, taken = RateLimits(), RateLimit(calls, 60.0), 1000.0, []
    for pause in pauses:
        now += pause
        wait_s = limits.take("u", "t:t", rate, now)
        assert wait_s >= 0.0
        if wait_s == 0.0:
            taken.append(now)
    assert all(
        later - earlier > 59.999 for earlier, later in zip(taken, taken[calls:], strict=False)
    )


@pytest.mark.requirement("I12-sliding-rate")
def test_a_large_rate_is_held_in_little_memory_and_after_its_wait_there_is_a_place() -> None:
    limits, rate = RateLimits(), RateLimit(100_000, 60.0)
    taken = [
        at
        for n in range(250_000)
        if limits.take("u", "t:t", rate, at := 1000.0 + n * 0.0003) == 0.0
    ]
    assert all(
        later - earlier > 59.999 for earlier, later in zip(taken, taken[100_000:], strict=False)
    )
    assert len(taken) > 100_000 + 20_000, (
        "what is merged is held at most a slice of the window longer"
    )
    assert limits.size() <= MAX_SLICES + 1
    wait_s = limits.take("u", "t:t", RateLimit(1, 60.0), taken[-1])
    assert limits.take("u", "t:t", RateLimit(1, 60.0), taken[-1] + wait_s) == 0.0, (
        "a lowered limit says when it has a place"
    )


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.integers(-(2**60), 2**60) | st.text(max_size=5) | st.none(),
        max_size=5,
    )
)
def test_equal_arguments_give_one_key_whatever_their_order_and_size(args: dict) -> None:
    turned = dict(reversed(args.items()))
    assert idempotency.digest(args) == idempotency.digest(turned)
    assert idempotency.digest({**args, "more": 1}) != idempotency.digest(args)


def test_the_canonical_form_is_rfc_8785() -> None:
    assert (
        idempotency.canonical({"b": 1.0, "a": "é", "c": [1e21, True]})
        == '{"a":"é","b":1,"c":[1e+21,true]}'.encode()
    )


def test_keys_that_do_not_fit_the_wire_go_as_their_digest() -> None:
    assert idempotency.on_the_wire("key:short") == "key:short"
    for odd in ("key:" + "x" * 255, "key:two\nlines"):
        assert idempotency.on_the_wire(odd).startswith("sha256:")
        assert len(idempotency.on_the_wire(odd)) == 71


@pytest.mark.parametrize(
    ("later_s", "link", "text", "boot", "same"),
    [
        (1.0, "l2", "take a note", "b", True),
        (1.0, "l1", "take a note", "b", False),
        (1.0, "l2", "another", "b", False),
        (31.0, "l2", "take a note", "b", False),
        (1.0, "l2", "take a note", "b2", False),
    ],
)
def test_only_the_same_words_over_a_newer_connection_soon_after_are_a_repetition(
    later_s, link, text, boot, same
) -> None:
    first = Turn("t1", "take a note", "b", 100.0, "l1")
    assert (
        turns.is_replay(
            turns.last_turn(first.to_json()), Turn("t2", text, boot, 100.0 + later_s, link)
        )
        is same
    )


@pytest.mark.parametrize(
    "kept",
    [
        None,
        5,
        {},
        {"turn_id": "t"},
        {**Turn("t", "x", "b", 1.0, "l").to_json(), "heard_at": "soon"},
    ],
)
def test_a_turn_that_cannot_be_read_is_no_turn(kept) -> None:
    assert turns.last_turn(kept) is None


@pytest.mark.requirement("S2-133")
@pytest.mark.parametrize(
    ("when", "now", "why"),
    [
        ({"glasses": True}, {"glasses_ready": False}, "only while the glasses are connected"),
        ({"uplink": True}, {"uplink_up": False}, "only while the cloud is reachable"),
        ({"worn": True}, {"worn": None}, "only while the glasses are worn"),
        ({"uplink": False}, {"uplink_up": True}, "only while the cloud is away"),
        ({"glasses": True, "worn": True}, {"glasses_ready": True, "worn": True}, None),
        ({}, {}, None),
    ],
)
def test_a_tool_may_declare_when_it_works(when, now, why) -> None:
    tool = ToolDefinition(
        name="a:b", description="", input_schema={}, source=Source.LOCAL, available_when=when
    )
    facts = {"glasses_ready": False, "uplink_configured": True, "uplink_up": False, **now}
    route = choose(tool, Circumstances(CallOrigin.CLI, **facts))
    assert (route.code is ErrorCode.TOOL_UNAVAILABLE) is (why is not None)
    assert why is None or why in route.reason


@pytest.mark.parametrize(("seconds", "left"), [(86_400.0, 86_400.0), (86_401.0, 0.0), (True, 0.0)])
def test_a_quiet_time_is_a_day_at_most(seconds, left):
    session = SessionController()
    quiet = {"type": "SUPPRESS_AUDIO", "value": True, "duration": seconds}
    session.apply(quiet, tool="a:b", now=5.0)
    assert (session.quiet_s(5.0), session.silent(5.0)) == (left, True)
