"""`glassd demo --json --script tour` (Shows 2): ends with 0 within 45 s, and tells what the
issue asks for.
"""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from edge.demo.processes import folder_for_sockets
from tests.e2e.processes import CLI
from tests.system import runs

pytestmark = pytest.mark.timeout(300)

WANTED = {
    "glasses.ready",
    "capabilities.published",
    "registry.synced",
    "call.answered",
    "lens",
    "speaker",
    "uplink.down",
    "uplink.up",
}


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    began = time.monotonic()
    played = subprocess.run(
        [*CLI, "demo", "--json", "--script", "tour", "--keep"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("tour"))},
    )
    took = time.monotonic() - began
    assert played.returncode == 0, played.stdout[-2000:] + played.stderr[-2000:]
    return [json.loads(line) for line in played.stdout.splitlines()], took


@pytest.mark.requirement("I13-demo-long-path")
def test_a_folder_with_a_long_path_is_no_hindrance(tmp_path):
    long = tmp_path / ("a" * 110)
    long.mkdir()
    script = tmp_path / "look.script"
    script.write_text("expect glasses.ready\n")
    played = subprocess.run(
        [*CLI, "demo", "--json", "--script", str(script)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "TMPDIR": str(long)},
    )
    assert played.returncode == 0, played.stdout[-2000:] + played.stderr[-2000:]
    assert not list(long.iterdir())


def test_the_short_folder_for_sockets_is_made_only_when_needed_and_removed(tmp_path):
    with folder_for_sockets(tmp_path / "x") as same:
        assert same == tmp_path / "x"
    with folder_for_sockets(tmp_path / ("a" * 110)) as short:
        assert short.is_dir()
        assert len(os.fsencode(short / "control.sock")) <= 107
    assert not short.exists()


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGHUP])
def test_however_the_demo_ends_its_cast_ends_with_it(tmp_path, how):
    script = tmp_path / "wait.script"
    script.write_text("expect glasses.ready\nexpect never.comes\n")
    demo = subprocess.Popen(
        [*CLI, "demo", "--json", "--script", str(script)], stdout=subprocess.PIPE, text=True
    )
    with demo:
        for line in demo.stdout:
            if json.loads(line)["event"] == "glasses.ready":
                break
        cast = children_of(demo.pid)
        assert len(cast) >= 3
        demo.send_signal(how)
        demo.wait(60)
    end = time.monotonic() + 60
    while left := [pid for pid in cast if runs(pid)]:
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.05)


