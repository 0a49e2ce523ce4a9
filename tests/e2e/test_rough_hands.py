"""What a hurried person does to a command line: Ctrl-C, a closed or full output, a file saved
by Notepad, an extra that is missing.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from io import StringIO
from pathlib import Path

import pytest

from edge.commands import call
from edge.commands.options import VERBS
from edge.commands.shared import extras
from edge.commands.shared.console import Screen
from edge.config import load
from edge.runtime.errors import UserError
from edge.tools import user_tools

GLASSD = (sys.executable, "-m", "edge")
OUR_FRAME = re.compile(r'File ".*/edge/(?:.*/)?([^/]+)\.py", line')
"""The name of a file of ours in a traceback."""
WORDS = {
    "call": ["notes:add"],
    "confirm": ["t"],
    "cancel": ["x"],
    "answer": ["x", "1"],
    "say": ["hello"],
    "unpair": ["x"],
    "completion": ["bash"],
    "registry": ["check"],
    "sim": ["mock:full", "--radio", "tcp:127.0.0.1:0"],
    "devcloud": ["--http", "127.0.0.1:0"],
    "demo": ["--script", "tour"],
    "llm": ["tools", "--provider", "mcp"],
    "up": [],
    "run": ["--config", "/nonexistent/glassd.toml"],
}


def env(tmp_path):
    places = {
        name: str(tmp_path)
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
    }
    return {
        **os.environ,
        **places,
        "GLASSD_SOCKET": str(tmp_path / "none.sock"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


@pytest.mark.enable_socket
@pytest.mark.requirement("CLI-output")
@pytest.mark.parametrize("verb", [name for name, *_ in VERBS])
@pytest.mark.parametrize(
    ("output", "more"),
    [("/dev/full", []), ("/dev/full", ["--json"]), ("closed", []), ("closed", ["--help"])],
)
def test_an_output_that_takes_nothing_is_an_error_and_no_traceback(tmp_path, verb, output, more):
    if more == ["--json"] and verb in {"completion", "mcp", "run", "metrics"}:
        return
    shell = 'exec "$@" >&-' if output == "closed" else 'exec "$@" >/dev/full'
    words = [verb, *more] if more == ["--help"] else [verb, *WORDS.get(verb, []), *more]
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *GLASSD, *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=55,
        env=env(tmp_path),
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr
    if more:
        assert done.returncode in ((1,) if more == ["--help"] else (1, 2)), done.stderr
        assert "error: standard output cannot be written" in done.stderr
    else:
        assert done.returncode in (0, 1, 2, 3)
        assert done.stderr or done.returncode == 0


@pytest.mark.enable_socket
@pytest.mark.requirement("CLI-interrupt")
@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize(
    "verb", ["doctor", "tools", "registry check", "devcloud --http 127.0.0.1:0"]
)
def test_ctrl_c_is_130_and_says_nothing(tmp_path, verb, after_s):
    process = subprocess.Popen(
        [*GLASSD, *verb.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env(tmp_path),
        start_new_session=True,
    )
    time.sleep(after_s)  # a person's moment; whatever it meets must hold
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=50)
    if "KeyboardInterrupt" in err and set(OUR_FRAME.findall(err)) <= {"__init__", "__main__"}:
        return  # Python itself was still starting: our first line was not run yet
    assert "Traceback" not in err, err
    assert process.returncode in (130, -signal.SIGINT, 0, 1, 3)  # it may have ended just before
    if verb.startswith("devcloud"):
        assert process.returncode in (130, -signal.SIGINT)


@pytest.mark.requirement("CLI-bom")
def test_a_byte_order_mark_is_no_mistake(tmp_path):
    config = tmp_path / "glassd.toml"
    config.write_bytes(b'\xef\xbb\xbfversion = 1\r\n[edge]\r\nid = "e"\r\n')
    assert load.load(config, {}).edge.id == "e"
    tool = (
        b'\xef\xbb\xbfname = "my:lamp"\ndescription = "A lamp."\n[execution]\nurl = "https://h"\n'
    )
    (tmp_path / "lamp.toml").write_bytes(tool)
    (tmp_path / "glassd.toml").unlink()
    assert [t.name for t in user_tools.read([tmp_path]).tools] == ["my:lamp"]


@pytest.mark.parametrize("below", ["", "/state"])
def test_a_file_in_the_place_of_the_state_directory_is_named(tmp_path, below):
    (tmp_path / "file").touch()
    config = tmp_path / "glassd.toml"
    config.write_text(f'version = 1\n[edge]\nstate_dir = "{tmp_path}/file{below}"\n')
    done = subprocess.run(
        [*GLASSD, "run", "--config", config],
        capture_output=True,
        text=True,
        timeout=50,
        env=env(tmp_path),
        check=False,
    )
    assert done.returncode == 2
    assert f"{tmp_path}/file is a file and must be a directory\nnext:  move it away" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("devcloud", "--http", "127.0.0.1:0", "--state"),
        ("sim", "mock:full", "--radio", "tcp:127.0.0.1:0", "--out"),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_said_in_words(tmp_path, words):
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*GLASSD, *words, tmp_path / "file"],
        capture_output=True,
        text=True,
        timeout=50,
        env=env(tmp_path),
        check=False,
    )
    assert done.returncode == 1
    assert (
        f"error: {tmp_path}/file: is a file, but a folder is needed\nnext:  name another"
        in done.stderr
    )


# ------------------------------------------------------------------ extras


@pytest.fixture
def bare(monkeypatch):
    """None of these is installed."""
    there = extras.find_spec
    lacking = {"bumble", "PIL", "font_source_sans_pro", "iotcore", "uvicorn"}
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in lacking else there(name))


@pytest.mark.requirement("CLI-extras")
def test_all_that_is_missing_is_said_at_once_before_anything_starts(bare):
    with pytest.raises(UserError) as refused:
        extras.require("demo")
    assert refused.value.message == (
        "glassd demo needs bumble, PIL, font_source_sans_pro, "
        "iotcore, uvicorn, which are not installed"
    )
    assert refused.value.fix.endswith(f"{sys.executable} -m pip install -e '.[sim,devcloud]'")


@pytest.mark.requirement("CLI-extras")
@pytest.mark.parametrize(
    ("prefix", "package", "checkout", "says"),
    [
        ("/opt/glassd", True, False, "sudo apt-get install --reinstall glassd"),
        ("/opt/glassd", False, False, "sudo make install"),
        ("/home/x/venv", False, False, "-m pip install 'glassd[sim]'"),
        ("/home/x/venv", False, True, "-m pip install -e '.[sim]'"),
    ],
)
def test_the_command_is_the_one_of_this_kind_of_installation(
    bare, monkeypatch, tmp_path, prefix, package, checkout, says
):
    monkeypatch.setattr(extras.sys, "prefix", prefix)
    monkeypatch.setattr(extras, "DPKG", tmp_path if package else tmp_path / "no")
    monkeypatch.setattr(extras, "_is_checkout", lambda: checkout)
    error = extras.missing(ModuleNotFoundError(name="bumble.hci"), "sim")
    assert (
        error.message
        == "glassd sim needs bumble, PIL, font_source_sans_pro, which are not installed"
    )
    assert says in error.fix


@pytest.mark.parametrize("kind", ["checkout", "package", "pip"])
def test_the_sample_configuration_is_named_where_it_is(monkeypatch, tmp_path, kind):
    share = tmp_path / "share"
    share.mkdir()
    (share / "glassd.toml").touch()
    monkeypatch.setattr(extras, "SHARES", (tmp_path / "no", share))
    if kind != "checkout":
        monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    if kind == "package":
        monkeypatch.setattr(extras.sys, "prefix", "/opt/glassd")
    named = extras.sample()
    assert Path(named).is_file() or kind == "pip"
    assert named.endswith(
        {
            "checkout": "systemd/glassd.toml",
            "package": "share/glassd.toml",
            "pip": "glassd.toml of the source",
        }[kind]
    )


# ------------------------------------------------------------------ what is left, and what was
# meant


@pytest.mark.enable_socket
@pytest.mark.requirement("DEMO-leaves-nothing")
@pytest.mark.parametrize(
    ("ends", "more", "left"),
    [
        (signal.SIGTERM, [], 0),
        (signal.SIGINT, [], 0),
        (None, ["--seconds", "1"], 0),
        (None, ["--seconds", "1", "--keep"], 1),
    ],
)
def test_a_demo_removes_its_folder(ends, more, left):
    # Not `tmp_path`: with a long user name the path of a socket in it becomes too long.
    with tempfile.TemporaryDirectory() as short:
        process = subprocess.Popen(
            [*GLASSD, "demo", "--script", "tour", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env(Path(short)),
        )
        first = ""
        if ends is not None:
            while "glasses: tcp:" not in first and (line := process.stdout.readline()):
                first += line
            assert "glasses: tcp:" in first, process.communicate(timeout=50)
            process.send_signal(ends)  # its processes run, and its daemon is starting
        out, err = process.communicate(timeout=50)
        assert "Traceback" not in err
        folders = list(Path(short).glob("glassd-demo-*"))
        files = [str(file) for folder in folders for file in folder.rglob("*")]
        assert len(folders) == left, (process.returncode, first + out, err, files)


def test_a_tool_that_nobody_has_is_answered_with_the_nearest_name(monkeypatch):
    answers = {
        "/v1/call": {
            "ok": False,
            "error": {
                "code": "TOOL_NOT_FOUND",
                "message": "Tool note:add not found",
                "suggestion": "glassd tools --all",
            },
        },
        "/v1/tools?after=": {"tools": [{"name": "notes:add"}, {"name": "clock:now"}]},
    }
    monkeypatch.setattr(call, "ask", lambda _args, _method, path, *_body, **_more: answers[path])
    screen = Screen(sys.stdout, err := StringIO(), {}, as_json=False)
    args = Namespace(
        tool="note:add",
        args=[],
        ttl=1.0,
        wait="answer",
        mode=None,
        confirm=None,
        key=None,
        session=None,
        turn=None,
        provider_id=None,
        no_wait=False,
        present=False,
        silent=False,
    )
    assert call.call(args, screen) == 1
    assert err.getvalue().endswith(
        "next:  did you mean notes:add? (all of them: glassd tools --all)\n"
    )
