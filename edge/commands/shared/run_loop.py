"""Runs a long-running command: an event loop, and a clean end at SIGTERM."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from edge.commands.shared.extras import load


def run_until_signal(main: Callable[[], Coroutine[Any, Any, Any]], *, fast: bool = False) -> int:
    """Run `main` and return its exit code (None is 0), or 0 after SIGTERM; raise
    KeyboardInterrupt after SIGINT. `fast` uses uvloop.
    """
    factory = load("uvloop", "run").new_event_loop if fast else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return int(runner.run(_until_terminated(main)) or 0)


async def _until_terminated(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Cancel `main` at the first SIGTERM; a second one ends the process at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        for end in ends:
            loop.remove_signal_handler(end)
        task.cancel()

    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal closed, without nohup
        ends.append(signal.SIGHUP)
    for end in ends:
        loop.add_signal_handler(end, terminate)
    try:
        return await main()
    except asyncio.CancelledError:
        if not terminated:
            raise
        return 0
    finally:
        for end in ends:
            with contextlib.suppress(ValueError, RuntimeError):
                loop.remove_signal_handler(end)
