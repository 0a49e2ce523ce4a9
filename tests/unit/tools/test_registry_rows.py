"""Rows of the seed about the registry at run time, each on the real parts it speaks of."""

import json
import logging
import time

import pytest

from edge.core import phrases
from edge.core.tools.registry import Union
from edge.ports import RegistryNotice
from edge.runtime.events import Alarmed, ToolsFiltered
from edge.tools.installed_registry import InstalledRegistry, NotLocked, RegistryLocked
from tests.unit.calls.orchestrator_house import house
from tests.unit.commands.test_cli import glassd
from tests.unit.control.house import open_house
from tests.unit.tools.test_registry import BUILTIN, Rig, app, cloud, document, glasses  # noqa: F401 - `cloud` is a fixture
from tools_cache import schema as schemas
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, Source
from tools_cache.registry.manifest import load

pytestmark = pytest.mark.enable_socket


def built():
    return load(BUILTIN.encode(), source=Source.LOCAL, trusted=True)


# ------------------------------------------------------------------ stateless plumbing


@pytest.mark.requirement("S0-01")
async def test_no_transcript_is_kept_on_disk(tmp_path):
    marker = "xylophonmarker"
    async with house(tmp_path) as h:
        for number in range(50):
            answer = await h.orchestrator.heard(f"{marker}{number} would you read my notes")
            assert answer.ok, answer
        assert len(h.tools.runs) == 50
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert [path.name for path in kept if marker.encode() in path.read_bytes()] == []


@pytest.mark.requirement("S0-01")
async def test_a_repetition_is_known_again_by_a_digest_of_its_words(tmp_path):
    async with house(tmp_path) as h:
        first = await h.orchestrator.heard("read my notes please")
    async with house(
        tmp_path
    ) as h:  # a new daemon is a new connection: glasses say again what they saw no answer to
        again = await h.orchestrator.heard("read my notes please")
        other = await h.orchestrator.heard("read my notes now")
        assert len(h.tools.runs) == 1, "only the other words are a new turn"
    assert again.meta["callId"] == first.meta["callId"] != other.meta["callId"]


# ------------------------------------------------------------------ one list


@pytest.mark.requirement("S0-16", "S2-40")
@pytest.mark.parametrize("name", ["nowhere:add", "notes:nothing"])
async def test_an_unknown_app_and_an_unknown_tool_are_both_not_found_and_final(tmp_path, name):
    async with house(tmp_path) as h:
        answer = await h.call(name)
        assert (answer.error.code, answer.error.retryable) == (ErrorCode.TOOL_NOT_FOUND, False)
        assert answer.error.message == f"Tool {name} not found"
        assert not answer.meta.get("toolVersion")
        assert (answer.meta["tool"], bool(answer.meta["registryVersion"])) == (name, True)


@pytest.mark.requirement("S0-44")
def test_listing_and_finding_do_no_work_that_grows_with_the_tools():
    registry = load(
        json.dumps(
            document(*(app(f"com.a{n}", *(f"t{m}" for m in range(5))) for n in range(200)))
        ).encode()
    )
    snapshot = Union.of((), registry.apps).snapshot("v", None, stale=False)
    assert snapshot.entries() is snapshot.entries()
    assert len(snapshot.entries()) == 1000
    assert snapshot.find("com.a7:t3") is snapshot.find("com.a7:t3")
    assert min(_took_s(snapshot.entries) for _ in range(20)) < 0.005


