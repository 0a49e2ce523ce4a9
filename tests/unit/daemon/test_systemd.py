"""The unit: it verifies, keeps what the daemon needs, and heeds each trap that was run into."""

import ast
import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system import program

SYSTEMD = Path(__file__).parents[3] / "systemd"


class _Lines(dict):
    """Repeated keys are lists, as systemd reads them."""

    def __setitem__(self, key, value):
        if isinstance(value, list) and key in self:
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


@pytest.fixture(scope="module")
def service():
    parser = configparser.RawConfigParser(strict=False, dict_type=_Lines, interpolation=None)
    parser.optionxform = str
    parser.read_string((SYSTEMD / "glassd.service").read_text(encoding="utf-8"))
    return {key: value.split("\n") for key, value in parser["Service"].items()}


def test_systemd_verifies_the_unit(tmp_path):
    tool = program("systemd-analyze")
    text = (SYSTEMD / "glassd.service").read_text(encoding="utf-8")
    copy = tmp_path / "glassd.service"
    copy.write_text(
        text.replace("ExecStart=glassd run", "ExecStart=/bin/true run"), encoding="utf-8"
    )
    ran = subprocess.run(
        [tool, "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    ours = [line for line in ran.stderr.splitlines() if "glassd" in line]
    assert (ours, ran.returncode) == ([], 0)


def test_systemd_finds_little_to_complain_about(tmp_path):
    tool = program("systemd-analyze")
    copy = tmp_path / "glassd.service"
    shutil.copy(SYSTEMD / "glassd.service", copy)
    ran = subprocess.run(
        [tool, "security", "--offline=true", "--threshold=15", str(copy)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr


def test_it_is_watched_and_comes_back(service):
    assert (service["Type"], service["WatchdogSec"], service["Restart"]) == (
        ["notify"],
        ["30"],
        ["always"],
    )


def test_it_reaches_bluez_and_the_boot_id(service):
    """DynamicUser resets the bus connection (trap 17), ProcSubset=pid hides the boot id (18)."""
    assert "DynamicUser" not in service
    assert "ProcSubset" not in service
    assert (service["User"], service["Group"]) == (["glassd"], ["glassd"])
    assert "AF_UNIX" in service["RestrictAddressFamilies"][0]


def test_it_starts_without_any_secret(service):
    """A path that is missing stops the unit (trap 19); a name that is found nowhere does not."""
    assert not [name for name in service["LoadCredential"] if ":" in name]


def test_every_credential_that_is_read_is_loaded_and_in_the_sample(service):
    """The daemon's own names are read from its source: (configured, name, …) of `credential`
    and `secret`.
    """
    sources = [
        ast.parse((SYSTEMD.parent / "edge" / f"{name}.py").read_text(encoding="utf-8"))
        for name in ("daemon/cloud_config", "daemon/tool_services", "daemon/app")
    ]
    calls = [
        n
        for tree in sources
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(("credential", "secret"))
    ]
    read = {n.args[1].value for n in calls if isinstance(n.args[1], ast.Constant)}
    assert len(read) == 6
    assert set(service["LoadCredential"]) == read
    sample = (SYSTEMD / "glassd.toml").read_text(encoding="utf-8")
    assert not [name for name in read if name not in sample]


def test_it_uses_nothing_newer_than_debian_12(service):
    """252 ignores these (trap 20)."""
    assert not {"RestartSteps", "RestartMaxDelaySec", "ImportCredential"} & set(service)
    assert service["Type"] != ["notify-reload"]


def test_a_configuration_that_cannot_be_used_is_not_tried_for_ever(service):
    from edge.cli import USAGE

    assert service["RestartPreventExitStatus"] == [str(USAGE)]


def test_the_group_can_reach_the_socket(service):
    assert int(service["RuntimeDirectoryMode"][0], 8) & 0o051 == 0o051, (
        "the owner's group passes through to its socket"
    )
    assert service["StateDirectoryMode"] == ["0700"]
    assert (
        (SYSTEMD / "glassd.sysusers")
        .read_text(encoding="utf-8")
        .splitlines()[-1]
        .startswith("u glassd - ")
    )
