"""`glassd tools` without a daemon: from real files, as a whole process and as the reading alone."""

import json
import socket
from importlib import resources
from pathlib import Path

import pytest

from edge.cloud.enrolment.credentials import Enrolled, EnrolmentFiles
from edge.config.load import load
from edge.control.listings import listed, unchosen
from edge.core.tools.registry import Union
from edge.core.tools.selection_rules import BY_USER
from edge.core.tools.snapshot import DISABLED
from edge.daemon.startup import read as begin
from edge.runtime.clock import Clock
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase
from edge.storage.tool_choices import ToolChoices
from edge.tools import offline_listing, user_tools
from tests.off_at_first import off_at_first
from tests.test_imports import loaded
from tests.unit.commands.test_cli import glassd
from tests.unit.control.house import open_house
from tests.unit.tools.test_registry import app, document
from tools_cache.api.tool import Source
from tools_cache.registry import manifest
from tools_cache.registry.models import HARDWARE_KEY
from tools_cache.registry.registry_store import Generation, RegistryStore

BY_ITSELF = "switched off (set enabled = true in [tool.domaindoc])"

pytestmark = pytest.mark.enable_socket

CLOUD = "http://127.0.0.1:9"
"""The discard port: a cloud that is away."""
BUILTIN = Path(str(resources.files("tools_cache"))) / "tool_registry.json"
DAY_S = 86_400.0


class Machine:
    """A home of its own, with what a daemon left there."""

    def __init__(self, path, *, config=f'version = 1\n[cloud]\nurl = "{CLOUD}"\n'):
        self.state = path / ".local" / "state" / "glassd"
        self.env = {"HOME": str(path), "XDG_RUNTIME_DIR": str(path / "run")}
        if config:
            folder = path / ".config" / "glassd"
            folder.mkdir(parents=True)
            (folder / "glassd.toml").write_text(config)

    def keep(self, *apps, at=0.0, base=CLOUD, refused=None, **head):
        body = json.dumps(document(*apps, **head)).encode()
        RegistryStore(self.state / "registry").save(
            Generation(body, base, fetched_wall=at, refused=refused or {})
        )

    def read(self, now=DAY_S, **env):
        return offline_listing.read({**self.env, **env}, now=now)


def named(found):
    return {row["name"]: row for row in found.tools}


def of_the_cloud(found):
    return sorted(row["name"] for row in found.tools if row["source"] == "cloud")


# ------------------------------------------------------------------ as a user sees it


@pytest.mark.requirement("I5-cold-tools")
async def test_without_a_daemon_tools_are_listed_from_disk_with_their_age(tmp_path):
    machine = Machine(tmp_path)
    machine.keep(app("com.calc", "add"), at=0.0)
    people, program = (
        await glassd("tools", **machine.env),
        await glassd("tools", "--json", **machine.env),
    )
    assert (people.code, program.code, program.err) == (0, 0, "")
    assert "com.calc:add" in people.out
    assert "registry v1: the copy kept on disk, " in people.out
    assert " d old" in people.out
    assert "glassd is not running" in people.err
    told = program.json
    assert (told["running"], told["registry"]["origin"], told["version"]) == (False, "disk", "v1")
    assert told["registry"]["age_s"] > DAY_S


async def test_a_category_without_tools_is_exit_4_from_disk_too(tmp_path):
    assert (await glassd("tools", "--category", "media", **Machine(tmp_path).env)).code == 4


@pytest.mark.requirement("S2-130")
async def test_tools_for_voice_mode_are_listed_from_disk_too(tmp_path):
    env = Machine(tmp_path).env
    voice, whole = (
        await glassd("tools", "--mode", "voice", "--json", **env),
        await glassd("tools", "--mode", "voice", "--all", "--json", **env),
    )
    assert "voice:start" not in (offered := {t["name"] for t in voice.json["tools"]})
    assert "voice:end" in offered
    assert {t["hidden"] for t in whole.json["tools"] if t["name"] == "voice:start"} == {
        "not for voice mode"
    }


