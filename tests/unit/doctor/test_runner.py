"""Running the checks: at once where possible, reported in order, never longer than allowed."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from edge.doctor.models import Check, Mark, do, fail, ok, warn
from edge.doctor.runner import CheckRunner
from edge.doctor.subprocesses import in_thread, program


def check(name, examine, **more):
    return Check(id=name, layer="x", title=name, examine=examine, **more)


async def climbed(*checks, **more):
    async with CheckRunner(checks, now=time.monotonic, **more).running() as entries:
        return [entry async for entry in entries]


def gives(finding, after=None):
    async def examine():
        if after is not None:
            await after.wait()
        return finding

    return examine


async def for_ever():
    await asyncio.Event().wait()


@pytest.mark.requirement("I4-doctor-bounded")
async def test_independent_checks_run_at_once_and_are_reported_in_order():
    second_ran = asyncio.Event()

    async def second():
        second_ran.set()
        return ok("two")

    entries = await climbed(check("one", gives(ok("one"), second_ran)), check("two", second))
    assert [(e.number, e.finding.said) for e in entries] == [(1, "one"), (2, "two")]


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_check_that_needs_a_failed_one_is_skipped():
    entries = await climbed(
        check("a", gives(fail("broken", do("mend it")))),
        check("b", gives(ok("never")), needs=("a",)),
        check("c", gives(ok("never")), needs=("b",)),
        check("d", gives(ok("all the same")), after=("a",)),
        check("e", gives(ok("a warning holds")), needs=("w",)),
        check("w", gives(warn("hm", do("it")))),
    )
    assert [e.finding.mark for e in entries] == [
        Mark.FAIL,
        Mark.SKIP,
        Mark.SKIP,
        Mark.OK,
        Mark.OK,
        Mark.WARN,
    ]
    assert entries[1].finding.said == "not reached: see 1 (a)"


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_check_that_hangs_fails_at_its_own_deadline():
    entries = await climbed(
        check("slow", for_ever, deadline_s=0.05), check("quick", gives(ok("here")))
    )
    assert [e.finding.mark for e in entries] == [Mark.FAIL, Mark.OK]
    assert "no answer within 0.05 s" in entries[0].finding.said


@pytest.mark.requirement("I4-doctor-bounded")
async def test_all_checks_together_have_a_deadline():
    began = time.monotonic()
    entries = await climbed(
        *(check(f"n{n}", for_ever, deadline_s=60.0) for n in range(30)), whole_s=0.1
    )
    assert time.monotonic() - began < 20
    assert {e.finding.mark for e in entries} == {Mark.SKIP}


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_bug_in_a_check_is_one_failure():
    async def wrong():
        raise KeyError("oops")

    entries = await climbed(check("wrong", wrong), check("fine", gives(ok("fine"))))
    assert entries[0].finding.mark is Mark.FAIL
    assert "KeyError" in entries[0].finding.said
    assert entries[1].finding.mark is Mark.OK


@pytest.mark.requirement("I4-doctor-bounded")
async def test_an_error_of_the_caller_ends_every_check():
    with pytest.raises(BrokenPipeError):
        async with CheckRunner([check("a", for_ever)], now=time.monotonic).running():
            raise BrokenPipeError
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_thread_that_hangs_blocks_nothing():
    import threading

    let_go = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await in_thread(let_go.wait)
    let_go.set()


ENDS_BEFORE_A_THREAD = """
import asyncio, threading, time
from typing import Annotated
from pydantic import BeforeValidator, TypeAdapter
from edge.doctor.subprocesses import in_thread

began = threading.Event()

def checked(value):
    began.set()
    time.sleep(0.01)
    return value

numbers = TypeAdapter(list[Annotated[int, BeforeValidator(checked)]])

async def main():
    asking = asyncio.ensure_future(in_thread(lambda: numbers.validate_python([1] * 30)))
    await asyncio.to_thread(began.wait)
    raise SystemExit(3)

asyncio.run(main())
"""
"""As `glassd doctor` ends when its output cannot be written, while pydantic checks a registry
in a thread.
"""


@pytest.mark.requirement("I4-doctor-bounded")
def test_an_abandoned_thread_does_not_abort_the_process():
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_BEFORE_A_THREAD],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (3, "")


@pytest.mark.requirement("I4-doctor-bounded")
def test_a_thread_that_hangs_delays_the_exit_briefly():
    hangs = ENDS_BEFORE_A_THREAD.replace(
        "numbers.validate_python([1] * 30)", "(began.set(), time.sleep(600))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", hangs], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (3, "")


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_program_that_hangs_is_killed(tmp_path):
    pid = tmp_path / "pid"
    hanging = asyncio.ensure_future(
        program(
            ["sh", "-c", f"echo $$ > {pid}.half; mv {pid}.half {pid}; exec sleep 600"],
            {"PATH": "/usr/bin:/bin"},
        )
    )
    async with asyncio.timeout(40):
        while not pid.exists():
            await asyncio.sleep(0.01)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.requirement("I4-doctor-bounded")
async def test_the_output_of_a_program_is_read_up_to_a_limit(monkeypatch):
    ran = await program(["sh", "-c", "echo one; sleep 0.05; echo two"], {"PATH": "/usr/bin:/bin"})
    assert (ran.code, ran.out) == (0, "one\ntwo\n")
    monkeypatch.setattr("edge.doctor.subprocesses.MAX_OUTPUT", 10)
    ran = await program(["sh", "-c", "yes | head -c 300000; exit 3"], {"PATH": "/usr/bin:/bin"})
    assert (ran.code, len(ran.out)) == (3, 10)


@pytest.mark.requirement("I4-doctor-bounded")
async def test_a_missing_program_is_no_error():
    assert (await program(["no-such-program-here"], {"PATH": "/usr/bin"})).code is None


@pytest.mark.requirement("I4-doctor-bounded")
async def test_every_check_has_a_deadline_within_the_total(sandbox):
    from edge.doctor.checks import every
    from edge.doctor.machine import ExaminedMachine
    from edge.doctor.runner import WHOLE_S

    checks = every(ExaminedMachine(sandbox.machine), named=False)
    assert all(0 < c.deadline_s <= WHOLE_S / 2 for c in checks)
    assert WHOLE_S < 15
    ids = [c.id for c in checks]
    assert len(set(ids)) == len(ids)
    assert all(other in ids for c in checks for other in (*c.needs, *c.after))
