"""Runs Python code in a child process: bytes in, bytes out, with a timeout.

For work whose libraries should not stay in the daemon's memory, or whose crash should not end it.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from typing import Final

CHUNK: Final = 64 * 1024


async def ask(
    code: str,
    *words: str,
    question: bytes | None = None,
    limit_s: float,
    env: Mapping[str, str] | None = None,
) -> tuple[bytes, int | None]:
    """Run Python `code` in a child with arguments `words`; see `run`. `-P` keeps modules in the
    working directory from replacing libraries.
    """
    command = (sys.executable, "-P", "-c", code, *words)
    return await run(command, question=question, limit_s=limit_s, env=env)


async def run(
    command: Sequence[str],
    *,
    question: bytes | None = None,
    limit_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
) -> tuple[bytes, int | None]:
    """Run a program that reads `question` to its end, then answers; return what it wrote, and its
    exit code. Whatever ends this ends the child.

    Raise TimeoutError, ValueError for an answer of more than `max_bytes`, and OSError when no child
    can be started.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        stdin=DEVNULL if question is None else PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=max_bytes or CHUNK,  # a pipe whose reader paused would stay open after a kill
    )
    conversation = asyncio.ensure_future(_converse(child, question, max_bytes))
    try:
        # Not asyncio.timeout: on Python 3.11.2 it raises CancelledError in a task that was
        # cancelled before.
        await asyncio.wait([conversation], timeout=limit_s)
        if not conversation.done():
            raise TimeoutError
        answer = conversation.result()
    finally:
        conversation.cancel()
        if child.returncode is None:
            child.kill()
            await child.wait()
    return answer, child.returncode


async def _converse(child: Process, question: bytes | None, max_bytes: int | None) -> bytes:
    if child.stdin is not None:
        child.stdin.write(question or b"")
        with contextlib.suppress(ConnectionError):  # one that died says so by its answer
            await child.stdin.drain()
        child.stdin.close()
    assert child.stdout is not None
    answer = bytearray()
    while piece := await child.stdout.read(CHUNK):
        answer += piece
        if max_bytes is not None and len(answer) > max_bytes:
            raise ValueError("the answer is too long")
    await child.wait()
    return bytes(answer)
