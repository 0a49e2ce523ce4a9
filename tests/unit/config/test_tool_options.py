"""`[tool.PACKAGE.NAME]`: an unknown key is an error of the file, a wrong value switches its
tool off, a missing one has its default.
"""

import pickle
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import load, tool_options
from edge.config.model import LogConfig, Settings
from edge.config.validators import BadSettings
from edge.core.config_changes import plan
from edge.runtime.worker_process import WorkerProcess
from edge.tools import offline_listing
from edge.tools.registry import RegistrySettings
from tests.off_at_first import SETTINGS, off_at_first
from tests.unit.tools.test_local import body, make  # noqa: F401 - a fixture
from tests.unit.tools_cache.test_compiler import write
from tests.unit.tools_cache.test_handler_form import CONFIG


@pytest.fixture
def tools(tmp_path):
    """`demo:do` with settings of its own, `demo:plain` without."""
    folder = write(tmp_path / "tools")
    (folder / "demo_do" / "config.py").write_text(CONFIG)
    return write(folder, "demo_plain", toolId="demo_plain", name="demo:plain")


def told(tables, tools):
    settings, problems = tool_options.read(tables, tools)
    return settings.values, settings.off, [p.line("f") for p in problems]


@pytest.mark.requirement("S4-13", "S4-16")
def test_a_missing_key_has_its_default(tools):
    assert told({}, tools) == ({"demo:do": {"enabled": True, "folder": "", "most": 5}}, {}, [])
    assert told({"demo": {"plain": {}}}, tools)[0]["demo:plain"] == {"enabled": True}


@pytest.mark.requirement("S4-13")
def test_a_written_key_is_used_and_the_rest_stays(tools):
    values, off, problems = told({"demo": {"do": {"most": 9}, "plain": {"enabled": True}}}, tools)
    assert (values["demo:do"], off, problems) == (
        {"enabled": True, "folder": "", "most": 9},
        {},
        [],
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"most": "many"},
            "its settings are wrong ([tool.demo.do] most: Input should be a valid integer)",
        ),
        ({"most": 0}, "most: Input should be greater than or equal to 1"),
        ({"enabled": "yes"}, "enabled: Input should be a valid boolean"),
        ({"enabled": False}, "switched off ([tool.demo.do] enabled = false)"),
        ({"most": "hunter2"}, "most: Input should be a valid integer"),
    ],
)
@pytest.mark.requirement("S4-08", "S4-13")
def test_a_wrong_value_or_enabled_false_keeps_the_tool_off_and_says_why(tools, given, says):
    values, off, problems = told({"demo": {"do": given}}, tools)
    assert (list(values), list(off), problems) == ([], ["demo:do"], [])
    assert says in off["demo:do"]
    assert "hunter2" not in off["demo:do"]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"demo": {"do": {"mosst": 1}}}, "f: tool.demo.do.mosst: unknown key; did you mean most?"),
        (
            {"demo": {"do": {"xyz": "hunter2"}}},
            "f: tool.demo.do.xyz: unknown key; known: enabled, folder, most",
        ),
        ({"demo": {"plain": {"most": 1}}}, "f: tool.demo.plain.most: unknown key; known: enabled"),
        (
            {"demo": {"doo": {}}},
            "f: tool.demo.doo: there is no tool of this name here; did you mean tool.demo.do?",
        ),
        (
            {"demo": 5},
            (
                "f: tool.demo: must be the table of one tool; "
                "write [tool.PACKAGE.NAME], its keys below"
            ),
        ),
        (
            {"demo": {"do": 5}},
            (
                "f: tool.demo.do: must be the table of one tool; "
                "write [tool.PACKAGE.NAME], its keys below"
            ),
        ),
        (5, "f: tool: must be the table of one tool; write [tool.PACKAGE.NAME], its keys below"),
    ],
)
@pytest.mark.requirement("S4-13")
def test_an_unknown_key_is_an_error_with_the_nearest(tools, tables, says):
    assert told(tables, tools)[2] == [says]


@pytest.mark.requirement("I15-package-settings")
def test_a_key_of_a_package_is_for_all_its_tools_that_have_it(tools):
    tables = {"demo": {"most": 7, "enabled": True, "do": {"most": 3}}}
    values, off, problems = told(tables, tools)
    assert values == {
        "demo:do": {"enabled": True, "folder": "", "most": 3},
        "demo:plain": {"enabled": True},
    }
    assert (off, problems) == ({}, [])
    values, off, problems = told({"demo": {"enabled": False, "plain": {"enabled": True}}}, tools)
    assert values == {"demo:plain": {"enabled": True}}
    assert off == {"demo:do": "switched off ([tool.demo] enabled = false)"}
    assert problems == []