@pytest.mark.requirement("I5-cold-tools")
async def test_a_running_daemon_says_how_old_its_tools_are(tmp_path):
    origin = {
        "origin": "disk",
        "version": "1.0.7",
        "age_s": 7200.0,
        "error": "the cloud cannot be reached",
    }
    async with open_house(tmp_path, origin=lambda: origin) as house:
        people, program = (
            await glassd("tools", "--socket", str(house.path)),
            await glassd("tools", "--json", "--socket", str(house.path)),
        )
    assert people.out.splitlines()[-1].endswith(
        "the copy kept on disk, 2 h old; the cloud cannot be reached"
    )
    assert (program.json["running"], program.json["registry"]["age_s"]) == (True, 7200.0)


async def test_a_daemon_that_was_named_is_not_answered_for(tmp_path):
    machine = Machine(tmp_path)
    ran = await glassd("tools", GLASSD_SOCKET=str(tmp_path / "none.sock"), **machine.env)
    assert (ran.code, ran.out) == (3, "")


async def test_a_daemon_that_died_and_left_its_socket_is_no_daemon(tmp_path):
    machine = Machine(tmp_path)
    machine.keep(app("com.calc", "add"))
    left = tmp_path / "run" / "glassd" / "control.sock"
    left.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(left))
    ran = await glassd("tools", "--json", **machine.env)
    assert (ran.code, ran.json["running"], ran.json["registry"]["origin"]) == (0, False, "disk")


def test_reading_the_disk_loads_no_large_library():
    code = (
        "import os; from edge.tools import offline_listing as cold; assert "
        "cold.read({'HOME': '/nonexistent'}, now=0.0).tools"
    )
    assert not loaded(code) & {
        "pydantic",
        "dataclasses",
        "asyncio",
        "http",
        "tomllib",
        "logging",
        "sqlite3",
        "hashlib",
    }


# ------------------------------------------------------------------ what is read


def test_it_lists_what_the_daemon_would_list(tmp_path):
    machine = Machine(tmp_path)
    apps = (
        app(
            "com.calc",
            "add",
            "sub",
            needs=["DISPLAY"],
            category="nonsense",
            mentraExtensions={"activationPhrases": ["add up"]},
        ),
        app("com.bad", "a:b"),
        {"packageName": "com.none"},
        app("notes", "add"),
    )
    machine.keep(*apps, refused={"com.calc:sub": "its schema does not compile"})
    ours = named(machine.read())
    local = manifest.load(BUILTIN.read_bytes(), source=Source.LOCAL, trusted=True)
    remote = manifest.load(json.dumps(document(*apps)).encode())
    union = Union.of(local.apps, remote.apps).snapshot(
        "v", None, stale=False, unusable={"com.calc:sub": "its schema does not compile"}
    )
    theirs = {row["name"]: row for row in (listed(e, unchosen(e)) for e in union.entries())}
    assert ours.keys() == theirs.keys()
    for name, row in ours.items():
        same = {key: value for key, value in row.items() if key not in {"needs", "hidden"}}
        assert same == {key: theirs[name][key] for key in same}, name
        assert set(row["needs"]) == set(theirs[name]["missing"]) or row["hidden"]
    assert (
        ours["com.calc:sub"]["hidden"]
        == theirs["com.calc:sub"]["hidden"]
        == "its schema does not compile"
    )
    assert ours["glasses:say"]["needs"] == ["SPEAKER"]
    assert (offline_listing.HARDWARE_KEY, offline_listing.OFF, offline_listing.SWITCHED_OFF) == (
        HARDWARE_KEY,
        DISABLED,
        BY_USER,
    )


TOOL = {"name": "x", "description": "d", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    "bad",
    [
        {"packageName": "b", "tools": [{**TOOL, "mentraExtensions": "abc"}]},
        {"packageName": "b", "tools": 5},
        {"packageName": "b:b", "tools": [TOOL]},
        {"packageName": "b", "hardwareRequirements": "CAMERA", "tools": [TOOL]},
        {"packageName": "b", "hardwareRequirements": [{}], "tools": [TOOL]},
        {
            "packageName": "b",
            "tools": [
                {**TOOL, "category": ["x"]},
                {**TOOL, "allowedModes": None},
                {**TOOL, "name": "a b"},
                7,
            ],
        },
        [],
        "b",
    ],
)
def test_an_invalid_tool_in_a_stored_copy_does_not_hide_others(tmp_path, bad):
    machine = Machine(tmp_path)
    apps = (bad, app("com.calc", "add"))
    machine.keep(*apps)
    theirs = manifest.load(json.dumps(document(*apps)).encode(), trusted=True)
    assert (
        of_the_cloud(machine.read())
        == [tool.name for found in theirs.apps for tool in found.tools]
        == ["com.calc:add"]
    )


