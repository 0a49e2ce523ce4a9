"""The fixture `glassd_mock`, used as an app developer uses it: by a pytest of its own, in a
folder that has nothing of ours.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from edge.testing import wear

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).parents[2]
LIMIT_S = 220

HEARD = '''
import os
from pathlib import Path

TOOL = """
name = "my:colour"
description = "Which colour?"
executionType = "space"
activationPhrases = ["pick a colour"]
"""


DOOR = """
name = "my:door"
description = "Open the door"
executionType = "external"
requiresConfirmation = "always"
"""


def test_speech_calls_an_own_tool_and_a_tap_answers(glassd_mock):
    glasses = glassd_mock("mock:full", tools=TOOL, config="[log]\\nlevel = 'warning'")
    assert "my:colour" in glasses.tools() and "glasses:notify" in glasses.hidden_tools()
    glasses.say("pick a colour")
    glasses.wait_for_lens("colour")
    glasses.tap()
    Path("left.txt").write_text(f"{glasses.folder} {' '.join(str(p.pid) for p in glasses._processes)}")


def test_a_yes_on_glasses_without_a_lens(glassd_mock):
    glasses = glassd_mock("mock:audio", tools=DOOR)
    call = glasses.start_call("my:door")
    glasses.confirm(within_s=150)
    assert call.result(timeout=40)["ok"], call.result()


def test_two_pairs_at_once_know_nothing_of_each_other(glassd_mock):
    one, other = glassd_mock("mock:display"), glassd_mock("sim:even_g1")
    one.call("glasses:show_text", text="Left alone")
    other.call("glasses:show_text", {"text": "Right"})
    one.wait_for_lens("Left")
    assert other.wait_for_lens("Right") == ["Right"]
    waits_in_vain(one)
    assert one.hear(bytes(3200)) == 0.1
    assert 0.4 < other.hear(say="hello there") < 3


def waits_in_vain(glasses):
    """What is waited for in vain says what was seen."""
    try:
        glasses.wait_for_lens("coffee", within_s=0.2)
    except AssertionError as e:
        assert "'coffee' on the lens; it shows ['Left alone']" in str(e)
    else:
        raise RuntimeError("it was not waited for")
'''  # noqa: E501

WRONG = """
def test_a_model_that_there_is_not(glassd_mock):
    glassd_mock("mock:monocle")

def test_settings_that_are_wrong(glassd_mock):
    glassd_mock("mock:display", config="[polcy]")
"""


@pytest.fixture
def fresh(tmp_path):
    """An installed glassd as pytest sees it, whatever is installed here: its entry points stand
    on the path.
    """
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "pytest11"
    ]
    info = tmp_path / "site" / "glassd-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: glassd\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[pytest11]\n" + "".join(f"{name} = {value}\n" for name, value in entry_points.items())
    )
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


def run_pytest(folder, text, *words, path=""):
    """Run a file of tests in a folder that has no configuration of pytest."""
    (folder / "test_app.py").write_text(text)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "GLASSD_"))}
    env["PYTHONPATH"] = os.pathsep.join(
        filter(None, (path, str(folder.parent / "site"), str(ROOT)))
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        *words,
        "test_app.py",
    ]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.requirement("I11-plugin")
def test_an_apps_tests_get_glasses_without_any_configuration(fresh):
    done = run_pytest(fresh, HEARD, "-n", "2", "-p", "no:asyncio", "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    folder, *pids = (fresh / "left.txt").read_text().split()
    assert not Path(folder).exists()
    assert len(pids) == 2
    assert not [pid for pid in pids if alive(pid)]


@pytest.mark.enable_socket
@pytest.mark.requirement("I11-plugin")
def test_settings_of_the_shell_do_not_reach_the_daemon_of_a_test(monkeypatch, tmp_path):
    """A developer who also runs glassd has them; they would win over the configuration of the
    test.
    """
    monkeypatch.setenv("GLASSD_EDGE__STATE_DIR", str(tmp_path / "real"))
    monkeypatch.setenv("GLASSD_OWNER_SOCKET", str(tmp_path / "real.sock"))
    with wear("mock:display") as glasses:
        assert (glasses.folder / "state").is_dir()
        assert not (tmp_path / "real").exists()
        asked = subprocess.run(
            [sys.executable, "-m", "edge", "scan", "--json"],
            env=glasses.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "real.sock" not in asked.stdout + asked.stderr


@pytest.mark.requirement("I11-plugin")
def test_a_mock_that_cannot_be_made_fails_the_test_in_words(fresh):
    done = run_pytest(fresh, WRONG)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed" in done.stdout
    assert "glassd_mock: " in done.stdout
    assert "mock:monocle" in done.stdout
    assert "did you mean policy" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.requirement("I11-plugin")
def test_a_missing_extra_is_named_with_the_command_that_installs_it(fresh):
    without = fresh.parent / "without"
    (without / "bumble").mkdir(parents=True)
    (without / "bumble" / "__init__.py").write_text(
        "raise ModuleNotFoundError('no', name='bumble')\n"
    )
    done = run_pytest(fresh, "def test_it(glassd_mock): glassd_mock()\n", path=str(without))
    assert done.returncode == 1, done.stdout + done.stderr
    assert (
        "-m pip install " in done.stdout
    )  # which of the commands depends on how glassd is installed
    assert "[sim]" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.requirement("I11-plugin")
def test_a_test_run_without_the_fixture_loads_nothing_of_glassd(fresh):
    asks = (
        "import sys\ndef test_it(): assert sorted(m for m in sys.modules if "
        "m.partition('.')[0] in ('edge', 'firmware_bridge', "
        "'tools_cache')) == ['edge', 'edge.pytest_plugin']\n"
    )
    done = run_pytest(fresh, asks)
    assert done.returncode == 0, done.stdout + done.stderr
