"""The network part of a tool runs in a child: its answer, its failures, its end."""

import asyncio
import sys

import pytest

from edge.tools.worker_calls import MAX_REQUEST, WorkerCalls
from tools_cache.errors import ErrorCode, ToolFailure

WORKERS = {
    "echo": "def answer(request):\n    return {'got': request['text']}\n",
    "away": """
from tools_cache.errors import ErrorCode, ToolFailure
def answer(request):
    raise ToolFailure.of(ErrorCode.RATE_LIMIT, "too often", suggestion="wait",
                         retry_after_ms=5000, partial_side_effects=True)
""",
    "stuck": "import time\ndef answer(request):\n    time.sleep(60)\n",
    "broken": "def answer(request):\n    raise RuntimeError('secret')\n",
    "missing": "import no_such_library\ndef answer(request):\n    return {}\n",
    "noisy": "def answer(request):\n    print('a line')\n    return {'fine': True}\n",
    "long": "def answer(request):\n    return {'text': 'x' * 5_000_000}\n",
}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    package = tmp_path / "some_workers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys\n"
        "import edge.tools.workers as workers\n"
        f"workers.__path__.append({str(package)!r})\n"
        "from edge.tools.workers.__main__ import main\n"
        "main()\n"
    )
    for name, text in WORKERS.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(filter(None, sys.path))}")
    return WorkerCalls(package="some_workers")


async def failure(calls, worker, **more):
    with pytest.raises(ToolFailure) as raised:
        await calls.ask(worker, {}, **{"deadline_s": 20.0, **more})
    return raised.value.error


@pytest.mark.requirement("I15-workers")
async def test_a_worker_answers_in_a_process_of_its_own(calls):
    assert await calls.ask("echo", {"text": "ä"}, deadline_s=20) == {"got": "ä"}
    assert "edge.tools.workers.echo" not in sys.modules


async def test_what_a_worker_prints_is_no_part_of_its_answer(calls):
    assert await calls.ask("noisy", {}, deadline_s=20) == {"fine": True}


async def test_a_failure_of_a_worker_arrives_whole(calls):
    error = await failure(calls, "away")
    assert (error.code, error.message, error.suggestion) == (
        ErrorCode.RATE_LIMIT,
        "too often",
        "wait",
    )
    assert (error.retry_after_ms, error.partial_side_effects, error.retryable) == (5000, True, True)


@pytest.mark.requirement("I15-workers")
@pytest.mark.parametrize("writes", [False, True])
async def test_a_worker_that_takes_too_long_is_ended(calls, writes):
    error = await failure(calls, "stuck", deadline_s=1.0, writes=writes)
    assert (error.code, error.partial_side_effects) == (ErrorCode.NETWORK_ERROR, writes)
    assert error.message == "This took longer than 1 s"


async def test_a_request_that_never_began_changed_nothing(calls):
    waiting = [asyncio.ensure_future(failure(calls, "stuck", deadline_s=3.0)) for _ in range(2)]
    await asyncio.sleep(0)
    error = await failure(calls, "stuck", deadline_s=0.2, writes=True)
    assert not error.partial_side_effects
    await asyncio.gather(*waiting)


@pytest.mark.parametrize("worker", ["broken", "long"])
async def test_a_worker_without_a_usable_answer_is_reported(calls, worker, caplog):
    error = await failure(calls, worker, writes=True)
    assert (error.code, error.partial_side_effects) == (ErrorCode.EXECUTION_ERROR, True)
    assert "secret" not in error.message
    assert worker in caplog.text


async def test_a_missing_library_is_named_with_its_extra(calls):
    error = await failure(calls, "missing")
    assert error.message == (
        "This needs no_such_library, which is not installed: pip install 'glassd[missing]'"
    )


async def test_a_request_has_a_size_limit(calls):
    with pytest.raises(ToolFailure, match="more than 256 KiB"):
        await calls.ask("echo", {"text": "x" * MAX_REQUEST}, deadline_s=20)
