"""The blocks about glasses: pairing, lost sides, simulated glasses, and the doctor, run as they
are printed.
"""

import json
import re
import sys
import wave
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from edge.storage.sqlite.disk_space import DiskSpace
from tests.documents.blocks import ROOT, block, commands, compare, pattern, shows, without_comment

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
PAIRING, SIMULATOR, LINK = "docs/pairing.md", "docs/simulator.md", "docs/link.md"
SELECTION, TROUBLE = "docs/tool-selection.md", "docs/troubleshooting.md"


# ------------------------------------------------------------------ pairing


@shows(PAIRING, "$ glassd up\nLooking for glasses")
def test_glasses_that_show_a_code_are_paired_as_printed(place):
    sim = place.start(
        "glassd sim mock:display --pairing passkey --radio "
        "tcp:127.0.0.1:6402 --control m.sock --out ."
    )
    sim.wait_for("tcp:127")
    place.env["GLASSD_CONFIG"] = str(
        place.write(
            "glassd.toml",
            'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\nconnect = "paired"\n',
        )
    )
    place.start("glassd run")
    place.until(place.status, "the daemon is there")
    [(command, printed)] = commands(block(PAIRING, "$ glassd up\nLooking for glasses").text)
    up = place.start(command)
    up.wait_for("Type it here: ")
    code = place.until(
        lambda: re.search(r"\d{3} \d{3}", " ".join(place.ask_mock("m.sock", do="lens")["lines"])),
        "a code on the lens",
    )[0]
    up.type(code.replace(" ", ""))
    compare(
        [*printed, "…"], up.end(0)
    )  # below it: the next thing to do, which depends on the machine


# ------------------------------------------------------------------ simulated glasses


@shows(SIMULATOR, "glassd sim mock:full  ")
@shows(LINK, "glasses   ready          model even_g1")
@shows(SELECTION, "$ glassd tools --all\nglasses:notify")
@pytest.mark.requirement("I11-documents")
def test_simulated_glasses_run_as_printed_and_a_lost_arm_is_in_status(place):
    plain, drop, away, _with_script, demo = (
        without_comment(line) for line in block(SIMULATOR, "glassd sim mock:full  ").lines
    )
    for command in (plain, drop, away):
        sim = place.start(f"{command} --radio tcp:127.0.0.1:0")
        sim.wait_for("tcp:127.0.0.1:")
        sim.close()
    [(sim, fault)] = re.findall(r"(.+) --fault (\S+)@9s$", away)
    place.start(f"{sim} --control pair.sock --radio tcp:127.0.0.1:6402").wait_for("tcp:127")
    place.env["GLASSD_CONFIG"] = str(
        place.write(
            "glassd.toml",
            'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\nmodel = "even_g1"\n',
        )
    )
    place.start("glassd run")
    place.until(place.is_ready, "the glasses are there")
    status = block(LINK, "glasses   ready          model even_g1")
    place.until(lambda: re.search(r"right\s+up", place.run("glassd status")), "both arms are there")
    assert place.ask_mock("pair.sock", do=fault)[
        "ok"
    ]  # once both are connected, however long that takes here
    place.until(
        lambda: re.search(r"right\s+lost", place.run("glassd status")), "the right arm is lost"
    )
    glasses = place.run("glassd status").partition("glasses  ")[2].partition("uplink  ")[0]
    compare(status.lines, f"glasses  {glasses}")
    for command, printed in commands(block(SELECTION, "$ glassd tools --all\nglasses:notify").text):
        said = place.run(command)
        for line in printed:
            assert re.search(rf"^{pattern(line)}\s*$", said, re.MULTILINE), (
                f"{line!r} is not in\n{said}"
            )
    shown = place.start(demo)
    shown.wait_for("connected: even_g1")
    shown.type("quit")
    shown.end(0)