def test_the_environment_wins_and_a_switched_off_tool_has_its_reason(tmp_path):
    folder, text = (
        tmp_path / "more",
        (
            "version = 1\n[policy]\ntools_enabled = false\n[tool.clock.now]\n"
            "enabled = false\n[tool.timer]\nlist = 5\n"
        ),
    )
    folder.mkdir()
    (folder / "t.json").write_text(json.dumps(OWN))
    machine = Machine(tmp_path, config=text)
    (machine.state).mkdir(parents=True)
    (machine.state / "tools_off.json").write_text('{"ann": ["timer:list"]}')
    env = {
        "GLASSD_POLICY__TOOLS_ENABLED": "on",
        "GLASSD_EDGE__USER_ID": "ann",
        "GLASSD_TOOLS__FOLDERS": str(folder),
    }
    for listed_so in ("notes:*, kb:get", '["notes:*", "kb:get"]'):
        found = {
            name: row["hidden"]
            for name, row in named(
                machine.read(**env, GLASSD_POLICY__DISABLED_TOOLS=listed_so)
            ).items()
        }
        assert {name for name, why in found.items() if why == DISABLED} == {
            "notes:add",
            "notes:list",
            "notes:remove",
            "notes:search",
            "kb:get",
        }
    assert (found["clock:now"], found["timer:list"]) == (
        "switched off ([tool.clock.now] enabled = false)",
        BY_USER.format(name="timer:list"),
    )
    assert found["my:lamp"] == ""
    assert all(row["hidden"] for row in machine.read(GLASSD_POLICY__TOOLS_ENABLED="no").tools)


async def test_a_tool_that_a_user_switched_off_is_listed_as_off(tmp_path):
    machine = Machine(tmp_path)
    machine.state.mkdir(parents=True, exist_ok=True)
    db = await SqliteDatabase.open(machine.state / "glassd.db", MIGRATIONS, reserve=False)
    kept = ToolChoices(db, Clock())
    await kept.switch("local", {"notes:add": False, "clock:now": False, "timer:list": True})
    await kept.switch("ann", {"timer:start": False})
    await kept.switch("local", {"clock:now": True})
    await db.close()
    assert off(machine) == {"notes:add": "disabled: glassd tools enable notes:add"}
    for damage in ("", "[1]", '{"local": 5}', "{"):
        (machine.state / "tools_off.json").write_text(damage)
        assert off(machine) == {}


def off(machine):
    """What is off, but for the packages that are off by themselves."""
    hidden = {row["name"]: row["hidden"] for row in machine.read().tools if row["hidden"]}
    return {name: why for name, why in hidden.items() if not off_at_first(name)}


@pytest.mark.requirement("I15-package-settings")
@pytest.mark.parametrize(
    ("text", "search", "read"),
    [
        ("", BY_ITSELF, BY_ITSELF),
        ("[tool.domaindoc]\nenabled = true\n", "", ""),
        ("[tool.domaindoc.read]\nenabled = true\n", BY_ITSELF, ""),
        (
            "[tool.domaindoc]\nenabled = true\n[tool.domaindoc.read]\nenabled = false\n",
            "",
            "switched off ([tool.domaindoc.read] enabled = false)",
        ),
        (
            "[tool.domaindoc]\nenabled = false\n",
            "switched off ([tool.domaindoc] enabled = false)",
            "switched off ([tool.domaindoc] enabled = false)",
        ),
        ("[tool]\ndomaindoc = 5\n", BY_ITSELF, BY_ITSELF),
    ],
)
def test_a_package_is_switched_on_and_off_as_the_daemon_does(tmp_path, text, search, read):
    listed = named(Machine(tmp_path, config=f"version = 1\n{text}").read())
    assert (listed["domaindoc:search"]["hidden"], listed["domaindoc:read"]["hidden"]) == (
        search,
        read,
    )
    if "= 5" not in text:
        file = tmp_path / "again.toml"
        file.write_text(f"version = 1\n{text}")
        told = load(file, {}).tool.off
        assert (told.get("domaindoc:search", ""), told.get("domaindoc:read", "")) == (search, read)


