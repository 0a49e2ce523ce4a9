"""Story: the glasses are changed for others, and what can be called follows, with a reason for
what cannot (Show 2).
"""

import asyncio
import json
import re
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.cli import main
from edge.config.model import ControlConfig
from edge.daemon.app import Daemon
from edge.daemon.startup import read
from firmware_bridge.sides import Side
from tests.scenarios.world import until, world
from tools_cache.registry.manifest import digest
from tools_cache.registry.registry_store import Generation, RegistryStore

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHOTO = "com.example.photo:inspect"
THEIRS = ("glasses:", PHOTO)
CAMERA = dict.fromkeys((PHOTO, "glasses:take_photo"), "a camera")
"""Tools that depend on the glasses; others come and go for reasons of their own."""
NO_DISPLAY = (
    "glasses:captions",
    "glasses:clear",
    "glasses:dismiss",
    "glasses:notify",
)
RARE = (
    "glasses:dashboard",
    "glasses:end_video",
    "glasses:gallery",
    "glasses:hotspot",
    "glasses:join_wifi",
    "glasses:leave_wifi",
    "glasses:light",
    "glasses:motion",
    "glasses:record_video",
    "glasses:navigate",
    "glasses:preferences",
    "glasses:record_sound",
    "glasses:remove_voice_note",
    "glasses:restart",
    "glasses:set_microphone",
    "glasses:translate",
    "glasses:vibrate",
    "glasses:voice_notes",
    "glasses:wifi",
)
"""Tools for what few glasses have: their own tests and test_switching look at them."""
EITHER = ("glasses:say", "glasses:show_card", "glasses:show_image", "glasses:show_text")
"""Tools for which a display or a speaker will do."""


async def tools(place, capsys, *words):
    """What `glassd tools --all` prints."""
    capsys.readouterr()
    assert (
        await asyncio.to_thread(main, ["tools", "--all", "--socket", str(place.socket), *words])
        == 0
    )
    return capsys.readouterr().out


async def hides(place, capsys, expected, *, beside=()):
    """`glassd tools --all` leaves out `expected`, {tool: reason}, of all that depends on the
    glasses, `beside` these tools.
    """

    def counts(name):
        return name.startswith(THEIRS) and name not in beside

    def now():
        return {
            e.definition.name: e.hidden
            for e in place.daemon.registry.snapshot().entries()
            if e.missing and counts(e.definition.name)
        }

    await until(lambda: now() == expected, lambda: f"{expected}; it is {now()}")
    listed = json.loads(await tools(place, capsys, "--json"))["tools"]
    found = {t["name"]: t["hidden"] for t in listed if t["missing"] and counts(t["name"])}
    assert found == expected


async def wear(place, model):
    """Take off what is worn, put `model` on."""
    place.mark()
    await place.switch_glasses_off()
    place.model = model
    await place.switch_glasses_on(mtu=251)
    await place.heard("glasses.ready", model=model.removeprefix("sim:"))


async def reported(cloud_side, model, *, there, gone=()):
    """The cloud is told of `model`, with `there` among this edge's tools and nothing of `gone`."""

    def is_it(said):
        names = {t["name"] for t in said.body["tools"]} if said.tail == "capabilities" else set()
        return (
            bool(names)
            and said.body["model"] == model
            and said.body["connected"]
            and set(there) <= names
            and not names & set(gone)
        )

    await cloud_side.hears(f"a report of {model}", is_it)


def none_of(title, **needs):
    return {
        name: f"needs {what}; these glasses ({title}) have none" for name, what in needs.items()
    }


def list_changes(place):
    """Every event that the list of tools is another, for what glasses can do; the cloud's own
    tools came some time before.
    """
    changes = [h for h in place.happened if h["event"] == "tools_list_changed"]
    return [
        h
        for h in changes
        if any(name.startswith("glasses:") for name in (*h["added"], *h["removed"]))
    ]


async def told_clients(place, times):
    await until(lambda: len(list_changes(place)) >= times, f"{times} changes of the list told")


