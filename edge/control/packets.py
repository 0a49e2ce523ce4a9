"""`GET /v1/packets`: all that passes between glassd and the glasses, while one client listens."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from edge.control import requests
from edge.control.dependencies import Tapped
from edge.control.http import Request, RequestRefused, Stream
from edge.ports import TapTaken
from firmware_bridge.deadlines import timeout
from firmware_bridge.driver import Passing
from firmware_bridge.recording.lines import line_of

MAX_WAITING: Final = 4096
"""Packets that the client has not read: two seconds of everything a radio can carry."""
HEARTBEAT_S: Final = 15.0


def follow(request: Request, tapped: Tapped | None, version: str) -> Stream:
    """Stream what passes; with `reconnect` from the beginning of a new connection on. Raise
    `RequestRefused`.
    """
    if tapped is None:
        fix = "ask the glassd that drives the glasses"
        raise RequestRefused("UNSUPPORTED", "this daemon has no link to record", fix)
    reconnect = requests.flag(request, "reconnect")
    return Stream(_blocks(tapped, reconnect=reconnect, version=version))


async def _blocks(tapped: Tapped, *, reconnect: bool, version: str) -> AsyncGenerator[str, None]:
    waiting: deque[tuple[float, Passing, Any]] = deque()
    news, full = asyncio.Event(), False

    def take(now: float, passing: Passing, value: Any) -> None:
        nonlocal full
        full = full or len(waiting) >= MAX_WAITING
        if not full:
            waiting.append((now, passing, value))
        news.set()

    try:
        async with tapped(take, reconnect=reconnect):
            while waiting or not full:
                if waiting:
                    yield _block(_event(version, *waiting.popleft()))
                elif not await _wait(news):
                    yield ":"
    except TapTaken as taken:
        yield _failed("CONFLICT", str(taken), "end the other recording first")
        return
    except TimeoutError:
        yield _failed("TIMEOUT", "the link was not closed in time", "try again in a moment")
        return
    problem = f"more than {MAX_WAITING} packets were not read"
    yield _failed("BUSY", problem, "record on a machine with less to do")


async def _wait(news: asyncio.Event) -> bool:
    """Wait for something that passes; False after a silence."""
    try:
        async with timeout(HEARTBEAT_S):
            await news.wait()
    except TimeoutError:
        return False
    news.clear()
    return True


def _event(version: str, now: float, passing: Passing, value: Any) -> dict[str, Any]:
    line = msgspec.to_builtins(line_of(now, passing, value))
    if passing is not Passing.CONNECTED:
        return {"event": "passed", **line}
    model, transport = value
    facts = {"model": model.key, "mtu": transport.max_packet + 3, "glassd": version}
    return {"event": "connected", **line, **facts, "names": [transport.address]}


def _failed(code: str, text: str, fix: str) -> str:
    return _block({"event": "failed", "code": code, "text": text, "fix": fix})


def _block(event: dict[str, Any]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}"