def test_a_typing_mistake_does_not_end_the_demo_and_the_terminal_stays_as_it_was():
    ours, theirs = pty.openpty()
    try:
        demo = subprocess.Popen(
            [*CLI, "demo"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with demo:
            for line in demo.stdout:
                if b"Type what the wearer does" in line:
                    break
            os.write(
                ours, b'call notes:add {"text":\ncaps camera=maybe\nfly\ncall notes:add text=milk\n'
            )
            seen = b""
            for line in demo.stdout:
                seen += line
                if "✓ notes:add".encode() in line:
                    break
            os.write(ours, b"quit\n")
            assert demo.wait(60) == 0
        assert b"are not JSON" in seen
        assert b"says neither yes nor no" in seen
        assert b"'fly' is not a verb" in seen
        assert os.get_blocking(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_script_with_a_mistake_ends_with_2_and_names_the_line(tmp_path):
    script = tmp_path / "bad.script"
    script.write_text('tap\nexpect "foo\n')
    played = subprocess.run(
        [*CLI, "demo", "--script", str(script)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert played.returncode == 2
    assert "line 2:" in played.stdout
    assert "starting" not in played.stdout, "before anything starts"
    assert "Traceback" not in played.stdout + played.stderr


def of(tour, name, **fields):
    return [e for e in tour[0] if e.get("event") == name and fields.items() <= e.items()]


@pytest.mark.requirement("M-tour")
def test_the_tour_does_not_drag_on(tour):
    """45 s is the promise on a machine of its own; here other tests run beside it."""
    assert tour[1] <= 90.0


@pytest.mark.requirement("M-tour")
def test_every_promised_event_is_there(tour):
    assert {e["event"] for e in tour[0]} >= WANTED


def test_what_is_started_is_said_first(tour):
    assert tour[0][0] == {"event": "starting", "glasses": "mock:full"}


def test_the_glasses_are_what_they_say(tour):
    ready = of(tour, "glasses.ready")[0]
    assert ready["model"] == "mock:full"
    assert ready["mtu"] > 100
    assert ready["transport"] == "tcp"


def test_a_cloud_tool_is_shown_as_the_mock_decoded_it_and_the_picture_is_a_png(tour):
    answered = of(tour, "call.answered", tool="com.example.calc:evaluate", ok=True)[0]
    assert answered["route"] == "cloud"
    assert answered["delivery"] == "shown"
    lens = next(e for e in of(tour, "lens") if e["scene"] == answered["call_id"])
    assert "42" in " ".join(lens["lines"])
    assert Path(lens["png"]).read_bytes().startswith(b"\x89PNG")


def test_sound_was_played_and_kept_as_wav(tour):
    heard = of(tour, "speaker")[0]
    assert heard["seconds"] > 1
    wav = Path(heard["wav"]).read_bytes()
    assert wav[:4] == b"RIFF"
    assert len(wav) - 44 == heard["samples"] * 2


@pytest.mark.requirement("M-caps-live")
def test_a_removed_camera_hides_its_tool_and_the_refusal_names_it(tour):
    counts = [e["compatible"] for e in of(tour, "registry.synced", origin="cloud")]
    assert counts[-1] == counts[0] - 2, "that of the cloud, and glasses:take_photo"
    refused = of(tour, "refused", code="HARDWARE_MISSING")[0]
    assert refused["details"] == {"missing": ["CAMERA"]}


@pytest.mark.requirement("K4-queue")
def test_offline_is_answered_honestly_and_the_queued_call_is_finished_once(tour):
    assert of(tour, "call.answered", tool="com.example.calc:evaluate", ok=False, code="OFFLINE")
    assert of(tour, "call.answered", tool="notes:add", ok=True, route="local")
    queued = of(tour, "call.answered", tool="com.example.tasks:add", route="queue")
    done = of(tour, "call.completed", tool="com.example.tasks:add", ok=True)
    assert len(queued) == len(done) == 1
    assert queued[0]["call_id"] == done[0]["call_id"]


@pytest.fixture(scope="module")
def g1_tour():
    played = subprocess.run(
        [*CLI, "demo", "--glasses", "sim:even_g1", "--json", "--script", "tour"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert played.returncode == 0, played.stdout[-2000:] + played.stderr[-2000:]
    return [json.loads(line) for line in played.stdout.splitlines()]


@pytest.mark.requirement("I4-show-g1")
def test_the_tour_runs_on_two_armed_glasses(g1_tour):
    assert [e["model"] for e in g1_tour if e["event"] == "glasses.ready"] == ["even_g1"], (
        "one connection, never lost"
    )
    shown = [e for e in g1_tour if e["event"] == "lens" and "42" in str(e["lines"])]
    assert (shown[0]["same"], shown[0]["sides"]["right"]["lines"] != shown[0]["lines"]) == (
        False,
        True,
    ), "left first"
    assert shown[1]["same"] is True


@pytest.mark.requirement("I4-show-g1")
def test_while_one_arm_is_away_the_other_shows_and_the_first_catches_up(g1_tour):
    sides = [
        e["said"]
        for e in g1_tour
        if e["event"] == "glasses.event" and e["said"].get("type") == "SideChanged"
    ]
    assert [(s["side"], s["up"]) for s in sides[-2:]] == [("left", False), ("left", True)]
    alone = [e for e in g1_tour if e["event"] == "lens" and e["lines"] == ["6 * 7 * 10 = 420"]]
    assert [(e["side"], e["same"]) for e in alone[:2]] == [("right", False), ("left", True)]