@pytest.mark.requirement("I5-cold-damaged")
@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"format": 1}\n{}', None], ids=["empty", "cut", "headless", "flipped"]
)
def test_a_corrupt_newest_copy_changes_nothing_but_a_warning(tmp_path, damage):
    machine = Machine(tmp_path)
    machine.keep(app("com.calc", "add"))
    before = machine.read()
    machine.keep(app("com.calc", "add"))
    newest = machine.state / "registry" / "current.json"
    whole = newest.read_bytes()
    newest.write_bytes(whole.replace(b"com.calc", b"com.evil") if damage is None else damage)
    after = machine.read()
    assert after.tools == before.tools
    assert {**after.registry, "file": ""} == {**before.registry, "file": ""}
    assert [w for w in after.warnings if "current.json is damaged" in w]
    assert newest.exists(), "who only looks moves nothing"


def test_the_cloud_in_force_is_the_one_whose_copy_counts(tmp_path):
    machine = Machine(tmp_path)
    machine.keep(app("com.calc", "add"), base="http://another.example")
    found = machine.read()
    assert (of_the_cloud(found), found.registry["origin"], found.registry["age_s"]) == (
        [],
        "local",
        None,
    )
    assert of_the_cloud(machine.read(GLASSD_CLOUD__URL="http://another.example")) == [
        "com.calc:add"
    ]


@pytest.mark.requirement("I5-cold-enrolled")
def test_an_enrolled_edge_begins_with_the_copy_of_its_clouds_tools(tmp_path):
    machine = Machine(tmp_path, config="")
    machine.keep(app("com.calc", "add"))
    assert (of_the_cloud(machine.read()), begin(None, machine.env).registries.remote) == ([], None)
    EnrolmentFiles(machine.state).save(
        Enrolled(
            edge_id="e",
            tenant="t",
            host="b.example",
            port=8883,
            ca_pem="",
            enrol_host="b.example",
            enrol_port=1,
            enrol_ca_pem="",
            cloud_url=CLOUD,
        )
    )
    assert of_the_cloud(machine.read()) == ["com.calc:add"]
    assert [a.package for a in begin(None, machine.env).registries.remote.apps] == ["com.calc"]
    own_broker = {"GLASSD_UPLINK__HOST": "mine.example"}
    assert (
        of_the_cloud(machine.read(**own_broker)),
        begin(None, {**machine.env, **own_broker}).registries.remote,
    ) == ([], None)


def test_the_owners_switches_and_directories_are_read(tmp_path):
    state = tmp_path / "elsewhere"
    config = (
        f'version = 1\n[edge]\nstate_dir = "{state}"\n[cloud]\nurl = "{CLOUD}"\n'
        '[policy]\ndisabled_tools = ["notes:*", "com.calc:add"]\n'
    )
    machine = Machine(tmp_path, config=config)
    machine.state = state
    machine.keep(app("com.calc", "add", "sub"))
    off = {name for name, row in named(machine.read()).items() if row["hidden"] == DISABLED}
    assert off == {"notes:add", "notes:list", "notes:remove", "notes:search", "com.calc:add"}
    (tmp_path / ".config" / "glassd" / "glassd.toml").write_text(
        "version = 1\n[policy]\ntools_enabled = false\n"
    )
    assert all(row["hidden"] for row in machine.read().tools)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000,
        "[cloud",
        '[cloud]\nurl = 3\n[policy]\ndisabled_tools = "x"\n',
        "policy = 1\n",
    ],
)
def test_a_broken_configuration_is_said_and_stops_no_listing(tmp_path, text):
    found = Machine(tmp_path, config=text).read()
    assert named(found)["clock:now"]["hidden"] == ""