@pytest.mark.requirement("I15-package-settings")
def test_a_tool_that_is_off_by_itself_says_how_to_switch_it_on(tools):
    config = (tools / "demo_do" / "config.py").read_text()
    (tools / "demo_do" / "config.py").write_text(
        config.replace("enabled: bool = True", "enabled: bool = False")
    )
    assert told({}, tools)[1] == {"demo:do": "switched off (set enabled = true in [tool.demo])"}
    assert "demo:do" in told({"demo": {"enabled": True}}, tools)[0]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "not configured: set url and place in [tool.demo]"),
        ({"enabled": True}, "not configured: set url and place in [tool.demo]"),
        (
            {"url": "u"},
            "its settings are wrong ([tool.demo.do] place: Field required)",
        ),
    ],
)
@pytest.mark.requirement("I15-configured")
def test_a_tool_that_needs_settings_is_off_until_they_are_there(tools, table, why):
    (tools / "demo_do" / "config.py").write_text(CONFIG + "    url: str\n    place: str\n")
    assert told({"demo": table}, tools)[1] == {"demo:do": why}
    values, off, _ = told({"demo": {"url": "u", "place": "p"}}, tools)
    assert (off, values["demo:do"]["url"]) == ({}, "u")


@pytest.mark.requirement("I15-configured")
def test_a_tool_without_its_settings_is_no_fault_but_one_with_half_of_them_is(tools):
    (tools / "demo_do" / "config.py").write_text(CONFIG + "    url: str\n    place: str\n")
    assert tool_options.read({}, tools)[0].wrong == {}
    assert list(tool_options.read({"demo": {"url": "u"}}, tools)[0].wrong) == ["demo:do"]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"demo": {"mosst": 1}}, "f: tool.demo.mosst: unknown key; did you mean most?"),
        (
            {"demmo": {"most": 1}},
            "f: tool.demmo: there is no package of this name; did you mean tool.demo?",
        ),
    ],
)
def test_an_unknown_key_or_package_is_an_error(tools, tables, says):
    assert told(tables, tools)[2] == [says]


def test_a_package_that_may_be_one_of_the_owners_left_out_is_no_error(tools):
    assert tool_options.read({"mine": {"most": 1}}, tools, all_known=False)[1] == []


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("raise RuntimeError('broken')", "its config.py cannot be loaded: RuntimeError: broken"),
        ("Config = 5", "its config.py cannot be loaded: TypeError: Config must be a model"),
        ("import nowhere_at_all", "ModuleNotFoundError"),
        (
            CONFIG.replace("enabled: bool = True", "other: bool = True"),
            "Config must be a model with enabled: bool",
        ),
    ],
)
def test_a_broken_config_switches_off_its_tool_only(tools, config, says):
    (tools / "demo_do" / "config.py").write_text(config)
    values, off, problems = told({"demo": {"plain": {}}}, tools)
    assert (list(values), problems) == (["demo:plain"], [])
    assert says in off["demo:do"]


@pytest.mark.requirement("S4-13")
def test_the_daemon_reads_them_in_a_child_and_keeps_plain_values(tmp_path):
    file = tmp_path / "glassd.toml"
    file.write_text(
        'version = 1\n[tool.clock.now]\ntimezone = "Asia/Tokyo"\n'
        "[tool.notes.add]\nenabled = false\n"
    )
    settings = WorkerProcess(lambda: load.load(file, {})).result()
    assert settings.tool.values["clock:now"] == {"enabled": True, "timezone": "Asia/Tokyo"}
    off = {n: why for n, why in settings.tool.off.items() if not off_at_first(n)}
    assert off == {"notes:add": "switched off ([tool.notes.add] enabled = false)"}
    with pytest.raises(TypeError):
        settings.tool.values["clock:now"]["timezone"] = "Mars"
    assert pickle.loads(pickle.dumps(settings)).tool == settings.tool


