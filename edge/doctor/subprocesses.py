"""Runs blocking work and programs beside the event loop, so that nothing can keep the doctor from
finishing.
"""

import asyncio
import atexit
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
MAX_OUTPUT: Final = 256 * 1024
"""Bytes of a program's output that are read."""
LEAVE_S: Final = 1.0
"""How long work that is not waited for any more may delay the end of the process."""
_NAME: Final = "doctor"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended; `code` is None when there is no such program."""

    code: int | None
    out: str


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking `work` in a thread of its own: a disk or resolver that hangs blocks the thread,
    and the end of the process for a moment only.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def body() -> None:
        result: T | None = None
        error: Exception | None = None
        try:
            result = work()
        except Exception as e:  # noqa: BLE001 - raised again by the caller
            error = e
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=body, name=_NAME, daemon=True).start()
    return await done


@atexit.register
def _let_threads_end() -> None:
    """Python ends a thread at exit by unwinding its stack. Where that has Rust in it (pydantic
    checks a registry), the whole process aborts: "FATAL: exception not rethrown".
    """
    ends = time.monotonic() + LEAVE_S
    with contextlib.suppress(KeyboardInterrupt):
        for thread in (t for t in threading.enumerate() if t.name == _NAME):
            thread.join(max(0.0, ends - time.monotonic()))


async def program(argv: Sequence[str], env: Mapping[str, str]) -> Ran:
    """Run a program to its end and return its standard output; it is killed if the caller is
    cancelled.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return Ran(None, "")
    try:
        assert process.stdout is not None
        out = b""
        while piece := await process.stdout.read(64 * 1024):
            out += piece[
                : MAX_OUTPUT - len(out)
            ]  # the rest is discarded, or the program would block
        return Ran(await process.wait(), out.decode("utf-8", "replace"))
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