def _took_s(work):
    """Of the processor, so that what else the machine does is not measured."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


@pytest.mark.requirement("S0-13", "S0-14")
async def test_apps_without_tools_are_no_error_and_left_out_apps_are_named_with_what_they_miss(
    tmp_path,
    cloud,  # noqa: F811
    caplog,
):
    caplog.set_level(logging.DEBUG)
    cloud.document = document(
        app("com.none"), app("com.photo", "take", needs=["CAMERA", "WIFI"]), app("com.calc", "add")
    )
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    rig.cache.set_capabilities(glasses(display=True), stale=False)
    assert "Skipping tools from incompatible app com.photo: missing CAMERA, WIFI" in caplog.text
    assert rig.happened(ToolsFiltered)[-1].apps["com.photo"] == ("CAMERA", "WIFI")
    assert not [line for line in rig.cache.describe()["dropped"] if "com.none" in line]


@pytest.mark.requirement("S0-38")
async def test_tools_are_listed_by_category(tmp_path):
    async with open_house(tmp_path) as h:
        one, none = [
            await glassd("tools", "--all", "--json", "--category", c, "--socket", str(h.path))
            for c in ("utility", "communication")
        ]
    assert {tool["category"] for tool in one.json["tools"]} == {"utility"}
    assert (one.code, none.code, none.json["tools"]) == (0, 4, [])


@pytest.mark.requirement("S2-130")
def test_a_tool_that_is_not_for_a_mode_is_not_offered_in_it():
    tools = {tool.name: tool for a in built().apps for tool in a.tools}
    assert Mode.VOICE not in tools["voice:start"].allowed_modes
    assert Mode.TEXT in tools["voice:start"].allowed_modes
    assert Mode.VOICE in tools["voice:end"].allowed_modes


@pytest.mark.requirement("C-37")
def test_what_the_own_cloud_brings_is_allowed_unless_the_owner_says_no():
    registry = load(json.dumps(document(app("com.calc", "add", "sub"))).encode())
    union = Union.of((), registry.apps)
    assert [e.hidden for e in union.snapshot("v", None, stale=False).entries()] == ["", ""]
    assert all(
        e.hidden for e in union.snapshot("v", None, stale=False, disabled={"com.calc:*"}).entries()
    )


# ------------------------------------------------------------------ definitions


@pytest.mark.requirement("S0-36")
def test_nested_objects_and_arrays_are_validated_in_full(tmp_path):
    nested = {
        "type": "object",
        "required": ["people"],
        "properties": {
            "people": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string", "enum": ["Ada", "Bo"]},
                        "age": {"type": "integer", "minimum": 0},
                        "old": {"type": "boolean", "default": False},
                    },
                },
            }
        },
    }
    (tool,) = (
        load(
            json.dumps(
                document(
                    {
                        **app("com.x", "t"),
                        "tools": [{"name": "t", "description": "", "inputSchema": nested}],
                    }
                )
            ).encode()
        )
        .apps[0]
        .tools
    )
    rig = Rig(tmp_path)
    assert rig.cache.check_args(tool, {"people": [{"name": "Ada"}]}) == (
        {"people": [{"name": "Ada", "old": False}]},
        [],
    )
    _, problems = rig.cache.check_args(tool, {"people": [{"name": "Cy", "age": -1}, {}]})
    assert {p["path"] for p in problems} == {"/people/0/name", "/people/0/age", "/people/1"}


@pytest.mark.requirement("S0-37")
async def test_a_phrase_calls_its_local_tool_with_the_cloud_away(tmp_path):
    async with house(tmp_path) as h:
        h.uplink.up = False
        answer = await h.orchestrator.heard("take a note milk")
        assert (answer.ok, h.tools.runs[0].tool, h.tools.runs[0].origin) == (
            True,
            "notes:add",
            CallOrigin.VOICE,
        )
    listed = [tool for a in built().apps for tool in a.tools if tool.activation_phrases]
    assert listed
    for tool in listed:
        found = phrases.match(tool.activation_phrases[0], [tool])
        assert found is not None, tool.name
        assert found.tool is tool


# ------------------------------------------------------------------ static while it runs


@pytest.mark.requirement("S0-32")
async def test_tools_come_from_the_clouds_own_registry_alone(tmp_path, cloud):  # noqa: F811
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    before, asked = rig.cache.snapshot(), len(cloud.requests)
    await rig.cache.notice(RegistryNotice("v9", "f" * 64, "http://127.0.0.1:9/evil"))
    await rig.cache.sync()
    assert len(cloud.requests) == asked + 1, (
        "the configured cloud was asked, not the address in the notice"
    )
    assert rig.cache.snapshot() is before


@pytest.mark.requirement("S2-61", "S2-62", "S2-63")
def test_a_registry_is_locked_once_and_only_then_gives_a_snapshot_nobody_can_change(caplog):
    installed = InstalledRegistry()
    installed.load(built())
    with pytest.raises(NotLocked, match=r"^Must call lock\(\) before snapshot\(\)$"):
        installed.snapshot()
    installed.lock()
    assert "Already locked" not in caplog.text
    installed.lock()
    assert caplog.text.count("Already locked") == 1
    shot = installed.snapshot()
    assert (shot["version"], shot["gitCommit"]) == (built().version, built().commit)
    assert {"toolId": "notes:add", "version": "1.0.0", "category": "action"} in shot["tools"]
    for change in (
        lambda: shot.update(version="2"),
        lambda: shot["tools"].append(1),
        shot["tools"][0].clear,
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert installed.snapshot() == shot


@pytest.mark.requirement("S2-64", "C-36")
async def test_production_refuses_to_reload_and_development_takes_the_new_version(tmp_path):
    production, development = (tmp_path / name for name in ("p", "d"))
    for folder in (production, development):
        folder.mkdir()
    locked, free = Rig(production), Rig(development, locked=False)
    newer = json.loads(BUILTIN) | {
        "version": "1.0.00c0ffee",
        "apps": json.loads(BUILTIN)["apps"][:1],
    }
    for folder in (production, development):
        (folder / "tool_registry.json").write_text(json.dumps(newer))
    with pytest.raises(RegistryLocked, match="production mode"):
        locked.cache.installed.load(built())
    held, held_now = locked.cache.snapshot(), free.cache.snapshot()
    assert "1.0.00c0ffee is on disk" in await locked.cache.read_installed()
    assert locked.cache.snapshot() is held
    assert await free.cache.read_installed() == ""
    assert free.cache.snapshot().version == "1.0.00c0ffee"
    assert len(held_now.entries()) > len(free.cache.snapshot().entries()), (
        "a snapshot that is held stays as it was"
    )
    assert (
        locked.cache.describe()["local"]["locked"],
        free.cache.describe()["local"]["locked"],
    ) == (True, False)


async def test_a_registry_that_cannot_be_read_again_leaves_the_old_one(tmp_path):
    rig = Rig(tmp_path, locked=False)
    before = rig.names()
    (tmp_path / "tool_registry.json").write_text("{")
    assert await rig.cache.read_installed() == ""
    assert rig.names() == before
    assert "those before stay" in rig.happened(Alarmed)[-1].text
    (tmp_path / "tool_registry.json").write_text(BUILTIN)
    await rig.cache.read_installed()
    assert rig.happened(Alarmed)[-1].over


# ------------------------------------------------------------------ ten thousand


@pytest.mark.requirement("I5-10000")
async def test_a_registry_in_force_compiles_nothing_before_a_call_and_keeps_few_validators(
    tmp_path,
    cloud,  # noqa: F811
    monkeypatch,
):
    monkeypatch.setattr(schemas, "KEPT", 8)
    schemas._compiled.clear()
    cloud.document = document(
        *(
            {
                **app(f"com.a{n}"),
                "tools": [
                    {
                        "name": "t",
                        "description": "",
                        "inputSchema": {
                            "type": "object",
                            "properties": {f"p{n}": {"type": "string"}},
                        },
                    }
                ],
            }
            for n in range(40)
        )
    )
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    assert not schemas._compiled
    for n in range(40):
        tool = rig.cache.snapshot().find(f"com.a{n}:t").definition
        assert [p["path"] for p in rig.cache.check_args(tool, {f"p{n}": 1})[1]] == [f"/p{n}"]
    assert len(schemas._compiled) == 8
