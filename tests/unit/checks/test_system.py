"""A program that is missing on this machine skips the tests that need it, and the end of the
run says how many.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import system

ROOT = Path(__file__).parents[3]
NEEDS = """
from tests.system import PACKAGES, needs, program
PACKAGES["no-such-program"] = "its-package"

@needs("no-such-program")
def test_marked(): raise AssertionError("runs without its program")

def test_asking():
    program("no-such-program")
    raise AssertionError("runs without its program")

def test_other(): pass
"""


@pytest.mark.timeout(300)  # a whole run of pytest, on a machine that has others to do
@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
@pytest.mark.requirement("I11-skips-counted")
def test_tests_without_their_program_are_skipped_and_counted_and_fail_in_ci(tmp_path, ci, status):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_needs.py").write_text(NEEDS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed, 2 skipped" in ran.stdout
    assert (
        "SKIPPED, because programs are missing here: "
        "2 for no-such-program: apt-get install its-package"
    ) in ran.stdout
    assert ("SKIPPED BUT NOT ALLOWED" in ran.stdout) is bool(ci)
    assert ran.returncode == status


@pytest.mark.timeout(300)
@pytest.mark.requirement("I11-long-tmpdir")
def test_a_test_can_open_a_unix_socket_also_where_tmpdir_is_long(tmp_path):
    long = tmp_path / ("temporary" * 8)
    long.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_socket.py").write_text(
        "import socket\ndef test_with_a_name_of_more_than_thirty_characters(tmp_path):\n"
        "    (tmp_path / 'run').mkdir()\n    "
        "socket.socket(socket.AF_UNIX).bind(str(tmp_path / 'run' / 'control.sock'))\n"
    )
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(long)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def test_skips_for_other_reasons_are_not_counted():
    assert system.counted(["Skipped: not on this radio", "there is no bluetoothd on bumble"]) == ""
    reasons = [
        "Skipped: needs groff: apt-get install groff",
        *["needs mosquitto: apt-get install mosquitto"] * 2,
    ]
    assert (
        system.counted(reasons) == "2 for mosquitto, 1 for groff: apt-get install groff mosquitto"
    )


def test_a_process_that_has_ended_runs_no_more_also_while_nobody_has_collected_it():
    child = subprocess.Popen(["sleep", "600"])
    assert system.runs(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays as it is
    assert system.state(child.pid) == "Z"
    assert not system.runs(child.pid)
    child.wait()
    assert not system.runs(child.pid)