@shows(SIMULATOR, "# The wearer speaks, and leaves", '{"do": "tap"}')
def test_a_scripted_wearer_and_the_control_channel(place):
    place.write("walk.script", block(SIMULATOR, "# The wearer speaks, and leaves").text)
    sim = place.start(
        f"{without_comment(block(SIMULATOR, 'glassd sim mock:full  ').lines[3])} "
        "--radio tcp:127.0.0.1:0"
    )
    sim.wait_for('"event": ?"ready"')
    requests = re.findall(r'\{"do".*?\}+(?=\s|$)', block(SIMULATOR, '{"do": "tap"}').text)
    assert len(requests) == 10
    with wave.open(str(place.folder / "milk.wav"), "wb") as milk:
        milk.setparams((1, 2, 16000, 0, "NONE", ""))
        milk.writeframes(bytes(3200))
    for request in map(json.loads, requests):
        answer = place.ask_mock("m.sock", **request)
        assert answer["ok"], (request, answer)
    assert (place.folder / "pictures").is_dir()


@shows(SIMULATOR, "def test_a_note_is_shown(glassd_mock)")
@pytest.mark.requirement("I11-documents")
def test_the_example_of_the_pytest_fixture_passes_as_it_is_printed(place):
    place.write("test_app.py", block(SIMULATOR, "def test_a_note_is_shown(glassd_mock)").text)
    installed = any(point.value == "edge.pytest_plugin" for point in entry_points(group="pytest11"))
    plugin = "" if installed else "-p edge.pytest_plugin"
    said = place.run(
        f"{sys.executable} -m pytest -q -p no:cacheprovider {plugin} test_app.py", within_s=200
    )
    assert "2 passed" in said
    guide = (ROOT / SIMULATOR).read_text(encoding="utf-8")
    assert "import start_mock" not in guide
    assert 'start_mock("mock:full", radio="tcp:127.0.0.1:0")' in guide
    place.run(
        f"{sys.executable} -c 'import asyncio\nfrom "
        "firmware_bridge.sim.inproc import start_mock\nasync def main():\n"
        '    mock = await start_mock("mock:full", radio="tcp:127.0.0.1:0")\n    assert '
        'mock.mount.radio.startswith("tcp:127"); await mock.close()\n'
        "asyncio.run(main())'"
    )


@shows(SIMULATOR, "def test_a_timer_is_set_by_voice(glassd_mock)")
@pytest.mark.requirement("I11-documents", "I14-hear")
def test_the_example_by_voice_passes_as_it_is_printed(place):
    text = block(SIMULATOR, "def test_a_timer_is_set_by_voice(glassd_mock)").text
    place.write("test_app.py", text)
    installed = any(point.value == "edge.pytest_plugin" for point in entry_points(group="pytest11"))
    plugin = "" if installed else "-p edge.pytest_plugin"
    said = place.run(
        f"{sys.executable} -m pytest -q -p no:cacheprovider {plugin} test_app.py", within_s=200
    )
    assert "1 passed" in said


# ------------------------------------------------------------------ troubleshooting


@shows(TROUBLE, "$ glassd doctor\nsystem")
def test_the_doctor_looks_at_what_the_sample_lists(place):
    sample = block(TROUBLE, "$ glassd doctor\nsystem").text
    place.env["GLASSD_CONFIG"] = str(place.write("glassd.toml", "version = 1\n"))
    said = place.run("glassd doctor", fine=(0, 1))
    assert re.findall(r"^[a-z]+$", said, re.MULTILINE) == re.findall(
        r"^[a-z]+$", sample, re.MULTILINE
    )
    assert (
        f"{DiskSpace(Path('/srv'), Path('/srv'), bytes=0, total=1).problem}: "
        "glassd takes no new calls"
    ) in sample
    found = len(json.loads(place.run("glassd doctor --json", fine=(0, 1)))["checks"])
    assert (
        re.search(r"^(\d+) checks in", sample, re.MULTILINE)[1]
        == str(found)
        == re.search(r"^(\d+) checks in", said, re.MULTILINE)[1]
    )
