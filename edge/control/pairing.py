"""The pairing paths of the control API: scan, a pairing window, its answers, the bonds.

A stream ends when its client disconnects, and the pairing window ends with the stream.
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final

from edge.control import requests
from edge.control.dependencies import PairingPort
from edge.control.http import Reply, Request, RequestRefused
from edge.control.stream import Stream
from edge.core.pairing_state import HeardGlasses, PairingRefused, PairingStep, PairingTimes
from firmware_bridge.errors import RadioError, RadioReason
from tools_cache.api.tool import Json

MAX_SCAN_S: Final = 120.0
SCAN_S: Final = 5.0
MAX_WINDOW_S: Final = PairingTimes().window_s
"""Longer requests are refused: a window must not close earlier than its client expects."""
MAX_NAME: Final = 64
_STATUS: Final = {
    "BUSY": 409,
    "NOTHING_ASKED": 409,
    "AMBIGUOUS": 409,
    "NOT_FOUND": 404,
    "NOT_SAVED": 507,
}


class PairingRoutes:
    """Handlers of `/v1/scan`, `/v1/pairing` and `/v1/bonds`."""

    def __init__(self, desk: PairingPort | None) -> None:
        self._maybe_desk = desk

    @property
    def _desk(self) -> PairingPort:
        if self._maybe_desk is None:
            raise RequestRefused(
                404, "NOT_FOUND", "this daemon cannot pair glasses", "see: glassd status"
            )
        return self._maybe_desk

    async def scan(self, request: Request) -> Stream:
        seconds = requests.patience(request, "seconds", most=MAX_SCAN_S)
        settle_s = requests.patience(request, "settle", most=MAX_SCAN_S)
        return Stream(_told(_scanned(self._desk, seconds or SCAN_S, settle_s)))

    async def open(self, request: Request) -> Stream:
        """Open the window. The stream reports each step; closing it closes the window."""
        body = requests.json_object(request, ("glasses", "seconds"))
        wanted = requests.text(body, "glasses", most=MAX_NAME) if body.get("glasses") else None
        seconds = requests.seconds(body, "seconds", default=MAX_WINDOW_S, most=MAX_WINDOW_S)
        return Stream(_told(_stepped(self._desk, wanted, seconds)))

    async def answer(self, request: Request) -> Reply:
        body = requests.json_object(request, ("passkey", "same"))
        passkey, same = body.get("passkey"), body.get("same")
        if passkey is not None:
            passkey = _passkey(passkey)
        elif not isinstance(same, bool):
            raise RequestRefused(
                400,
                "INVALID_REQUEST",
                "answer: must be passkey or same",
                'for example: {"passkey": "012345"} or {"same": true}',
            )
        _refusing(lambda: self._desk.answer(passkey=passkey, same=same))
        return Reply(204, None)

    async def show(self, _request: Request) -> Reply:
        return Reply(200, dict(self._desk.describe()))

    async def close(self, _request: Request) -> Reply:
        return Reply(200, {"closed": await self._desk.close()})

    async def unpair(self, request: Request, wanted: str = "") -> Reply:
        """Delete one bond; without a name the only one."""
        del request
        try:
            bond = await self._desk.unpair(wanted or None)
        except PairingRefused as refused:
            raise _refused(refused) from None
        except RadioError as error:
            raise RequestRefused(502, "RADIO", str(error), error.hint) from None
        return Reply(
            200,
            {
                "unpaired": {"id": bond.id, "model": bond.model, "name": bond.name}
                if bond
                else {"id": wanted}
            },
        )


def _passkey(value: Any) -> int:
    text = (
        str(value).replace(" ", "")
        if isinstance(value, str | int) and not isinstance(value, bool)
        else ""
    )
    if not (text.isascii() and text.isdecimal()) or len(text) > 6:
        raise RequestRefused(400, "INVALID_REQUEST", "a code is six digits", "for example 012345")
    return int(text)


def _refusing(act: Callable[[], None]) -> None:
    try:
        act()
    except PairingRefused as refused:
        raise _refused(refused) from None


def _refused(refused: PairingRefused) -> RequestRefused:
    return RequestRefused(_STATUS.get(refused.code, 409), refused.code, str(refused), refused.fix)


Events = AsyncGenerator[Mapping[str, Json], None]


async def _scanned(desk: PairingPort, seconds: float, settle_s: float | None) -> Events:
    async with aclosing(desk.scan(seconds, settle_s=settle_s)) as scan:
        async for heard in scan:
            yield {"event": "heard", **_heard(heard)}
    yield {"event": "done"}


async def _stepped(desk: PairingPort, wanted: str | None, seconds: float) -> Events:
    async with aclosing(desk.window(wanted, seconds=seconds)) as window:
        async for step in window:
            yield _step(step)


async def _told(events: Events) -> AsyncGenerator[str, None]:
    """Write each as an event block; what the desk refuses after the stream began is its last
    event.
    """
    try:
        async with aclosing(events):
            async for event in events:
                yield _block(event)
    except PairingRefused as refused:
        yield _block(
            {
                "event": "failed",
                "state": "FAILED",
                "code": refused.code,
                "text": str(refused),
                "fix": refused.fix,
            }
        )
    except RadioError as error:
        code = "NOT_FOUND" if error.reason is RadioReason.NOT_FOUND else "RADIO"
        yield _block(
            {
                "event": "failed",
                "state": "FAILED",
                "code": code,
                "text": str(error),
                "fix": error.hint,
            }
        )


def _block(event: Mapping[str, Json]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}"


def _heard(heard: HeardGlasses) -> dict[str, Json]:
    return dict(asdict(heard))


def _step(step: PairingStep) -> dict[str, Json]:
    told: dict[str, Json] = {"event": "failed" if step.code else "step", "state": step.state.value}
    if step.glasses is not None:
        told["glasses"] = _heard(step.glasses)
    told.update(
        {k: v for k in ("text", "ask", "number", "how", "code", "fix") if (v := getattr(step, k))}
    )
    return told
