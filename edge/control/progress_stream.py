"""A call with progress: `progress` events, then the `answer`, in order, on the call's own
connection.

A client that disconnects does not cancel its call; it can cancel it by the id it chose.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

from edge.control.http import failure
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ToolResponse

KEPT: Final = 64
"""Words of progress a slow client may be behind; what is said beyond that is left out."""

Running = Callable[..., Coroutine[Any, Any, ToolResponse]]
"""A call that waits to be told where its progress goes."""


async def progressing(
    call: Running, limit_s: float, shown: Callable[[ToolResponse], Any]
) -> AsyncGenerator[str, None]:
    """Give one event block per word of progress and one for the envelope, as it is `shown`, or
    for why there is none in time.
    """
    words: deque[str] = deque()
    news = asyncio.Event()

    async def told(text: str) -> None:
        if len(words) < KEPT:
            words.append(text)
            news.set()

    running = asyncio.ensure_future(_within(call(progress=told), limit_s))
    running.add_done_callback(lambda _: news.set())
    try:
        while True:
            while words:
                yield _block("progress", text=words.popleft())
            if running.done():
                break
            await news.wait()
            news.clear()
        answer = running.result()
        yield (
            _block("answer", envelope=shown(answer))
            if answer
            else _block("late", **failure("TIMEOUT", "there was no answer in time"))
        )
    finally:
        running.cancel()


async def _within(call: Coroutine[Any, Any, ToolResponse], limit_s: float) -> ToolResponse | None:
    try:
        async with timeout(limit_s):
            return await call
    except TimeoutError:
        return None


def _block(event: str, **told: Any) -> str:
    return "data: " + json.dumps({"event": event, **told}, ensure_ascii=False)
