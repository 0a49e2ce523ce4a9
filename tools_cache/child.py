"""Ask a child process of ours one question: bytes in, bytes out, within a time.

For work whose libraries, or whose faults, a daemon should not keep. Refuses to know what is asked.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping


async def ask(
    code: str,
    *words: str,
    question: bytes | None = None,
    limit_s: float,
    env: Mapping[str, str] | None = None,
) -> tuple[bytes, int | None]:
    """Run Python `code` with `words` as its arguments; give what it wrote, and its exit code.
    Whatever ends this ends the child.

    Raises TimeoutError, and OSError when no child can be started. `-P`: the working directory puts
    no module in a library's place.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        code,
        *words,
        env=env,
        stdin=DEVNULL if question is None else PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    conversation = asyncio.ensure_future(child.communicate(question))
    try:
        # Not asyncio.timeout: on Python 3.11.2 it raises CancelledError in a task that was
        # cancelled before.
        await asyncio.wait([conversation], timeout=limit_s)
        if not conversation.done():
            raise TimeoutError
        answer, _ = conversation.result()
    finally:
        conversation.cancel()
        if child.returncode is None:
            child.kill()
            await child.wait()
    return answer, child.returncode
