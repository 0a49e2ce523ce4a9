"""The paths of the control API, `/v1/…`: a request in, a reply out.

Refuses to know sockets and HTTP's bytes. A tool's result is always 200, whatever it says; 4xx is a request we cannot read.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from edge.control.http import Refused, Reply, Request
from edge.ports import CallsPort, CallStorePort, Entry, RegistryPort, RenderPort, Wait
from tools_cache.tool import CallOrigin, ErrorCode, Json, Mode, ToolCall, ToolResponse

GRACE_S: Final = 60.0
"""How long after its own deadline a call's answer (speech included) may still come: the longest text takes 40 s to say."""
MAX_TTL_S: Final = 86400.0
MAX_TEXT: Final = 4000
"""Characters of one transcript: minutes of talking."""
MAX_LISTED: Final = 1000

_CALL_KEYS: Final = ("tool", "args", "mode", "wait", "confirm", "idempotency_key", "ttl_s", "turn_id", "origin")

Confirm = Callable[[ToolCall, str], Awaitable[ToolResponse]]
"""Runs a call that a person confirmed: the call, and the token that was issued for it."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What the control API hands requests on to. `spawn` runs a call nobody waits for; False when there are too many."""

    calls: CallsPort
    registry: RegistryPort
    render: RenderPort
    store: CallStorePort
    status: Callable[[], Mapping[str, Json]]
    heard: Callable[[str], Awaitable[ToolResponse]]
    new_id: Callable[[], str]
    spawn: Callable[[Callable[[], Awaitable[object]]], bool]
    confirm: Confirm | None = None
    user_id: str = "local"


@dataclass(frozen=True, slots=True)
class Follow:
    """Not a reply but a stream: happenings after this id."""

    last_event_id: str | None