@pytest.mark.parametrize(("own", "zone"), [("", "Europe/Berlin"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_a_tool_without_a_time_zone_of_its_own_has_the_wearers(tmp_path, own, zone):
    file = tmp_path / "glassd.toml"
    text = 'version = 1\n[wearer]\ntimezone = "Europe/Berlin"\n[tool.clock.now]\ntimezone = '
    file.write_text(f'{text}"{own}"\n')
    assert load.load(file, {}).tool.values["clock:now"] == {"enabled": True, "timezone": zone}


def test_a_file_with_an_unknown_key_of_a_tool_is_refused_whole(tmp_path):
    file = tmp_path / "glassd.toml"
    file.write_text('version = 1\n[tool.clock.now]\ntimezon = "x"\n[edge]\nnope = 1\n')
    with pytest.raises(BadSettings) as told:
        load.load(file, {})
    assert "tool.clock.now.timezon: unknown key; did you mean timezone?" in str(told.value)
    assert "edge.nope" in str(told.value)


def test_a_wrong_zone_switches_the_clock_off_and_says_what_it_must_be(tmp_path):
    file = tmp_path / "glassd.toml"
    file.write_text('version = 1\n[tool.clock.now]\ntimezone = "Mars/Base"\n')
    assert "is not a known time zone" in load.load(file, {}).tool.off["clock:now"]


async def test_a_tool_sees_its_settings_and_new_ones_from_the_next_call_on(make):  # noqa: F811
    rig = make(body("return [ctx.config['enabled'], ctx.config.get('most', 3)]"))
    assert (await rig.run("demo:do")).data == [True, 3]
    rig.local.configure({"demo:do": {"enabled": True, "most": 7}})
    assert (await rig.run("demo:do")).data == [True, 7]


@pytest.mark.requirement("S4-08")
async def test_a_tool_that_is_off_is_hidden_with_its_reason(make):  # noqa: F811
    rig = make(body("return 1"))
    rig.registry.apply(RegistrySettings(off={"demo:do": "its settings are wrong"}))
    assert rig.registry.snapshot().find("demo:do").hidden == "its settings are wrong"
    rig.registry.apply(RegistrySettings())
    assert rig.registry.snapshot().find("demo:do").hidden == ""


def test_a_reload_applies_tool_settings_at_once(tools):
    wanted = Settings(tool=tool_options.read({"demo": {"do": {"most": 2}}}, tools)[0])
    found = plan(Settings(), wanted)
    assert (found.effective.tool.values["demo:do"]["most"], found.live, found.restart) == (
        2,
        ("tool",),
        (),
    )
    assert plan(wanted, wanted).live == ()


SHIPPED = sorted(path for path in load.TOOLS.iterdir() if (path / "config.py").is_file())


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_shipped_tool_is_off_for_the_same_reason_without_its_model(folder):
    name = tool_options._canonical(folder)
    package = name.partition(":")[0]
    _, why, problems = tool_options._checked(name, {}, folder, {}, {})
    assert (tool_options._why_off_unset(folder / "config.py", package), problems) == (why, [])


def test_no_model_is_made_of_a_shipped_tool_whose_owner_sets_nothing(monkeypatch):
    made = []
    form = tool_options._form
    monkeypatch.setattr(
        tool_options, "_form", lambda folder: made.append(folder.name) or form(folder)
    )
    found, _ = tool_options.read({"kasa": {"switch": {"enabled": True}}}, load.TOOLS)
    assert made == ["clock_now", "kasa_switch"]
    assert len(found.off) + len(found.values) == len(SHIPPED)


def test_only_the_sections_that_are_there_get_a_model(monkeypatch):
    load._section_form.cache_clear()
    made = []
    form = load._form
    monkeypatch.setattr(
        load, "_form", lambda plain, **only: made.append(plain) or form(plain, **only)
    )
    settings = load.formed({"log": {"level": "debug"}})
    assert [plain.__name__ for plain in made] == ["Settings", "LogConfig"]
    assert settings == replace(Settings(), log=LogConfig(level="debug"))


def test_every_config_that_ships_is_loaded():
    shipped = Path(load.TOOLS)
    settings, problems = tool_options.read({}, shipped)
    assert {name.partition(":")[0] for name in settings.off} == set(SETTINGS)
    assert (dict(settings.wrong), problems) == ({}, [])
    with_settings = len(settings.values) + len(settings.off)
    assert with_settings == len(list(shipped.glob("*/config.py"))) >= 1
    settings, problems = tool_options.read(SETTINGS, shipped)
    assert (dict(settings.off), problems) == ({}, [])


@pytest.mark.parametrize(
    ("text", "env", "off"),
    [
        ("", {}, "switched off (set enabled = true in [history])"),
        ("[history]\nenabled = true\n", {}, None),
        ("", {"GLASSD_HISTORY__ENABLED": "true"}, None),
        (
            "[history]\nenabled = true\n[tool.continuum]\nenabled = false\n",
            {},
            "switched off ([tool.continuum] enabled = false)",
        ),
        (
            "[history]\nenabled = true\n[tool.continuum.forget]\nenabled = false\n",
            {},
            "switched off ([tool.continuum.forget] enabled = false)",
        ),
        ("[tool.continuum]\nenabled = true\n", {}, None),
    ],
)
def test_the_tools_of_the_history_are_switched_with_it(tmp_path, text, env, off):
    file = tmp_path / "glassd.toml"
    file.write_text(f"version = 1\n{text}")
    settings = load.load(file, env)
    assert settings.tool.off.get("continuum:forget") == off
    home = {**env, "HOME": str(tmp_path), "GLASSD_CONFIG": str(file)}
    listed = {row["name"]: row["hidden"] for row in offline_listing.read(home, now=0.0).tools}
    assert listed["continuum:forget"] == (off or "")


def test_the_tools_of_the_history_have_the_zone_of_the_wearer(tmp_path):
    file = tmp_path / "glassd.toml"
    file.write_text(
        'version = 1\n[history]\nenabled = true\n[wearer]\ntimezone = "Europe/Berlin"\n'
    )
    values = load.load(file, {}).tool.values
    assert values["context:recent"] == {"enabled": True, "timezone": "Europe/Berlin"}
