"""Long steps of an event loop are found and named."""

import json
import subprocess
import sys

import pytest

from benchmarks import process, steps
from benchmarks.lens import UnixConnection
from benchmarks.table import Note, Row

PROGRAM = """
import asyncio, gc, os, pathlib, signal, sys, time
from benchmarks.watch import Watch

def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

def finish():
    until = time.thread_time() + 0.006
    while time.thread_time() < until:
        pass

def block(seconds):
    time.sleep(seconds)

async def first():
    compute(0.03)
    finish()

async def loads():
    import colorsys
    compute(0.03)

async def counts():
    compute(0.1)

async def waits():
    block(0.03)

async def main():
    await asyncio.create_task(counts())
    os.kill(os.getpid(), signal.SIGUSR1)
    for part in (first, first, loads, waits):
        await asyncio.create_task(part())
    os.kill(os.getpid(), signal.SIGUSR2)
    await asyncio.create_task(counts())

Watch(pathlib.Path(sys.argv[1])).start()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    file = tmp_path_factory.mktemp("watch") / "steps.json"
    command = [sys.executable, "-c", PROGRAM, str(file)]
    subprocess.run(command, env=process.environment(), check=True, timeout=60)
    return json.loads(file.read_text())


def test_a_step_that_computes_for_long_is_named_with_its_place(report):
    step = next(s for s in report["steps"] if s["name"] == "task first")
    assert (step["times"], step["imports"]) == (2, False)
    assert 30 <= step["ms"] < 300
    assert "compute" in step["at"][0]


def test_a_step_that_loads_a_module_is_marked(report):
    step = next(s for s in report["steps"] if s["name"] == "task loads")
    assert step["imports"]


def test_a_wait_is_no_computing(report):
    step = next(s for s in report["steps"] if s["name"] == "task waits")
    assert step["ms"] < 10
    assert step["waited_ms"] >= 25


def test_steps_before_and_after_the_counting_are_left_out(report):
    assert report["all"] >= 4
    assert not any(s["name"] == "task counts" for s in report["steps"])


@pytest.mark.enable_socket
def test_a_watched_daemon_reports_its_steps(tmp_path):
    def section():
        config = 'version = 1\n[glasses]\nradio = "bluez"\n'
        with process.daemon(tmp_path, config):
            wire = UnixConnection(tmp_path / "glassd" / "control.sock")
            for _ in range(3):
                wire.request("GET", "/v1/session")
                assert wire.getresponse().read()
            wire.close()
            yield Note("of its own")

    lines = list(steps.measure({"idle": section}))
    assert [line.what for line in lines if isinstance(line, Row)] == [
        "longest step of the loop, idle",
        "longest step of the loop, idle, loading a module",
        "  longest wait in a step of the loop, idle",
        "  steps of the loop, idle",
    ]
    assert lines[-1].value > 3


def test_only_steps_over_the_bar_are_named():
    def step(name, ms, *, imports=False):
        return {
            "name": name,
            "imports": imports,
            "times": 3,
            "ms": ms,
            "waited_ms": 1.0,
            "gc_ms": 0.0,
            "at": ["here.py:1 work"],
        }

    found = [step("short", 4.9), step("long", 7.0), step("import", 9.0, imports=True)]
    lines = steps.lines_of("calls", [{"all": 10, "steps": found}])
    assert [line.value for line in lines if isinstance(line, Row)] == [7.0, 9.0, 1.0, 10]
    named = [line.text for line in lines if isinstance(line, Note)]
    assert named == [
        "7.0 ms: long in here.py:1 work (3 long ones)",
        "9.0 ms: import in here.py:1 work (3 long ones)",
    ]


def test_a_section_that_cannot_run_says_why():
    note = Note("no broker")
    assert list(steps.measure({"paths": lambda: iter([note])})) == [note]
