"""The owner's tools: an error is corrected where the doctor says, a missing secret is provided."""

import json
import os

import pytest

from edge.config.model import Settings, ToolsConfig
from edge.doctor.machine import ExaminedMachine, Unit, Who
from edge.doctor.models import Mark
from edge.doctor.user_tools import UserToolChecks
from tests.scenarios.test_own_packages import written
from tests.unit.doctor.test_service import STATUS, answers

WEATHER = """name = "my:weather"
description = "The weather of a town."
[inputSchema]
type = "object"
[execution]
methd = "GET"
url = "https://weather.example/today"
headers = { Authorization = "Bearer ${env.WEATHER_TOKEN}" }
"""


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_error_in_an_own_tool_names_its_file(sandbox):
    file = sandbox.folder / "tools.d" / "weather.toml"
    file.parent.mkdir()
    file.write_text(WEATHER)
    finding = await sandbox.sees("own")
    assert finding.mark is Mark.WARN
    assert "did you mean method?" in finding.said
    assert finding.fix.text == f"correct {file}, then: systemctl reload glassd"
    file.write_text(WEATHER.replace("methd", "method"))
    await sandbox.does(finding)
    assert "systemctl reload glassd" in sandbox.ran
    assert (await sandbox.sees("own")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_tool_that_waits_for_a_secret_is_given_it(sandbox):
    (sandbox.folder / "tools.d").mkdir()
    (sandbox.folder / "tools.d" / "weather.toml").write_text(WEATHER.replace("methd", "method"))
    answers(
        sandbox,
        registry={"own": {"withheld": {"my:weather": "the secret WEATHER_TOKEN is not there"}}},
    )
    finding = await sandbox.sees("own")
    assert finding.mark is Mark.WARN
    assert (
        finding.fix.text
        == "give it what it waits for (the secret WEATHER_TOKEN is not there), then restart glassd"
    )
    (sandbox.folder / "status.json").write_text(
        json.dumps(STATUS)
    )  # what a daemon says that was started with it
    assert (await sandbox.sees("own")).mark is Mark.OK


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to the daemon's user")
async def test_python_tools_that_belong_to_the_daemons_user_are_all_right(sandbox):
    """Another user runs the doctor; the daemon's user is the one that counts."""
    daemon = Who(12345, "glassd")
    package = sandbox.folder / "packages"
    written(package)
    for path in (package, *package.rglob("*")):
        os.chown(path, daemon.uid, -1)
    sandbox.changed["user"] = lambda _name: daemon
    settings = Settings(tools=ToolsConfig(packages=(str(package),)))
    patient = ExaminedMachine(
        sandbox.machine,
        settings=settings,
        env=sandbox.machine.env,
        unit=Unit("systemctl", {"User": "glassd"}),
    )
    finding = await UserToolChecks(patient).own()
    assert (finding.mark, finding.said) == (Mark.OK, f"1 tools in {package}")


@pytest.mark.requirement("I4-doctor-fixes", "I11-folder-said")
@pytest.mark.parametrize(
    ("section", "key"), [("kb", "folder"), ("calendar", "folder"), ("tools", "folders")]
)
async def test_a_named_folder_that_is_not_there_is_made(sandbox, section, key):
    stick = sandbox.folder / "stick"
    written = [str(stick)] if key == "folders" else str(stick)
    text = sandbox.config.read_text()
    sandbox.config.write_text(f"{text}\n[{section}]\n{key} = {json.dumps(written)}\n")
    finding = await sandbox.sees("folders")
    assert finding.mark is Mark.FAIL
    assert finding.said == f"[{section}] {key} {stick}: there is no such folder"
    assert finding.fix.text.startswith(
        f"make or mount {stick}, or correct [{section}] {key} in {sandbox.config}"
    )
    stick.write_text("")
    assert "this is a file, not a folder" in (await sandbox.sees("folders")).said
    stick.unlink()
    stick.mkdir()
    assert (await sandbox.sees("folders")).mark is Mark.OK


async def test_without_folders_there_is_nothing_to_check(sandbox):
    assert (await sandbox.sees("folders")).mark is Mark.SKIP
