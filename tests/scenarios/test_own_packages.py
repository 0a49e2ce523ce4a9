"""Story: somebody writes a Python tool as docs/tools.md says, names its directory, and the
glasses can do something new.
"""

import json
import os
import re
from pathlib import Path

import pytest

from edge.config import load
from edge.config.validators import BadSettings
from edge.core import call_summary
from edge.daemon import user_tools as own_tools
from edge.tools import offline_listing, user_tools
from tests.scenarios.world import world
from tools_cache.builder import user_packages
from tools_cache.registry import tool_docs

GUIDE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
OWN = GUIDE.partition("## A tool of your own")[2].partition("The eleven fields")[0]


def written(package, folder="my_dice"):
    """The example of the guide, pasted: each of its files under the name above it."""
    place = package / folder
    place.mkdir(parents=True, exist_ok=True)
    for name, text in re.findall(r"`my_dice/([\w.]+)`:\n\n```\w*\n(.*?)```\n", OWN, re.DOTALL):
        (place / name).write_text(text)
    for path in (package, place, *place.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return place


def changed(place, **fields):
    schema = json.loads((place / "schema.json").read_text())
    (place / "schema.json").write_text(json.dumps({**schema, **fields}))


def read(package):
    return user_tools.read([], [str(package)])


def named(own):
    return [tool.name for tool in own.tools]


@pytest.mark.requirement("OWN-python")
def test_the_example_of_the_guide_is_a_tool(tmp_path):
    place = written(tmp_path / "packages")
    assert sorted(path.name for path in place.iterdir()) == [
        "config.py",
        "doc.md",
        "doc_summary.md",
        "handler.py",
        "schema.json",
    ]
    own = read(tmp_path / "packages")
    assert (named(own), own.problems) == (["my:dice"], ())
    assert own.digest


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.requirement("OWN-python")
async def test_it_runs_in_the_daemon_and_is_read_again_on_a_reload(tmp_path):
    package = tmp_path / "packages"
    async with world(tmp_path) as place:
        place.sections["tools"] = {"packages": [str(package)]}
        await place.switch_glasses_on()
        folder = written(package)
        await place.start_daemon()
        await place.ready()
        await place.daemon.own_tools.reload()
        answer = await place.call("my:dice", {"sides": 1, "count": 3})
        assert answer.data["rolled"] == [1, 1, 1]
        assert (answer.meta["route"], answer.meta["delivery"]) == ("local", "shown")
        await place.lens_shows("1, 1, 1")
        refused = await place.call("my:dice", {"sides": 1, "count": 6})
        assert (refused.error.code, refused.error.message) == (
            "INVALID_ARGUMENTS",
            "count: at most 5 dice are set in [tool.my.dice] most",
        )
        assert (await place.call("my:dice", {"sides": 0})).error.code == "INVALID_ARGUMENTS"
        described = await place.call("registry:describe", {"tool": "my:dice"})
        assert "## Failure Modes" in json.dumps(described.data)

        handler = (folder / "handler.py").read_text()
        (folder / "handler.py").write_text(
            handler.replace('"rolled": rolled', '"rolled": rolled, "again": True')
        )
        await place.daemon.own_tools.reload()
        assert (await place.call("my:dice", {"sides": 1})).data["again"] is True
        (folder / "handler.py").write_text("import edge\n" + handler)
        await place.daemon.own_tools.reload()
        assert (await place.call("my:dice", {"sides": 1})).error.code == "TOOL_NOT_FOUND"
        assert "my_dice/handler.py" in json.dumps(
            place.daemon.status()["registry"]["own"]["problems"]
        )


@pytest.mark.requirement("OWN-python")
def test_one_bad_tool_costs_no_other_and_is_named_with_file_and_field(tmp_path):
    package = tmp_path / "packages"
    written(package)
    changed(written(package, "my_bad"), toolId="my_bad", name="my:bad", latencyBudgetMs=0)
    (written(package, "my_worse") / "handler.py").unlink()
    (package / "my_empty").mkdir(mode=0o755)
    own = read(package)
    assert named(own) == ["my:dice"]
    said = {
        Path(problem.name).relative_to(package).as_posix(): problem.reason
        for problem in own.problems
    }
    assert said["my_bad/schema.json"].startswith(
        "latencyBudgetMs: must be a positive number, not 0"
    )
    assert said["my_worse/handler.py"] == "Missing required file: handler.py"
    assert set(said) == {"my_bad/schema.json", "my_worse/handler.py", "my_empty/schema.json"}


@pytest.mark.asyncio(loop_scope="session")
async def test_it_takes_no_name_of_this_installation(tmp_path):
    package = tmp_path / "packages"
    changed(written(package, "notes_add"), toolId="notes_add", name="notes:add")
    async with world(tmp_path) as place:
        place.sections["tools"] = {"packages": [str(package)]}
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        await place.daemon.own_tools.reload()
        assert (await place.call("notes:add", {"text": "milk"})).data["text"] == "Noted: milk"
        assert "notes:add" in json.dumps(place.daemon.status()["registry"]["own"]["problems"])


@pytest.mark.requirement("OWN-python-trusted")
@pytest.mark.parametrize("what", ["", "my_dice", "my_dice/handler.py", "my_dice/config.py"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_may_write_is_not_run(tmp_path, what, mode):
    package = tmp_path / "packages"
    written(package)
    path = package / what
    path.chmod(path.stat().st_mode | mode)
    own = read(package)
    assert named(own) == []
    assert own.problems[0].reason.endswith(f"chmod go-w {path}")
    path.chmod(path.stat().st_mode & ~mode)
    assert named(read(package)) == ["my:dice"]


@pytest.mark.requirement("OWN-python-trusted")
def test_what_belongs_to_another_user_is_not_run(tmp_path):
    package = tmp_path / "packages"
    handler = written(package) / "handler.py"
    problems, users = [], ()
    if os.getuid() == 0:
        os.chown(handler, 12345, -1)
    else:
        users = (os.getuid() + 1,)  # then it is us who are the other user
    assert list(user_packages.folders([str(package)], problems, users)) == []
    assert len(problems) == 1


@pytest.mark.requirement("OWN-python-trusted")
@pytest.mark.parametrize("what", ["", "handler.cpython-311.pyc"])
def test_compiled_code_that_others_may_write_is_not_run(tmp_path, what):
    """Python runs what lies in __pycache__ instead of the handler."""
    package = tmp_path / "packages"
    compiled = written(package) / "__pycache__"
    compiled.mkdir(mode=0o755)
    (compiled / "handler.cpython-311.pyc").write_bytes(b"")
    (compiled / "handler.cpython-311.pyc").chmod(0o644)
    assert named(read(package)) == ["my:dice"]
    (compiled / what).chmod((compiled / what).stat().st_mode | 0o002)
    own = read(package)
    assert named(own) == []
    assert own.problems[0].reason.endswith(f"chmod go-w {compiled / what}")


def test_a_directory_that_is_named_by_a_link_is_read_where_the_link_leads_now(tmp_path):
    """What was checked is what is read, and run later, whatever becomes of the link."""
    written(tmp_path / "packages")
    (tmp_path / "link").symlink_to(tmp_path / "packages")
    [tool] = read(tmp_path / "link").tools
    assert (
        tool_docs.folder_of(tool, Path("/nowhere")) == tmp_path.resolve() / "packages" / "my_dice"
    )


def test_a_question_says_that_it_is_the_owners_own_tool(tmp_path):
    written(tmp_path / "packages")
    [tool] = read(tmp_path / "packages").tools
    assert call_summary.origin(tool) == "your own tools"


@pytest.mark.parametrize(
    "kind", ["link", "open folder above", "group's folder above", "pipe", "missing", "relative"]
)
def test_a_place_that_somebody_else_could_change_is_not_read(tmp_path, kind):
    package = tmp_path / "above" / "packages"
    place = written(package)
    if kind == "link":
        place.rename(tmp_path / "elsewhere")
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "open folder above":
        (tmp_path / "above").chmod(0o777)
    elif kind == "group's folder above":
        (tmp_path / "above").chmod(0o775)
    elif kind == "pipe":
        (place / "doc.md").unlink()
        os.mkfifo(place / "doc.md")
    own = user_tools.read(
        [], [{"missing": str(package / "no"), "relative": "packages"}.get(kind, str(package))]
    )
    assert named(own) == []
    assert len(own.problems) == 1


def test_settings_of_such_a_tool_are_checked_by_its_own_form(tmp_path):
    package = tmp_path / "packages"
    written(package)
    config = tmp_path / "glassd.toml"
    config.write_text(f'version = 1\n[tools]\npackages = ["{package}"]\n[tool.my.dice]\nmost = 7\n')
    assert load.load(config, {}).tool.values["my:dice"]["most"] == 7
    config.write_text(config.read_text().replace("most = 7", "mots = 7"))
    with pytest.raises(BadSettings, match="did you mean most"):
        load.load(config, {})
    config.write_text(
        config.read_text().replace("mots = 7", "most = 7").replace("my.dice", "my.dcie")
    )
    with pytest.raises(BadSettings, match=r"did you mean tool\.my\.dice"):
        load.load(config, {})


@pytest.mark.parametrize("wrong", ["chmod", "no schema", "no directory"])
def test_a_tool_that_is_left_out_does_not_make_the_configuration_wrong(tmp_path, wrong):
    package = tmp_path / "packages"
    place = written(package)
    (place / "config.py").write_text("raise SystemExit('this code was run')")
    if wrong == "chmod":
        (place / "config.py").chmod(0o666)
    elif wrong == "no schema":
        (place / "schema.json").unlink()
    else:
        package.rename(tmp_path / "elsewhere")
    config = tmp_path / "glassd.toml"
    config.write_text(f'version = 1\n[tools]\npackages = ["{package}"]\n[tool.my.dice]\nmost = 7\n')
    assert "my:dice" not in load.load(config, {}).tool.values
    assert read(package).problems


def test_without_a_daemon_it_is_listed_too(tmp_path):
    written(tmp_path / "packages")
    env = {"HOME": str(tmp_path), "GLASSD_TOOLS__PACKAGES": str(tmp_path / "packages")}
    rows = {row["name"]: row for row in offline_listing.read(env, now=0.0).tools}
    [tool] = read(tmp_path / "packages").tools
    row = rows["my:dice"]
    assert (row["description"], row["inputSchema"], row["sideEffects"]) == (
        tool.description,
        tool.input_schema,
        tool.side_effects,
    )


@pytest.mark.asyncio(loop_scope="session")
async def test_the_child_reads_what_the_daemon_would(tmp_path):
    written(tmp_path / "packages")
    there = [str(tmp_path / "packages")]
    assert await own_tools.read_again([], there) == user_tools.read([], there)
