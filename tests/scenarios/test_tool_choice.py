"""Story: what is offered, found, loaded, called through another, and switched, on a whole
daemon without any cloud.
"""

import asyncio
import json
import os
import sys

import pytest

from tests.scenarios.world import until, world
from tools_cache.api.tool import Delivery, Mode

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

FEW = {"offered_max": 9, "idle_turns": 2, "essential": ["notes:add"]}


def used(place):
    return [h["tool"] for h in place.happened if h["event"] == "tools.used"]


def offered(place):
    return {e.definition.name for e in place.daemon.choice.offered("local")}


async def glassd(place, *words):
    """A real `glassd`: (exit code, JSON on stdout)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        *words,
        "--json",
        "--socket",
        str(place.socket),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    async with asyncio.timeout(30):
        out, _ = await process.communicate()
    return process.returncode, json.loads(out)


@pytest.mark.requirement("S0-37")
@pytest.mark.parametrize(
    "settings", [{"audio": {"voice": "de-DE"}}, {"microphone": {"language": "de"}}]
)
async def test_without_a_cloud_what_the_wearer_says_finds_its_local_tool_in_the_configured_language(
    tmp_path, settings
):
    async with world(tmp_path, **settings) as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        await place.wearer_says("take a note buy milk")
        await place.heard("call.answered", tool="notes:add", ok=True)
        await place.lens_shows("buy milk")
        await place.wearer_says("Wie spät ist es?")
        await place.heard("call.answered", tool="clock:now", ok=True)
        await place.daemon.choice.disable("local", "clock:now", origin="cli")
        await place.wearer_says("what time is it")
        await place.heard("call.answered", tool="clock:now", ok=False, code="USER_DISABLED")


@pytest.mark.requirement("S3-05", "S4-22", "S4-23", "S4-24", "S4-27", "S4-57")
async def test_a_tool_that_is_not_offered_is_found_called_shown_and_loaded(tmp_path):
    async with world(tmp_path, tools=FEW) as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        before = offered(place)
        assert {"notes:add", "registry:search", "registry:load", "registry:invoke"} <= before
        assert len(before) <= 9
        assert "timer:start" not in before
        found = await place.call("registry:search", {"query": "start a timer"})
        assert found.data["tools"][0]["tool"] == "timer:start"
        assert found.meta["delivery"] == Delivery.NONE.value
        assert place.drawn() == [], "an internal tool's answer is never seen"

        ran = await place.call(
            "registry:invoke",
            {"tool": "timer:start", "args": json.dumps({"seconds": 600, "label": "the pasta"})},
        )
        assert ran.ok, ran.error
        assert ran.data["id"] == 1
        await place.lens_shows("the pasta")
        await until(lambda: used(place), "a use is told")
        await until(lambda: "timer:start" in offered(place), "it stays for a turn")
        direct = await place.call("timer:list", {})
        assert direct.data["timers"][0]["label"] == "the pasta", (
            "and what is not offered can be called by its name"
        )

        assert (
            await place.call("registry:invoke", {"tool": "no:such"})
        ).error.code == "TOOL_NOT_FOUND"
        assert (
            await place.call("registry:invoke", {"tool": "clock:now", "args": "x"})
        ).error.code == "INVALID_ARGUMENTS"
        assert (
            await place.call("registry:invoke", {"tool": "clock:now", "args": "[1]"})
        ).error.code == "INVALID_ARGUMENTS"
        assert (
            await place.call("registry:invoke", {"tool": "timer:start", "args": {}})
        ).error.code == "INVALID_ARGUMENTS"
        deep = {
            "tool": "registry:invoke",
            "args": {
                "tool": "registry:invoke",
                "args": {"tool": "registry:invoke", "args": {"tool": "clock:now"}},
            },
        }
        assert (await place.call("registry:invoke", deep)).error.code == "UNSUPPORTED", (
            "three deep at most"
        )

        await place.daemon.choice.disable("local", "clock:now", origin="cli")
        off = (await place.call("registry:invoke", {"tool": "clock:now"})).error
        assert (off.type, off.code) == ("PERMANENT", "USER_DISABLED")
        refused = await place.call("registry:load", {"tools": ["clock:now", "no:such"]})
        assert [r["reason"] for r in refused.error.details] == [
            "disabled: glassd tools enable clock:now",
            "there is no such tool",
        ]

        loaded = await place.call(
            "registry:load", {"tools": ["timer:cancel", "no:such"]}, turn_id="t1"
        )
        assert loaded.data["loaded"] == ["timer:cancel"]
        await until(lambda: "timer:cancel" in offered(place), "listed at the next boundary")
        await place.heard("tools_list_changed")
        for turn in ("t2", "t3", "t4"):
            await place.call("notes:list", {}, turn_id=turn, mode=Mode.TEXT)
        assert "timer:cancel" not in offered(place)
        assert "notes:add" in offered(place), "it is essential"
        told = await place.call("registry:describe", {"tool": "timer:cancel"})
        assert told.data["state"] == "available"
        assert told.data["documentation"].startswith("# timer:cancel")
        await until(lambda: len(used(place)) >= 5, "the last use is told")
        assert used(place) == ["timer:start", "timer:list", *["notes:list"] * 3], (
            "our own tools tell no use of their own"
        )


@pytest.mark.requirement("I5-tools-switch", "S2-60", "S3-19", "S3-20")
async def test_tools_are_switched_and_told_from_the_command_line(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon(
            policy={"rate_limits": {}, "users": {"local": {"disabled_tools": ["timer:cancel"]}}}
        )
        code, done = await glassd(place, "tools", "disable", "notes:add")
        assert (code, done["changed"], done["state"]) == (0, ["notes:add"], "hidden")
        code, refused = await glassd(place, "call", "notes:add", "text=milk")
        assert (code, refused["error"]["code"]) == (1, "USER_DISABLED")
        listing, everything = await glassd(place, "tools"), await glassd(place, "tools", "--all")
        assert "notes:add" not in {t["name"] for t in listing[1]["tools"]}
        rows = {t["name"]: t for t in everything[1]["tools"]}
        assert rows["notes:add"]["hidden"] == "disabled: glassd tools enable notes:add"
        assert rows["timer:cancel"]["hidden"] == "disabled in the configuration"
        assert rows["glasses:clear"]["hidden"].startswith("needs a display")
        assert everything[1]["counts"]["hidden"] == sum(
            row["state"] == "hidden" for row in rows.values()
        )
        assert not {name.partition(":")[2] for name in rows} & {
            "stop_run",
            "absorb_run",
            "get_my_runs",
        }
        _, retrieval = await glassd(place, "tools", "--category", "retrieval")
        assert {t["category"] for t in retrieval["tools"]} == {"retrieval"}

        assert (await glassd(place, "tools", "enable", "no:such"))[0] == 4
        code, gated = await glassd(place, "tools", "enable", "timer:cancel")
        assert (code, gated["error"]["code"]) == (1, "CONFLICT")
        code, fixed = await glassd(place, "tools", "disable", "registry:load")
        assert (code, "built in" in fixed["error"]["message"]) == (1, True)
        assert (await glassd(place, "tools", "show"))[0] == 2
        code, told = await glassd(place, "tools", "show", "notes:add")
        assert (code, told["state"], told["enabled"], len(told["policy"])) == (
            0,
            "hidden",
            False,
            8,
        )
        assert told["documentation"].startswith("# notes:add")

        await place.stop_daemon()
        await place.start_daemon()
        assert (await place.call("notes:add", {"text": "milk"})).error.code == "USER_DISABLED", (
            "also after a restart"
        )
        assert (await glassd(place, "tools", "enable", "notes:add"))[0] == 0
        assert (await place.call("notes:add", {"text": "milk"})).ok
        await until(lambda: used(place), "the use is told")
        code, usage = await glassd(place, "tools", "usage")
        assert (code, [(u["tool"], u["calls"]) for u in usage["tools"]]) == (0, [("notes:add", 1)])
