"""A resident child: requests and answers, replaced when it is gone, killed when it is stuck."""

import asyncio
import sys
from pathlib import Path

import pytest

from edge.runtime.resident_worker import ResidentWorker

ECHO = """
import struct, sys
read, write = sys.stdin.buffer, sys.stdout.buffer
for _ in range({times}):
    head = read.read(4)
    if len(head) < 4:
        break
    data = read.read(*struct.unpack(">I", head))
    write.write(struct.pack(">I", len(data)) + data[::-1])
    write.flush()
"""


def worker(code: str, **words: float) -> ResidentWorker:
    limits = {"deadline_s": 40.0, "start_s": 40.0, **words}
    return ResidentWorker("test", (sys.executable, "-c", code), max_answer=1000, **limits)


async def test_requests_at_once_are_answered_one_after_another_by_one_child() -> None:
    echo = worker(ECHO.format(times=99))
    answers = await asyncio.gather(*(echo.ask(b"%d!" % n) for n in range(5)))
    assert answers == [b"!%d" % n for n in range(5)]
    await echo.close()
    assert await echo.ask(b"again") == b"niaga", "after close it may be asked again"
    await echo.close()


@pytest.mark.parametrize("rounds", [1, 5, 200])
async def test_what_is_asked_while_it_is_closed_ends_and_leaves_no_child(rounds: int) -> None:
    silent = worker("import sys; sys.stdin.buffer.read()")
    asked = [asyncio.create_task(silent.ask(b"hello")) for _ in range(2)]
    for _ in range(rounds):  # of the loop: the child does not exist, starts, or was asked
        await asyncio.sleep(0)
    await silent.close()
    for task in asked:
        with pytest.raises(EOFError):
            await task
    assert (silent._child, silent._dying) == (None, [])


async def test_a_child_that_ended_after_its_answer_is_replaced() -> None:
    once = worker(ECHO.format(times=1))
    for text in (b"one", b"two", b"three"):
        assert await once.ask(text) == text[::-1]
        assert once._child is not None
        await once._child.wait()
    await once.close()


async def test_a_child_that_ends_without_an_answer_is_tried_twice_only(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    broken = worker(f"open({str(log)!r}, 'a').write('x')")
    with pytest.raises(EOFError):
        await broken.ask(b"hello")
    assert log.read_text() == "xx"
    await broken.close()


async def test_a_stuck_child_is_killed() -> None:
    stuck = worker("import time; time.sleep(600)", start_s=0.2)
    with pytest.raises(TimeoutError):
        await stuck.ask(b"hello")
    assert stuck._child is None
    (child,) = stuck._dying
    assert await child.wait() < 0
    await stuck.close()


async def test_an_answer_that_is_too_long_is_an_error_and_no_part_of_the_next_one() -> None:
    echo = worker(ECHO.format(times=99))
    with pytest.raises(OSError, match="1001 bytes"):
        await echo.ask(b"x" * 1001)
    assert await echo.ask(b"next") == b"txen"
    await echo.close()


async def test_a_program_that_is_not_there_is_an_error_of_the_system() -> None:
    none = ResidentWorker("test", ("/nonexistent/program",), deadline_s=40.0, max_answer=10)
    with pytest.raises(FileNotFoundError):
        await none.ask(b"hello")
    await none.close()