@pytest.mark.requirement("I5-hardware-reason", "I5-hardware-swap")
async def test_glasses_are_changed_for_others_and_the_tools_follow(tmp_path, cloud, capsys):
    async with world(tmp_path, glasses={"model": ""}, tools={"offered_max": 80}) as place:
        place.cloud = cloud
        await place.start_daemon()
        await until(lambda: place.daemon.registry.describe()["origin"] == "cloud", "the registry")
        needs = {
            **dict.fromkeys(NO_DISPLAY, "a display"),
            **dict.fromkeys((*EITHER[1:], "glasses:set"), "a display or a speaker"),
            "glasses:captions": "a display and a microphone",
            "glasses:say": "a speaker or a display",
            **CAMERA,
        }
        await hides(
            place,
            capsys,
            {name: f"needs {what}; no glasses are known yet" for name, what in needs.items()},
            beside=RARE,
        )

        async with place.onlooker() as cloud_side:
            await wear(place, "mock:display")
            shy = "these glasses (Mock display glasses) do not report this about their display"
            await hides(
                place,
                capsys,
                {
                    **none_of("Mock display glasses", **CAMERA),
                    "glasses:set": "needs a display that lets its brightness be set or a speaker; "
                    f"{shy}",
                    "glasses:notify": f"needs a display that shows notifications of its own; {shy}",
                    "glasses:dismiss": f"needs a display that has a dashboard of its own; {shy}",
                },
                beside=RARE,
            )
            await reported(
                cloud_side,
                "mock:display",
                there={*EITHER, "glasses:clear"},
                gone={"glasses:set"},
            )
            await told_clients(place, 1)

            await wear(place, "mock:audio")
            await hides(
                place,
                capsys,
                none_of("Mock audio glasses", **dict.fromkeys(NO_DISPLAY, "a display")),
                beside=RARE,
            )
            await reported(
                cloud_side,
                "mock:audio",
                there={*EITHER, "glasses:take_photo", "glasses:set"},
                gone=NO_DISPLAY,
            )
            await told_clients(place, 2)

            await wear(place, "sim:even_g1")
            await hides(
                place,
                capsys,
                none_of("Even Realities G1", **CAMERA),
                beside=RARE,
            )
            await reported(
                cloud_side, "even_g1", there={*NO_DISPLAY, *EITHER, "glasses:set"}, gone=set(CAMERA)
            )
            await told_clients(place, 3)

        assert "hidden: needs a camera; these glasses (Even Realities G1) have none" in await tools(
            place, capsys
        )
        await place.switch_glasses_off()
        await place.heard("glasses.lost")
        await until(
            lambda: place.daemon.registry.snapshot().find("glasses:set").stale, "the stale mark"
        )
        assert (
            "of the glasses' display, where its picture is, their silent mode, or the volume "
            "of the voice. "
            "(judged by what the glasses last seen could do)"
        ) in await tools(place, capsys)
        said = [
            (
                {*e["added"]} & {"glasses:say", "glasses:set"},
                {*e["removed"]} & {"glasses:say", "glasses:set"},
            )
            for e in list_changes(place)
        ]
        assert said == [
            ({"glasses:say"}, set()),
            ({"glasses:set"}, set()),
            (set(), set()),
        ], "once a change"


# ------------------------------------------------------------------ what finished glasses have
# besides a lens


async def settled(place, **settings):
    await until(
        lambda: settings.items() <= place.mock.glasses.settings.items(),
        lambda: f"{settings}: {place.mock.glasses.settings}",
    )


@pytest.mark.requirement("I4-amenities")
async def test_brightness_reaches_both_arms_and_a_notification_covers_the_page_until_dismissed(
    tmp_path,
):
    async with world(tmp_path, "sim:even_g1", glasses={"model": "even_g1"}) as place:
        await place.switch_glasses_on(mtu=251)
        await place.start_daemon()
        await place.ready()
        await until(
            lambda: (
                {s: how.state for s, how in place.daemon.link.status().sides.items()}
                == dict.fromkeys(Side, "up")
            ),
            "both sides up",
        )

        assert (await place.call("glasses:set", {"brightness": 40, "silent": False})).ok
        await settled(place, brightness=40, silent=False)
        told = [
            e["side"] for e in place.shown if e["event"] == "setting" and e.get("brightness") == 40
        ]
        assert set(told) == set(Side)
        assert (await place.call("glasses:set", {"auto": True})).data[
            "text"
        ] == "Brightness: automatic"
        await settled(place, brightness="auto")

        assert (await place.call("glasses:show_text", {"text": "the page below"})).ok
        noted = await place.call(
            "glasses:notify",
            {"title": "Front door", "text": "Somebody is there", "app": "Doorbell"},
        )
        assert noted.ok, noted.error
        assert len(place.mock.glasses.settings["apps"]) == 1
        (shown,) = [e for e in place.shown if e["event"] == "notification"]
        assert "Doorbell: Front door" in json.dumps(shown)
        assert shown["app"] == place.mock.glasses.settings["apps"][0]

        assert (await place.call("glasses:dismiss")).ok
        await until(
            lambda: not any(any(lens.text()) for lens in place.mock.glasses.lenses.values()),
            "both lenses dark",
        )
        assert place.daemon.stage.lens()["lines"] == []


