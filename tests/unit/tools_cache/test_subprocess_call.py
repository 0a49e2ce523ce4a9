"""One question to a child process: what comes back, and that no child outlives its question."""

import asyncio
import signal

import pytest

from tools_cache import subprocess_call


async def test_words_and_question_go_in_and_what_was_written_comes_out_with_the_exit_code():
    code = "import sys; sys.stdout.write(sys.stdin.read() + sys.argv[1]); sys.exit(3)"
    assert await subprocess_call.ask(code, "word", question=b"asked ", limit_s=60) == (
        b"asked word",
        3,
    )
    assert await subprocess_call.ask(
        "import sys; print(len(sys.stdin.read()), end='')", limit_s=60
    ) == (
        b"0",
        0,
    )


@pytest.mark.parametrize("late", [True, False], ids=["late", "called off"])
async def test_no_child_outlives_its_question(monkeypatch, late):
    begin, begun = asyncio.create_subprocess_exec, asyncio.get_running_loop().create_future()

    async def noted(*words, **more):
        begun.set_result(await begin(*words, **more))
        return begun.result()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    asking = asyncio.ensure_future(
        subprocess_call.ask("import time; time.sleep(600)", limit_s=0.05 if late else 600)
    )
    process = await begun
    if not late:
        asking.cancel()
    with pytest.raises(TimeoutError if late else asyncio.CancelledError):
        await asking
    assert process.returncode == -signal.SIGKILL


async def test_a_question_that_takes_too_long_while_its_asker_is_cancelled():
    """The asker cleans up: Python 3.11.2's own timeout would raise CancelledError here."""
    ended = []

    async def asks_at_last():
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await subprocess_call.ask("import time; time.sleep(600)", limit_s=0.05)
            except TimeoutError:
                ended.append("too late")

    asking = asyncio.ensure_future(asks_at_last())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ended == ["too late"]


@pytest.mark.parametrize("size", [0, 1_000_000])
async def test_a_large_question_and_its_answer_pass_whole(size):
    code = "import sys; asked = sys.stdin.buffer.read(); sys.stdout.buffer.write(asked * 2)"
    assert await subprocess_call.ask(code, question=b"?" * size, limit_s=60) == (b"?" * size * 2, 0)


async def test_an_answer_longer_than_its_bound_is_an_error():
    command = ("head", "-c", "5000000", "/dev/zero")
    with pytest.raises(ValueError, match="too long"):
        await subprocess_call.run(command, limit_s=60, max_bytes=4_999_999)
    answer, code = await subprocess_call.run(command, limit_s=60, max_bytes=5_000_000)
    assert (len(answer), code) == (5_000_000, 0)


async def test_a_child_that_dies_without_reading_its_question_says_nothing():
    assert await subprocess_call.ask(
        "raise SystemExit(3)", question=b"?" * 1_000_000, limit_s=60
    ) == (b"", 3)