def test_a_registry_that_is_not_ours_to_read_is_said(tmp_path, monkeypatch):
    machine = Machine(tmp_path)
    machine.keep(app("com.calc", "add"))

    read_bytes = Path.read_bytes

    def refuse(self):
        if self.name == "current.json":
            raise PermissionError(13, "Permission denied")
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = machine.read()
    assert of_the_cloud(found) == []
    assert "may not be read by you" in found.warnings[0]


def test_a_missing_built_in_registry_is_said_with_its_cure(tmp_path):
    found = offline_listing.read(Machine(tmp_path).env, now=0.0, builtin=tmp_path / "none.json")
    assert (found.tools, found.warnings) == (
        [],
        ["the built-in tools cannot be read: run glassd registry build"],
    )


def test_the_systems_state_is_read_where_this_user_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(offline_listing, "SYSTEM_STATE", tmp_path / "system")
    machine = Machine(tmp_path)
    machine.state = tmp_path / "system"
    machine.keep(app("com.calc", "add"))
    assert of_the_cloud(machine.read()) == ["com.calc:add"]
    (tmp_path / ".local" / "state" / "glassd").mkdir(parents=True)
    assert of_the_cloud(machine.read()) == []


# ------------------------------------------------------------------ tools the owner made


OWN = {
    "name": "my:lamp",
    "description": "Switch it.",
    "execution": {"url": "https://h/x"},
    "activationPhrases": ["lamp"],
}


def test_the_owners_tools_are_listed_as_a_daemon_lists_them(tmp_path):
    machine, folder = Machine(tmp_path), tmp_path / ".config" / "glassd" / "tools.d"
    folder.mkdir()
    weather = {
        "name": "my:weather",
        "description": "Now.",
        "execution": {"url": "https://h/{{input.town}}", "method": "GET"},
        "inputSchema": {"type": "object", "properties": {"town": {"type": "string"}}},
        "sideEffects": "none",
    }
    (folder / "b.json").write_text(json.dumps({"tools": [OWN, weather]}))
    (folder / "read.toml").write_text(
        'name = "my:read"\ndescription = "Reads."\n[execution]\nmethod = "GET"\nurl = "https://h"\n'
    )
    found = named(machine.read())
    apps = {tool.name: tool for tool in user_tools.read([folder]).tools}
    assert (
        set(apps)
        == {name for name in found if name.startswith("my:")}
        == {"my:lamp", "my:weather", "my:read"}
    )
    for name, tool in apps.items():
        row = found[name]
        assert (row["description"], row["inputSchema"], row["sideEffects"]) == (
            tool.description,
            tool.input_schema,
            tool.side_effects,
        )
        assert (row["source"], row["app"], row["category"], row["hidden"]) == (
            "local",
            "my",
            tool.category,
            "",
        )
        assert tuple(row["activationPhrases"]) == tool.activation_phrases


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[1]",
        '{"tools": 5}',
        '{"tools": [5, {"name": 5}]}',
        '{"name": "x", "description": "d"}',
        '{"name": ":x", "description": "d"}',
        '{"name": "clock:now", "description": "Mine."}',
        (
            '{"name": "my:x", "description": "d", "activationPhrases": '
            '5, "execution": 5, "inputSchema": 5}'
        ),
        '{"name": "my:x", "description": "d", "category": ["x"]}',
        '{"name": "my:x", "description": "d", "_meta": 5}',
        '{"name": "my:x", "description": "d", "_meta": {"io.glassd/hardware": [{}]}}',
    ],
)
def test_what_is_no_tool_of_the_owners_is_passed_by(tmp_path, content):
    machine, folder = Machine(tmp_path), tmp_path / ".config" / "glassd" / "tools.d"
    folder.mkdir()
    before = named(machine.read())
    (folder / "t.json").write_text(content)
    (folder / "t.toml").mkdir()
    assert named(machine.read()) == before


def test_folders_the_settings_name_are_looked_into_too_and_what_is_off_is_hidden(tmp_path):
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "t.json").write_text(json.dumps(OWN))
    machine = Machine(
        tmp_path,
        config=(
            f'version = 1\n[tools]\nfolders = ["{folder}", '
            '"/nowhere"]\n[policy]\ndisabled_tools = ["my:*"]\n'
        ),
    )
    assert named(machine.read())["my:lamp"]["hidden"] == DISABLED
