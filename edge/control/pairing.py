"""The pairing paths of the control API: scan, a pairing window, its answers, the bonds.

A stream ends when its client disconnects, and the pairing window ends with the stream.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Final

from msgspec.structs import asdict

from edge.control import requests
from edge.control.dependencies import PairingPort
from edge.control.http import Reply, Request, RequestRefused, Stream
from edge.core.pairing_state import PairingRefused, PairingStep, PairingTimes
from firmware_bridge.errors import RadioError, RadioReason
from tools_cache.api.tool import Json

MAX_SCAN_S: Final = 120.0
SCAN_S: Final = 5.0
MAX_WINDOW_S: Final = PairingTimes().window_s
"""Longer requests are refused: a window must not close earlier than its client expects."""
_STATUS: Final = {"NOT_FOUND": 404, "NOT_SAVED": 507}
"""Of what pairing refuses; everything else is 409."""


class PairingRoutes:
    """Handlers of `/v1/scan`, `/v1/pairing` and `/v1/bonds`."""

    def __init__(self, pairing: PairingPort | None) -> None:
        self._maybe_pairing = pairing

    @property
    def _pairing(self) -> PairingPort:
        if self._maybe_pairing is None:
            problem = "this daemon cannot pair glasses"
            raise RequestRefused("NOT_FOUND", problem, "see: glassd status")
        return self._maybe_pairing

    async def scan(self, request: Request) -> Stream:
        seconds = requests.patience(request, "seconds", most=MAX_SCAN_S)
        settle_s = requests.patience(request, "settle", most=MAX_SCAN_S)
        return Stream(_blocks(_scan(self._pairing, seconds or SCAN_S, settle_s)))

    async def open(self, request: Request) -> Stream:
        """Open the window. The stream reports each step; closing it closes the window."""
        body = requests.read(request, _WINDOW)
        return Stream(_blocks(_steps(self._pairing, body["glasses"], body["seconds"])))

    async def answer(self, request: Request) -> Reply:
        body = requests.read(request, {"passkey": _passkey, "same": _any})
        passkey, same = body["passkey"], body["same"]
        if passkey is None and not isinstance(same, bool):
            raise requests.malformed(
                "answer: must be passkey or same",
                'for example: {"passkey": "012345"} or {"same": true}',
            )
        try:
            self._pairing.answer(passkey=passkey, same=same)
        except PairingRefused as refused:
            raise _refused(refused) from None
        return Reply(204, None)

    async def show(self, _request: Request) -> Reply:
        return Reply(200, dict(self._pairing.describe()))

    async def close(self, _request: Request) -> Reply:
        return Reply(200, {"closed": await self._pairing.close()})

    async def unpair(self, request: Request, wanted: str = "") -> Reply:
        """Delete one bond; without a name the only one."""
        del request
        try:
            bond = await self._pairing.unpair(wanted or None)
        except PairingRefused as refused:
            raise _refused(refused) from None
        except RadioError as error:
            raise RequestRefused("RADIO", str(error), error.hint, status=502) from None
        known = {"id": bond.id, "model": bond.model, "name": bond.name} if bond else {"id": wanted}
        return Reply(200, {"unpaired": known})


def _glasses(body: Mapping[str, Json], key: str) -> str | None:
    return requests.text(body, key, most=64) if body.get(key) else None


def _passkey(body: Mapping[str, Json], key: str) -> int | None:
    value = body.get(key)
    if value is None:
        return None
    text = "" if isinstance(value, bool) else str(value).replace(" ", "")
    if not (text.isascii() and text.isdecimal()) or len(text) > 6:
        raise requests.malformed("a code is six digits", "for example 012345")
    return int(text)


def _any(body: Mapping[str, Json], key: str) -> Json:
    return body.get(key)


_WINDOW: Final[requests.Fields] = {
    "glasses": _glasses,
    "seconds": partial(requests.seconds, default=MAX_WINDOW_S, most=MAX_WINDOW_S),
}


def _refused(refused: PairingRefused) -> RequestRefused:
    status = _STATUS.get(refused.code, 409)
    return RequestRefused(refused.code, str(refused), refused.fix, status=status)


Events = AsyncGenerator[Mapping[str, Json], None]


async def _scan(pairing: PairingPort, seconds: float, settle_s: float | None) -> Events:
    async with aclosing(pairing.scan(seconds, settle_s=settle_s)) as scan:
        async for glasses in scan:
            yield {"event": "heard", **asdict(glasses)}
    yield {"event": "done"}


async def _steps(pairing: PairingPort, wanted: str | None, seconds: float) -> Events:
    async with aclosing(pairing.window(wanted, seconds=seconds)) as window:
        async for step in window:
            yield _step(step)


async def _blocks(events: Events) -> AsyncGenerator[str, None]:
    """Yield each event as a block. An error after the stream began is its last event."""
    try:
        async with aclosing(events):
            async for event in events:
                yield _block(event)
    except PairingRefused as refused:
        yield _failed(refused.code, str(refused), refused.fix)
    except RadioError as error:
        code = "NOT_FOUND" if error.reason is RadioReason.NOT_FOUND else "RADIO"
        yield _failed(code, str(error), error.hint)


def _failed(code: str, text: str, fix: str) -> str:
    return _block({"event": "failed", "state": "FAILED", "code": code, "text": text, "fix": fix})


def _block(event: Mapping[str, Json]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}"


def _step(step: PairingStep) -> dict[str, Json]:
    event: dict[str, Json] = {"event": "failed" if step.code else "step", "state": step.state.value}
    if step.glasses is not None:
        event["glasses"] = asdict(step.glasses)
    named = ("text", "ask", "number", "how", "code", "fix")
    return event | {key: value for key in named if (value := getattr(step, key))}
