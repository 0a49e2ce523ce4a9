"""How calls travel: local, cloud, queue, fallback; late, twice, called off, and over a restart."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace

from edge.calls import backends
from edge.cloud.mqtt.wire import BodyTooLarge
from edge.core.tools.snapshot import Entry
from edge.ports import (
    Alongside,
    CallAccepted,
    CallProgress,
    CallResult,
    InvokeCancelled,
    Invoked,
    RegistryNotice,
    UplinkTooLarge,
    Wait,
)
from edge.runtime.events import (
    CallAnswered,
    CallCompleted,
    CallProgressed,
    DeliveryChanged,
    GlassesSaid,
)
from edge.storage.sqlite.database import DiskUnavailable
from edge.storage.sqlite.errors import UplinkBusy
from firmware_bridge.messages import Transcript
from tests.unit.calls.orchestrator_house import (
    QUICK,
    FakeRegistry,
    FakeTools,
    FakeUplink,
    House,
    house,
    make,
    tool,
)
from tests.unit.display.fakes import AUDIO, FULL
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    DeliveryReport,
    ErrorCode,
    ErrorType,
    Mode,
    Source,
    ToolCall,
    ToolResponse,
)


def worker(h: House, data: Any = "from the cloud", **meta: Any) -> None:
    def serve(call: ToolCall) -> None:
        h.uplink.say(CallAccepted(call.call_id))
        h.uplink.say(CallProgress(call.call_id, "half way"))
        h.uplink.say(CallResult(call.call_id, ToolResponse(data=data, meta=meta)))

    h.uplink.worker = serve


def accepter(h: House) -> None:
    h.uplink.worker = lambda call: h.uplink.say(CallAccepted(call.call_id))


async def test_a_cloud_call_is_accepted_says_its_progress_and_is_shown(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        said: list[str] = []

        async def progress(text: str) -> None:
            said.append(text)

        worker(h, activatedForTool=True, tool="forged:name")
        answer = await h.call("shop:buy", progress=progress)
        assert answer.data == "from the cloud"
        assert (answer.meta["route"], answer.meta["delivery"], answer.meta["tool"]) == (
            "cloud",
            "shown",
            "shop:buy",
        )
        assert answer.meta["activatedForTool"] is True
        assert said == ["half way"]
        assert (await h.happened(CallProgressed)).text == "half way"
        assert h.uplink.deliveries == [(answer.meta["callId"], DeliveryReport(Delivery.SHOWN))]
        assert [type(m).__name__ for m in h.uplink.done] == [
            "CallAccepted",
            "CallProgress",
            "CallResult",
        ]


@pytest.mark.requirement("I13-call-progress")
async def test_a_call_that_is_only_begun_says_its_progress_too(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        said: list[str] = []

        async def progress(text: str) -> None:
            said.append(text)

        worker(h)
        assert await h.orchestrator.begin(make("shop:buy"), progress=progress) is None
        await h.happened(CallAnswered)
        assert said == ["half way"]


@pytest.mark.requirement("K4-not-accepted")
async def test_nobody_accepting_is_said_to_the_wearer_and_the_call_is_withdrawn(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("shop:buy")
        assert answer.error.code is ErrorCode.NOT_ACCEPTED
        assert answer.error.type is ErrorType.TRANSIENT
        assert answer.error.retryable
        assert not answer.error.partial_side_effects
        assert answer.meta["route"] == "fallback"
        assert h.uplink.withdrawn[0][0] == answer.meta["callId"]
        assert h.glasses.texts()[-1] == "App did not answer. Try again in a moment."
        assert answer.meta["delivery"] == "shown"


async def test_an_accepted_call_that_runs_too_long_reports_possible_side_effects(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        accepter(h)
        answer, harmless = await asyncio.gather(h.call("shop:buy"), h.call("shop:look"))
        assert answer.error.code is ErrorCode.TIMEOUT
        assert answer.error.message == "Tool execution timeout after 400ms"
        assert answer.error.partial_side_effects
        assert not harmless.error.partial_side_effects
        assert {i for i, _ in h.uplink.withdrawn} == {
            answer.meta["callId"],
            harmless.meta["callId"],
        }
        assert (await h.store.get(answer.meta["callId"]))["state"] == "EXPIRED"


@pytest.mark.requirement("I13-accept-held-up")
@pytest.mark.parametrize("tool", ["shop:buy", "mail:send"])
async def test_a_worker_that_accepts_while_the_daemon_is_held_up_has_accepted_in_time(
    tmp_path: Path, tool: str
) -> None:
    """A slow disk, a suspended machine: what arrived meanwhile is read after the time is over."""
    limits = replace(QUICK, accept_s=0.4, run_s=30.0, life_s=60.0)
    async with house(tmp_path, limits=limits) as h:
        loop = asyncio.get_running_loop()
        worker(h)
        serve = h.uplink.worker

        def hold_up(call: ToolCall) -> None:
            time.sleep(0.8)
            loop.call_later(0.05, serve, call)

        h.uplink.worker = lambda call: loop.call_later(0.1, hold_up, call)
        answer = await h.call(tool)
        assert (answer.data, answer.meta["route"]) == ("from the cloud", "cloud")
        assert h.uplink.withdrawn == []


@pytest.mark.requirement("I13-accept-held-up")
async def test_a_daemon_that_is_always_late_waits_once_more_for_an_acceptance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_HELD_UP_S", -1.0)
    async with house(tmp_path, limits=replace(QUICK, run_s=20.0, life_s=40.0)) as h:
        assert (await h.call("shop:buy")).error.code is ErrorCode.NOT_ACCEPTED


async def test_progress_extends_the_run_time_up_to_the_calls_life(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, limits=replace(QUICK, accept_s=20.0, run_s=1.2, life_s=1.8)) as h:
        accepter(h)
        async with asyncio.TaskGroup() as tg:
            began = asyncio.get_running_loop().time()
            task = tg.create_task(h.call("shop:buy"))
            while not task.done():
                await asyncio.sleep(0.05)
                if h.uplink.submitted:
                    h.uplink.say(CallProgress(h.uplink.submitted[0].call_id, "still starting"))
            took = asyncio.get_running_loop().time() - began
        assert task.result().error.code is ErrorCode.TIMEOUT
        assert 1.7 <= took <= 15


@pytest.mark.requirement("K4-fallback", "S2-75")
async def test_a_call_that_cannot_wait_fails_at_once_with_the_uplink_down(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.uplink.up = False
        answer = await h.call("shop:buy")
        assert answer.error.code is ErrorCode.OFFLINE
        assert answer.error.retryable
        assert answer.meta["route"] == "fallback"
        assert answer.meta["delivery"] == "shown"
        assert h.glasses.texts()[0] == "No internet. App needs it."
        assert not h.uplink.submitted
        assert (await h.call("notes:list")).ok, "local tools do not care"


async def test_a_fallback_does_not_wait_for_glasses_that_do_not_answer(tmp_path: Path) -> None:
    async with house(tmp_path, limits=replace(QUICK, fallback_s=0.1)) as h:
        h.uplink.up = False
        release = h.glasses.hold()
        answer = await h.call("shop:buy")
        assert answer.meta["delivery"]["state"] == "sent"
        release.set()
        changed = await h.happened(DeliveryChanged)
        assert (changed.call_id, changed.report.state) == (answer.meta["callId"], Delivery.SHOWN)


@pytest.mark.requirement("K4-queue")
async def test_a_queueable_call_is_pending_and_finishes_when_the_cloud_returns(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.uplink.up = False
        answer = await h.call("mail:send", {"text": "hi"})
        call_id = answer.meta["callId"]
        assert answer.ok
        assert answer.data == {"status": "pending", "pendingToolCallId": call_id}
        assert (answer.meta["route"], answer.meta["delivery"]) == ("queue", "queued")
        assert h.uplink.submitted[0].ttl_s == 30.0
        assert (await h.store.get(call_id))["state"] == "PENDING"
        await h.glasses.until(
            lambda: h.glasses.texts() == ["Saved. I'll do it when we're online: Send"]
        )
        h.uplink.say(CallResult(call_id, ToolResponse(data="mail sent")))
        completed = await h.happened(CallCompleted)
        assert (completed.call_id, completed.ok, completed.delivery) == (call_id, True, "shown")
        assert h.glasses.texts()[-1] == "mail sent"
        assert (call_id, DeliveryReport(Delivery.SHOWN)) in h.uplink.deliveries
        stored = await h.store.get(call_id)
        assert stored["state"] == "DELIVERED"
        assert stored["response"]["data"] == "mail sent"
        (pending,) = [e for e in h.heard if isinstance(e, CallAnswered)]
        assert not pending.final


async def test_a_queueable_call_that_nobody_accepts_becomes_pending(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        answer = await h.call("mail:send")
        assert answer.data["status"] == "pending"
        assert answer.meta["route"] == "queue"
        assert not h.uplink.withdrawn
        assert h.uplink.submitted[0].ttl_s == 30.0, "the outbox keeps it for its whole queue life"


@pytest.mark.requirement("K4-late")
async def test_an_expired_pending_call_does_not_show_its_late_result(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.registry.entries["mail:send"] = replace(
            h.registry.entries["mail:send"],
            definition=replace(h.registry.entries["mail:send"].definition, queue_ttl_s=0.2),
        )
        h.uplink.up = False
        answer = await h.call("mail:send")
        call_id = answer.meta["callId"]
        completed = await h.happened(CallCompleted)
        assert (completed.ok, completed.delivery) == (False, "expired")
        stored = await h.store.get(call_id)
        assert stored["state"] == "EXPIRED"
        assert stored["response"]["error"]["code"] == "DEADLINE_EXPIRED"
        pages = len(h.glasses.pages())
        late = CallResult(call_id, ToolResponse(data="too late"))
        h.uplink.say(late)
        await h.uplink.until(lambda: late in h.uplink.done)
        assert h.uplink.deliveries[-1][1].state is Delivery.EXPIRED
        assert len(h.glasses.pages()) == pages


async def test_the_uplinks_no_answer_after_the_end_is_no_late_answer(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        own = CallResult(
            "01920000-0000-7000-8000-000000000000",
            ToolResponse.failure(ErrorCode.TIMEOUT, "nobody"),
            own=True,
        )
        h.uplink.say(own)
        await h.uplink.until(lambda: own in h.uplink.done)
        assert h.uplink.deliveries == []


@pytest.mark.requirement("I11-too-large")
async def test_a_call_too_large_to_send_is_refused_with_the_limit(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.uplink.problem = BodyTooLarge(300, 200)
        error = (await h.call("shop:buy")).error
        assert (error.code, error.retryable, error.details) == (
            ErrorCode.INVALID_ARGUMENTS,
            False,
            {"size": 300, "limit": 200},
        )


async def test_a_full_outbox_says_when_to_come_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.uplink.problem = UplinkBusy("the outbox is full")
        assert (await h.call("shop:buy")).error.type is ErrorType.RATE_LIMIT


@pytest.mark.requirement("C-40")
async def test_a_spoken_question_that_takes_long_becomes_pending_and_is_finished_later(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        accepter(h)
        answer = await h.call("shop:look", mode=Mode.VOICE)
        assert answer.data["status"] == "pending"
        h.uplink.say(CallResult(answer.meta["callId"], ToolResponse(data="here it is")))
        assert (await h.happened(CallCompleted)).delivery == "shown"
        assert h.glasses.texts()[-1] == "here it is"


async def test_the_wearer_sees_a_working_mark_before_a_slow_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def slow(call, progress):
            await asyncio.sleep(0.15)
            return ToolResponse(data="ready")

        h.tools.handler = slow
        await h.call("notes:list")
        assert h.glasses.texts() == ["Working…", "ready"]


@pytest.mark.requirement("I13-mark")
@pytest.mark.parametrize("mode", [Mode.TEXT, Mode.VOICE])
async def test_a_working_mark_never_replaces_what_a_tool_reports(tmp_path: Path, mode) -> None:
    async with house(tmp_path) as h:

        async def slow(call, progress):
            await progress("step 1 of 2")
            await asyncio.sleep(0.3)
            return ToolResponse(data="ready")

        h.tools.handler = slow
        await h.call("notes:list", mode=mode)
        await h.glasses.until(lambda: h.glasses.texts()[-1:] == ["ready"])
        assert h.glasses.texts() == ["step 1 of 2", "ready"]


@pytest.mark.requirement("I13-mark")
async def test_behind_a_page_too_a_working_mark_replaces_no_progress(tmp_path: Path) -> None:
    async with house(tmp_path, limits=replace(QUICK, run_s=20.0)) as h:

        async def slow(call, progress):
            await progress("step 1 of 2")
            await h.glasses.until(lambda: h.glasses.texts()[-1] == "step 1 of 2")
            return ToolResponse(data="ready")

        h.tools.handler = slow
        page = {"display": {"text": "being read", "durationMs": 500}}
        await h.stage.present("c0", ToolResponse(data="", render=page))
        await h.call("notes:list")
        assert h.glasses.texts() == ["being read", "step 1 of 2", "ready"]


async def test_progress_leaves_the_lens_with_its_call(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def slow(call, progress):
            await progress("step 1 of 2")
            await asyncio.sleep(0.1)
            return ToolResponse(data=None)

        h.tools.handler = slow
        await h.call("notes:list")
        await h.glasses.until(lambda: h.glasses.clears() == 1)
        assert h.glasses.texts() == ["step 1 of 2"]


async def test_a_quick_answer_has_no_working_mark(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.call("notes:list")
        assert h.glasses.texts() == ["did notes:list"]


@pytest.mark.requirement("I13-mark")
async def test_progress_of_a_quick_call_does_not_flash_on_the_lens(tmp_path: Path) -> None:
    async with house(tmp_path, limits=replace(QUICK, working_s=20.0)) as h:
        heard = []

        async def quick(call, progress):
            await progress("step 1 of 2")
            return ToolResponse(data="ready")

        async def hear(text: str) -> None:
            heard.append(text)

        h.tools.handler = quick
        await h.call("notes:list", progress=hear)
        assert (h.glasses.texts(), heard) == (["ready"], ["step 1 of 2"])


async def test_a_local_tool_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def hang(call, progress):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with house(tmp_path) as h:
        h.tools.handler = hang
        answer = await h.call("notes:add", {"text": "x"})
        assert answer.error.code is ErrorCode.TIMEOUT
        assert answer.error.partial_side_effects
        await asyncio.wait_for(ended.wait(), 40)


@pytest.mark.requirement("S2-107", "S2-108")
async def test_text_mode_tries_an_idempotent_tool_once_more_and_voice_does_not(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:

        async def fails(call, progress):
            return ToolResponse.failure(ErrorCode.NETWORK_ERROR, "no")

        h.tools.handler = fails
        await h.call("notes:list")
        assert len(h.tools.runs) == 2
        await h.call("notes:list", mode=Mode.VOICE)
        assert len(h.tools.runs) == 3
        await h.call("notes:add", {"text": "x"})
        assert len(h.tools.runs) == 4, "what is not idempotent runs once"
        await h.call("files:read")
        assert len(h.tools.runs) == 5, "another server's tool was tried once more by who asks it"


@pytest.mark.requirement("S2-73", "C-39")
async def test_glasses_tools_need_glasses_but_reading_their_status_does_not(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.glasses.leave()
        away = await h.call("glasses:show_text", {"text": "x"})
        assert away.error.type is ErrorType.SESSION_INACTIVE
        assert away.meta["route"] == "fallback"
        status = await h.call("glasses:status", origin=CallOrigin.GLASSES)
        assert status.ok
        assert status.meta["route"] == "glasses"
        assert status.meta["delivery"] == {"state": "queued", "reason": "glasses away"}


# ------------------------------------------------------------------ the cloud calls us


@pytest.mark.requirement("K4-twice")
async def test_an_invocation_is_accepted_and_answered_once_also_when_repeated(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        call = make("notes:add", {"text": "from afar"}, origin=CallOrigin.CLI)
        first = Invoked(call, "reply/here")
        h.uplink.say(first)
        await h.uplink.until(lambda: first in h.uplink.done)
        assert [a if a is None else a.ok for _, a in h.uplink.answers] == [None, True]
        assert h.tools.runs[0].origin is CallOrigin.CLOUD
        again = Invoked(call, "reply/here", as_json=True)
        h.uplink.say(again)
        await h.uplink.until(lambda: again in h.uplink.done)
        assert len(h.tools.runs) == 1
        assert len(h.glasses.pages()) == 1
        assert h.uplink.answers[-1][1].meta["_idempotent_cache_hit"] is True


async def test_an_invocation_tells_its_progress_and_can_be_called_off(tmp_path: Path) -> None:
    async with house(tmp_path, limits=replace(QUICK, run_s=5)) as h:

        async def hang(call, progress):
            await progress("on it")
            await asyncio.Event().wait()

        h.tools.handler = hang
        message = Invoked(make("notes:add", {"text": "x"}), "reply")
        h.uplink.say(message)
        await h.uplink.until(lambda: any(a == "on it" for _, a in h.uplink.answers))
        h.uplink.say(InvokeCancelled(message.call.call_id, "changed my mind"))
        await h.uplink.until(lambda: message in h.uplink.done)
        assert h.uplink.answers[-1][1].error.code is ErrorCode.CANCELLED
        assert (await h.store.get(message.call.call_id))["response"]["error"]["code"] == "CANCELLED"


async def test_the_cloud_cannot_make_us_call_the_cloud(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        message = Invoked(make("shop:buy"), "reply")
        h.uplink.say(message)
        await h.uplink.until(lambda: message in h.uplink.done)
        assert h.uplink.answers[-1][1].error.code is ErrorCode.UNSUPPORTED
        assert not h.uplink.submitted


async def test_a_registry_notice_goes_to_whoever_syncs(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        notice = RegistryNotice("v2", "00", "http://cloud/registry")
        h.uplink.say(notice)
        await h.uplink.until(lambda: notice in h.uplink.done)
        assert h.notices == [notice]


async def test_the_cloud_hears_when_an_answered_result_is_spoken_later(tmp_path: Path) -> None:
    async with house(tmp_path, facts=FULL) as h:
        worker(h, data="Spoken words")
        answer = await h.call("shop:look")
        assert answer.meta["delivery"] == "shown"
        await h.uplink.until(lambda: h.uplink.deliveries[-1][1].state is Delivery.SPOKEN)


async def test_waiting_for_delivery_includes_the_speech(tmp_path: Path) -> None:
    async with house(tmp_path, facts=AUDIO) as h:
        answer = await h.call("notes:list", wait=Wait.DELIVERY)
        assert answer.meta["delivery"] == {"state": "spoken", "downgrade": "display→speech"}


async def test_a_session_that_suppresses_audio_stays_silent(tmp_path: Path) -> None:
    async with house(tmp_path, facts=FULL) as h:
        h.orchestrator.session.apply({"type": "SUPPRESS_AUDIO", "value": True}, tool="test")
        answer = await h.call("notes:list", wait=Wait.DELIVERY)
        assert answer.meta["delivery"] == "shown"
        assert h.glasses.frames() == 0


# ------------------------------------------------------------------ spoken sentences


async def test_a_sentence_calls_the_tool_whose_phrase_it_holds(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        answer = await h.orchestrator.heard("Please take a note: buy Milk and bread.")
        assert answer.ok
        run = h.tools.runs[0]
        assert (run.tool, run.args["text"], run.mode, run.origin) == (
            "notes:add",
            "buy Milk and bread",
            Mode.VOICE,
            CallOrigin.VOICE,
        )


async def test_a_sentence_nobody_understands_is_answered_honestly(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        answer = await h.orchestrator.heard("sing me a song")
        assert answer.error.code is ErrorCode.TOOL_NOT_FOUND
        assert "sing me a song" in answer.error.message
        assert answer.meta["delivery"] == "shown"


async def test_only_final_transcripts_of_the_glasses_are_used(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.bus.publish(GlassesSaid(Transcript("my notes", final=False)))
        h.bus.publish(GlassesSaid(Transcript("my notes")))
        await h.glasses.until(lambda: "did notes:list" in h.glasses.texts())
        assert len(h.tools.runs) == 1


async def test_a_phrase_of_a_hidden_tool_says_why_it_cannot_help(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.registry.hide("notes:list", "needs a speaker", ("SPEAKER",))
        answer = await h.orchestrator.heard("read my notes")
        assert answer.error.code is ErrorCode.HARDWARE_MISSING


# ------------------------------------------------------------------ over a restart


async def crash_with(
    path: Path, name: str, *states: str, route: str = "local", ttl_s: float = 40.0
) -> ToolCall:
    """Leave a call in the store as a killed daemon leaves it."""
    call = make(name, {"text": "x"}, ttl_s=ttl_s)
    async with house(path) as h:
        await h.store.admit(call, route)
        for state in states:
            await h.store.advance(call.call_id, state)
    return call


@pytest.mark.parametrize(
    ("name", "states", "runs", "code", "partial"),
    [
        ("notes:list", ("RUNNING",), 1, None, None),
        ("notes:add", (), 1, None, None),
        ("notes:add", ("RUNNING",), 0, "INTERRUPTED", True),
        ("gone:tool", ("RUNNING",), 0, "INTERRUPTED", True),
        ("gone:tool", (), 0, "INTERRUPTED", None),
    ],
)
async def test_after_a_kill_every_accepted_call_ends_once_and_safely(
    tmp_path: Path,
    name: str,
    states: tuple[str, ...],
    runs: int,
    code: str | None,
    partial: bool | None,
) -> None:
    call = await crash_with(tmp_path, name, *states)
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        assert len(h.tools.runs) == runs
        stored = await h.store.get(call.call_id)
        assert stored["response"].get("error", {}).get("code") == code
        assert stored["response"].get("error", {}).get("partialSideEffects") == partial
        assert await h.store.unfinished() == []
        if name != "gone:tool":
            assert (await h.orchestrator.call(call)).meta["_idempotent_cache_hit"] is True
        assert len(h.tools.runs) == runs


async def test_a_queued_call_is_finished_by_the_next_daemon(tmp_path: Path) -> None:
    call = await crash_with(tmp_path, "mail:send", "PENDING", route="queue")
    async with house(tmp_path) as h:
        h.uplink.say(CallResult(call.call_id, ToolResponse(data="sent after all")))
        completed = await h.happened(CallCompleted)
        assert (completed.call_id, completed.delivery) == (call.call_id, "shown")
        assert not h.uplink.submitted, "the outbox has it already"


async def test_a_cloud_call_caught_between_our_disk_and_the_outbox_still_leaves(
    tmp_path: Path,
) -> None:
    call = await crash_with(tmp_path, "mail:send", route="queue")
    async with house(tmp_path) as h:
        await h.uplink.until(lambda: bool(h.uplink.submitted))
        assert [c.call_id for c in h.uplink.submitted] == [call.call_id]


async def test_a_cloud_call_whose_time_passed_while_we_were_down_ends_as_interrupted(
    tmp_path: Path,
) -> None:
    call = await crash_with(tmp_path, "shop:buy", "RUNNING", route="cloud", ttl_s=0.0)
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        error = (await h.store.get(call.call_id))["response"]["error"]
        assert (error["code"], error["partialSideEffects"]) == ("INTERRUPTED", True)


async def test_a_call_running_at_a_stop_is_ended_by_the_next_daemon(
    tmp_path: Path,
) -> None:
    async def hang(call, progress):
        await asyncio.Event().wait()

    tools = FakeTools()
    tools.handler = hang
    call = make("notes:add", {"text": "x"})
    async with house(tmp_path, tools=tools, limits=replace(QUICK, run_s=30)) as h:
        caller = asyncio.ensure_future(h.orchestrator.call(call))
        while not tools.runs:
            await asyncio.sleep(0.005)
    assert (await caller).error.code is ErrorCode.INTERRUPTED
    async with house(tmp_path) as h:
        await h.happened(CallCompleted)
        assert (await h.store.get(call.call_id))["response"]["error"]["partialSideEffects"] is True
        assert not h.tools.runs


@pytest.mark.parametrize("advice", ["notes:list shows it", ""])
async def test_a_call_of_unknown_outcome_says_how_to_find_out(tmp_path: Path, advice: str) -> None:
    registry = FakeRegistry()
    registry.entries["notes:add"] = Entry(tool("notes:add", how_to_check=advice), "app")
    call = await crash_with(tmp_path, "notes:add", "RUNNING")
    async with house(tmp_path, registry=registry) as h:
        await h.happened(CallCompleted)
        for _ in range(2):
            error = (await h.orchestrator.call(call)).error
            assert (error.partial_side_effects, error.suggestion) == (True, advice or None)


# ------------------------------------------------------------------ one answer, whatever happens

EVENTS = st.lists(
    st.sampled_from(
        [
            "accept",
            "progress",
            "result",
            "result",
            "cancel",
            "duplicate",
            "down",
            "up",
            "away",
            "back",
        ]
    ),
    max_size=8,
)


@given(
    name=st.sampled_from(["shop:buy", "mail:send", "notes:add"]), events=EVENTS, up=st.booleans()
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.requirement("K3-one-answer")
def test_exactly_one_answer_under_any_interleaving(
    tmp_path_factory, name: str, events: list[str], up: bool
) -> None:
    asyncio.run(_interleave(tmp_path_factory.mktemp("i"), name, events, up))


async def _interleave(path: Path, name: str, events: list[str], up: bool) -> None:
    uplink = FakeUplink()
    uplink.up = up
    limits = replace(QUICK, accept_s=0.03, run_s=0.06, working_s=0.01, life_s=0.1)
    async with house(path, uplink=uplink, limits=limits) as h:
        entry = h.registry.entries["mail:send"]
        h.registry.entries["mail:send"] = replace(
            entry, definition=replace(entry.definition, queue_ttl_s=0.1)
        )
        call = make(name, {"text": "x"})
        callers = [asyncio.ensure_future(h.orchestrator.call(call))]
        for event in events:
            await asyncio.sleep(0.004)
            match event:
                case "accept":
                    uplink.say(CallAccepted(call.call_id))
                case "progress":
                    uplink.say(CallProgress(call.call_id, "some"))
                case "result":
                    uplink.say(CallResult(call.call_id, ToolResponse(data="r")))
                case "cancel":
                    await h.orchestrator.cancel(call.call_id, "no")
                case "duplicate":
                    callers.append(asyncio.ensure_future(h.orchestrator.call(call)))
                case "down" | "up":
                    uplink.up = event == "up"
                case "away":
                    h.glasses.leave()
                case "back":
                    h.glasses.come_back()
        answers = await asyncio.gather(*callers)
        async with asyncio.timeout(40):
            while await h.store.unfinished() or h.orchestrator._calls:
                await asyncio.sleep(0.005)

        def of(kind: type) -> list[Any]:
            return [e for e in h.heard if isinstance(e, kind)]

        async with asyncio.timeout(40):  # the bench's listener runs behind the bus
            while len(of(CallCompleted)) < len(
                [e for e in of(CallAnswered) if not e.final]
            ) or not of(CallAnswered):
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)  # what is said twice would come now
        assert all(a.ok == (a.error is None) for a in answers)
        answered = [e for e in of(CallAnswered) if e.delivery != "none"]
        assert len([e for e in answered if e.call_id == call.call_id]) >= 1
        pending = [e for e in of(CallAnswered) if not e.final]
        assert len(of(CallCompleted)) == len(pending) <= 1
        assert len(h.tools.runs) <= 1
        assert (await h.store.get(call.call_id))["response"] is not None


async def test_an_invocation_called_off_in_the_same_breath_does_not_run(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        message = Invoked(make("notes:add", {"text": "x"}), "reply")
        h.uplink.say(message)
        h.uplink.say(InvokeCancelled(message.call.call_id, "changed my mind"))
        await h.uplink.until(lambda: message in h.uplink.done)
        answer = h.uplink.answers[-1][1]
        assert isinstance(answer, ToolResponse)
        assert answer.error is not None
        assert answer.error.code is ErrorCode.CANCELLED
        assert not h.tools.runs


@pytest.mark.requirement("I11-disk-code")
async def test_a_cloud_call_that_cannot_be_stored_may_be_retried(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        h.uplink.problem = DiskUnavailable("the disk is full")
        cloud = next(
            name
            for name, entry in h.registry.entries.items()
            if entry.definition.source is Source.CLOUD
        )
        response = await h.call(cloud)
        assert response.error is not None
        assert (response.error.code, response.error.retryable) == (
            ErrorCode.STORAGE_UNAVAILABLE,
            True,
        )


async def test_a_delivery_report_that_cannot_be_stored_does_not_lose_the_answer(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        worker(h)

        async def full(*_args: object, **_more: object) -> None:
            raise UplinkBusy("the disk is full")

        def too_large(*_args: object, **_more: object) -> Alongside:
            raise UplinkTooLarge("300 bytes")

        h.uplink.tell_delivery = full  # type: ignore[method-assign]
        h.uplink.delivery = too_large  # type: ignore[method-assign]
        cloud = next(
            name
            for name, entry in h.registry.entries.items()
            if entry.definition.source is Source.CLOUD
        )
        response = await h.call(cloud)
        assert response.ok
        h.bus.publish(DeliveryChanged(response.meta["callId"], DeliveryReport(Delivery.SPOKEN)))
        assert (await h.call(cloud)).ok  # the service lives on


@pytest.mark.requirement("I11-disk-code")
async def test_the_cloud_hears_nothing_of_an_answer_that_is_not_on_disk(tmp_path: Path) -> None:
    async with house(tmp_path) as h:

        async def full(*_args: object, **_more: object) -> None:
            raise DiskUnavailable("the disk is full")

        worker(h)
        h.store.finish = full  # type: ignore[method-assign]
        cloud = next(
            name
            for name, entry in h.registry.entries.items()
            if entry.definition.source is Source.CLOUD
        )
        answer = await h.call(cloud)
        assert answer.meta["delivery"] == "shown"
        assert h.uplink.deliveries == []  # the next daemon may give this call another answer