class Routes:
    """Finds the handler of a path; `answer` raises `Refused` for what cannot be served."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._table: tuple[tuple[str, re.Pattern[str], Any], ...] = (
            ("GET", re.compile(r"/v1/status"), self._status),
            ("GET", re.compile(r"/v1/tools"), self._tools),
            ("POST", re.compile(r"/v1/call"), self._call),
            ("POST", re.compile(r"/v1/say"), self._say),
            ("GET", re.compile(r"/v1/calls"), self._calls),
            ("GET", re.compile(r"/v1/calls/([^/]{1,64})"), self._one_call),
            ("GET", re.compile(r"/v1/lens"), self._lens),
            ("GET", re.compile(r"/v1/events"), self._events),
        )

    async def answer(self, request: Request) -> Reply | Follow:
        """Serve one request."""
        allowed = []
        for method, pattern, handler in self._table:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                found: Reply | Follow = await handler(request, *match.groups())
                return found
            if match:
                allowed.append(method)
        if allowed:
            allow = ", ".join(allowed)
            raise Refused(405, "METHOD_NOT_ALLOWED", f"{request.method} is not for {request.path}", f"use {allow}", allow=allow)
        raise Refused(404, "NOT_FOUND", f"there is no {request.path[:80]}", "paths begin with /v1/, see contract §6")

    # -------------------------------------------------------------- reading

    async def _status(self, _request: Request) -> Reply:
        return Reply(200, dict(self._ports.status()))

    async def _tools(self, request: Request) -> Reply:
        everything = _flag(request, "all")
        category = request.query.get("category", "")
        snapshot = self._ports.registry.snapshot()
        shown = [
            _tool(e) for e in snapshot.entries()
            if (everything or not e.hidden) and category in {"", e.definition.category}
        ]  # fmt: skip
        return Reply(200, {"version": snapshot.version, "tools": shown})

    async def _calls(self, request: Request) -> Reply:
        limit = _number(request, "limit", default=20, most=MAX_LISTED)
        rows = await self._ports.store.recent(limit, pending=_flag(request, "pending"))
        return Reply(200, {"calls": [dict(row) for row in rows]})

    async def _one_call(self, _request: Request, call_id: str) -> Reply:
        row = await self._ports.store.get(call_id)
        if row is None:
            raise Refused(404, "NOT_FOUND", f"there is no call {call_id}", "see the last ones: glassd calls")
        return Reply(200, dict(row))

    async def _lens(self, _request: Request) -> Reply:
        return Reply(200, dict(self._ports.render.lens()))

    async def _events(self, request: Request) -> Follow:
        return Follow(request.headers.get("last-event-id"))

    # -------------------------------------------------------------- doing

    async def _say(self, request: Request) -> Reply:
        body = _object(request, ("text",))
        text = _text(body, "text", most=MAX_TEXT)
        return await self._envelope(self._ports.heard(text), limit_s=MAX_TTL_S)

    async def _call(self, request: Request) -> Reply:
        body = _object(request, _CALL_KEYS)
        call = self._tool_call(body)
        wait = body.get("wait", Wait.ANSWER.value)
        if wait is False:
            return self._in_background(call, body)
        if wait not in tuple(Wait):
            raise _malformed('wait: must be "answer", "delivery" or false')
        return await self._envelope(self._run(call, body, Wait(wait)), limit_s=call.ttl_s + GRACE_S)

    def _tool_call(self, body: Mapping[str, Json]) -> ToolCall:
        args = body.get("args", {})
        if not isinstance(args, dict):
            raise _malformed("args: must be an object", 'for example {"text": "milk"}')
        ttl = body.get("ttl_s", 40.0)
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= MAX_TTL_S:
            raise _malformed(f"ttl_s: must be a number of seconds, more than 0, at most {MAX_TTL_S:g}")
        return ToolCall(
            call_id=self._ports.new_id(), tool=_text(body, "tool", most=255), args=args,
            origin=CallOrigin(_one_of(body, "origin", (CallOrigin.CLI, CallOrigin.MCP))),
            mode=Mode(_one_of(body, "mode", (Mode.TEXT, Mode.VOICE))),
            turn_id=_text(body, "turn_id", most=64, default=""), user_id=self._ports.user_id, ttl_s=float(ttl),
            idempotency_key=_text(body, "idempotency_key", most=255, default="") or None,
        )  # fmt: skip

    async def _run(self, call: ToolCall, body: Mapping[str, Json], wait: Wait) -> ToolResponse:
        token = _text(body, "confirm", most=255, default="")
        if not token:
            return await self._ports.calls.call(call, wait=wait)
        if self._ports.confirm is None:
            message = "this daemon takes confirmations on the glasses only"
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, message, suggestion="confirm on the glasses, without a token")
        return await self._ports.confirm(call, token)

    def _in_background(self, call: ToolCall, body: Mapping[str, Json]) -> Reply:
        if not self._ports.spawn(lambda: self._run(call, body, Wait.ANSWER)):
            raise Refused(503, "BUSY", "too many calls are running that nobody waits for", "wait for some: glassd calls --pending")
        return Reply(202, {"call_id": call.call_id})

    async def _envelope(self, answer: Awaitable[ToolResponse], *, limit_s: float) -> Reply:
        try:
            async with asyncio.timeout(limit_s):
                response = await answer
        except TimeoutError:
            raise Refused(504, "TIMEOUT", "there was no answer in time", "see what became of it: glassd calls") from None
        return Reply(200, response.to_json())


def _tool(entry: Entry) -> dict[str, Json]:
    d = entry.definition
    return {
        "name": d.name, "description": d.description, "category": d.category, "source": d.source.value,
        "app": entry.app_name, "version": d.version, "inputSchema": dict(d.input_schema),
        "sideEffects": d.side_effects.value, "requiresConfirmation": d.requires_confirmation,
        "allowedModes": sorted(d.allowed_modes), "queueable": d.queueable,
        "activationPhrases": list(d.activation_phrases), "hidden": entry.hidden,
        "missing": list(entry.missing), "stale": entry.stale,
    }  # fmt: skip


# ------------------------------------------------------------------ reading a request


def _malformed(message: str, fix: str = "") -> Refused:
    return Refused(400, "INVALID_REQUEST", message, fix)


def _object(request: Request, known: tuple[str, ...]) -> dict[str, Json]:
    """Read a JSON object with no key but the known ones; text that cannot be written again is refused too."""
    try:
        body = json.loads(request.body, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeError:
        raise _malformed("the body is not UTF-8 text, or holds half a character") from None
    except ValueError as e:
        raise _malformed(f"the body is not JSON: {e}") from None
    except RecursionError:
        raise _malformed("the body is nested too deeply") from None
    if not isinstance(body, dict):
        raise _malformed("the body must be a JSON object")
    unknown = [key for key in body if key not in known]
    if unknown:
        raise _malformed(f"{unknown[0][:40]}: unknown key", f"known: {', '.join(known)}")
    return body


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _text(body: Mapping[str, Json], key: str, *, most: int, default: str | None = None) -> str:
    value = body.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise _malformed(f"{key}: must be text")
    if len(value) > most:
        raise _malformed(f"{key}: must have at most {most} characters")
    return value


def _one_of(body: Mapping[str, Json], key: str, choices: tuple[str, ...]) -> str:
    value = body.get(key, choices[0])
    if value not in choices:
        raise _malformed(f"{key}: must be one of {', '.join(choices)}")
    return str(value)


def _flag(request: Request, key: str) -> bool:
    value = request.query.get(key, "0")
    if value not in {"0", "1", "true", "false"}:
        raise _malformed(f"{key}: must be 1 or 0")
    return value in {"1", "true"}


def _number(request: Request, key: str, *, default: int, most: int) -> int:
    value = request.query.get(key, str(default))
    if not value.isdecimal() or not 1 <= int(value[:9]) <= most:
        raise _malformed(f"{key}: must be a whole number from 1 to {most}")
    return int(value)