@pytest.mark.requirement("I4-amenities")
async def test_glasses_without_a_brightness_refuse_it_with_the_reason(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        refused = await place.call("glasses:set", {"brightness": 40})
        assert refused.error.code == "HARDWARE_MISSING"
        assert "needs a display that lets its brightness be set" in refused.error.message
        assert refused.error.details == {"missing": ["DISPLAY.adjustBrightness"]}


# ------------------------------------------------------------------ a tool's own needs


@pytest.mark.requirement("S0-09")
@pytest.mark.parametrize("switched_on", [False, True])
async def test_a_tools_own_needs_are_heeded_from_the_first_moment_where_the_owner_wants_it(
    tmp_path, switched_on
):
    picky = {
        "name": "t",
        "description": "d",
        "inputSchema": {"type": "object"},
        "_meta": {"io.glassd/hardware": [{"type": "LIGHT", "level": "REQUIRED"}]},
    }
    apps = [{"packageName": "com.x", "hardwareRequirements": [], "tools": [picky]}]
    body = json.dumps({"version": "1", "sha256": digest(apps), "apps": apps}).encode()
    RegistryStore(tmp_path / "state" / "registry").save(
        Generation(body, "http://127.0.0.1:1", fetched_wall=1.0)
    )
    config = tmp_path / "glassd.toml"
    config.write_text(
        f'version = 1\n[edge]\nstate_dir = "{tmp_path}/state"\n[cloud]\nurl = "http://127.0.0.1:1"\n'
        f"[registry]\nper_tool_hardware = {str(switched_on).lower()}\n"
    )
    begun = read(config, {})
    assert (begun.registries.remote.apps[0].tool_requirements != {}) is switched_on
    for registries in (begun.registries, None):  # read before the daemon, or by it
        async with AsyncExitStack() as stack:
            daemon = Daemon(
                replace(
                    begun.settings, control=ControlConfig(socket=str(tmp_path / "c.sock"), group="")
                ),
                {},
                registries=registries,
            )
            await daemon.open(stack)
            reason = "needs a light; no glasses are known yet" if switched_on else ""
            assert daemon.registry.snapshot().find("com.x:t").hidden == reason


# ------------------------------------------------------------------ what the README shows


def labels(printed):
    """{layer: the words before its values} of what `glassd status` prints."""
    found = {}
    for line in printed.splitlines()[1:]:
        layer, rest = line[:9].strip(), line[10:]
        if not line or line.startswith("Next:"):
            break
        state = rest[:15].strip() if layer in {"adapter", "link", "glasses", "uplink"} else ""
        details = rest[15:] if state else rest
        if layer == "services":
            details = re.sub(r"\d+ ", "", details) + " N"
        found[layer] = {
            re.sub(r" (\d[\d.]* (ms|s|min|h|d)|\S+)$", "", detail.strip())
            for detail in details.split(", ")
        }
    return found


async def test_the_readme_shows_status_as_it_is(tmp_path, capsys):
    sample = (
        Path("README.md")
        .read_text(encoding="utf-8")
        .partition("\nglassd status\n```\n```\n")[2]
        .partition("```")[0]
    )
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()

        async def now():
            capsys.readouterr()
            assert await asyncio.to_thread(main, ["status", "--socket", str(place.socket)]) == 0
            return labels(capsys.readouterr().out)

        shown = await now()
        with suppress(TimeoutError):
            async with asyncio.timeout(40):
                while shown != labels(sample):
                    await asyncio.sleep(0.05)
                    shown = await now()
        assert shown == labels(sample), (
            "the sample in the README is of another version: take a new one"
        )
