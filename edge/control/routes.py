"""The paths of the control API, `/v1/…`: a request in, a reply out.

The result of a tool is always 200, also if the tool failed; 4xx is a request that is invalid, or
cannot be served in the current state.
"""

import re
from functools import partial
from typing import Any, Final

from msgspec import Struct

from edge.control import requests
from edge.control.calls import MAX_TTL_S, CallRoutes, within
from edge.control.dependencies import ControlDependencies
from edge.control.http import HttpLimits, Reply, Request, RequestRefused, Slots, Stream
from edge.control.listings import Listings
from edge.control.mcp_servers import ServerRoutes
from edge.control.pairing import PairingRoutes
from edge.control.results import Answers
from edge.control.sockets import ClientRole, SocketFile, for_the_owner
from edge.control.tools import GrantRoutes, ToolRoutes
from edge.core.tools.registry_sync import SyncFailed
from edge.ports import EnrolRefused
from firmware_bridge.deadlines import timeout

MAX_TEXT: Final = 4000
"""Characters of one transcript: minutes of talking."""
MAX_CODE: Final = 2000
MAX_LISTED: Final = 1000
MAX_WAIT_S: Final = 60.0
"""The longest a client may wait for a call's answer with one request; it may repeat it."""
SYNC_S: Final = 120.0
"""Fetching 8 MiB and checking it takes a Raspberry Pi a quarter of that."""
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Follow(Struct, frozen=True):
    """A stream of the events after this id, as the reply."""

    last_event_id: str | None
    calls: bool = True
    """Include the events of calls."""


class Routes:
    """Finds the handler of a path for the clients of one socket; `answer` raises `RequestRefused`
    for what cannot be served.
    """

    def __init__(
        self,
        ports: ControlDependencies,
        limits: HttpLimits,
        role: ClientRole,
        owners: SocketFile,
        listings: Listings,
    ) -> None:
        self._ports = ports
        self._owners = owners
        self._role = role
        self._answers = Answers(ports.store, ports.bus)
        busy = ("too many clients wait for an answer", "ask without wait, or try again in a moment")
        self._polls = Slots(limits.polls, *busy)
        calls = CallRoutes(ports, self._answers, begins=limits.begins, role=role, owners=owners)
        grants, pairing = GrantRoutes(ports), PairingRoutes(ports.pairing)
        tools, servers = ToolRoutes(ports, listings), ServerRoutes(ports.servers)
        caller, owner = ClientRole.CALLER, ClientRole.OWNER
        self._table: tuple[tuple[ClientRole, str, re.Pattern[str], Any], ...] = tuple(
            (may, method, re.compile(path), handler)
            for may, method, path, handler in (
                (caller, "GET", r"/v1/status", self._status),
                (caller, "GET", r"/v1/tools", tools.show),
                (owner, "PUT", r"/v1/tools", tools.switch),
                (caller, "GET", r"/v1/tools/one", tools.one),
                (caller, "GET", r"/v1/tools/usage", tools.usage),
                (caller, "POST", r"/v1/call", calls.call),
                (caller, "GET", r"/v1/confirm", calls.questions),
                (owner, "POST", r"/v1/confirm", calls.confirm),
                (caller, "GET", r"/v1/grants", grants.show),
                (owner, "PUT", r"/v1/grants", grants.give),
                (owner, "DELETE", r"/v1/grants", grants.revoke),
                (owner, "POST", r"/v1/say", self._say),
                (caller, "GET", r"/v1/calls", self._calls),
                (caller, "GET", r"/v1/calls/([^/]{1,64})", self._one_call),
                (caller, "POST", r"/v1/calls/([^/]{1,64})/cancel", calls.cancel),
                (caller, "POST", r"/v1/calls/([^/]{1,64})/result", calls.result),
                (caller, "GET", r"/v1/session", self._session),
                (caller, "GET", r"/v1/lens", self._lens),
                (caller, "GET", r"/v1/events", self._events),
                (caller, "GET", r"/v1/metrics", self._metrics),
                (owner, "GET", r"/v1/packets", self._packets),
                (owner, "GET", r"/v1/scan", pairing.scan),
                (caller, "GET", r"/v1/pairing", pairing.show),
                (owner, "POST", r"/v1/pairing", pairing.open),
                (owner, "POST", r"/v1/pairing/answer", pairing.answer),
                (owner, "DELETE", r"/v1/pairing", pairing.close),
                (owner, "DELETE", r"/v1/bonds", pairing.unpair),
                (owner, "DELETE", r"/v1/bonds/([^/]{1,64})", pairing.unpair),
                (owner, "POST", r"/v1/enrol", self._enrol),
                (owner, "POST", r"/v1/registry/sync", self._sync),
                (caller, "GET", r"/v1/servers", servers.show),
                (owner, "POST", r"/v1/servers/([^/]{1,63})/refresh", servers.refresh),
                (owner, "POST", r"/v1/servers/([^/]{1,63})/authorize", servers.authorize),
            )
        )

    async def answer(self, request: Request) -> Reply | Follow | Stream:
        """Serve one request."""
        allowed = []
        for may, method, pattern, handler in self._table:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                if not self._role.may(may):
                    raise for_the_owner(f"{method} {request.path[:80]}", self._owners)
                found: Reply | Follow | Stream = await handler(request, *match.groups())
                return found
            if match:
                allowed.append(method)
        if allowed:
            allow = ", ".join(allowed)
            problem = f"{request.method} is not allowed for {request.path}"
            raise RequestRefused("METHOD_NOT_ALLOWED", problem, f"use {allow}", allow=allow)
        raise RequestRefused(
            "NOT_FOUND",
            f"there is no path {request.path[:80]}",
            "paths begin with /v1/, for example /v1/status",
        )

    # -------------------------------------------------------------- reading

    async def _status(self, _request: Request) -> Reply:
        await self._ports.look()
        return Reply(200, dict(self._ports.status()))

    async def _calls(self, request: Request) -> Reply:
        limit = requests.number(request, "limit", default=20, most=MAX_LISTED)
        rows = await self._ports.store.recent(limit, pending=requests.flag(request, "pending"))
        return Reply(200, {"calls": [dict(row) for row in rows]})

    async def _one_call(self, request: Request, call_id: str) -> Reply:
        """Return the record of a call; with `wait` once it has its answer, or 204 if it still has
        none.
        """
        wait_s = requests.patience(request, "wait", most=MAX_WAIT_S)
        until = requests.one_of(request.query, "until", choices=("final", "answer"))
        if wait_s is None:
            return Reply(200, dict(await self._answers.record(call_id)))
        with self._polls.one():
            record = await self._answers.wait(call_id, wait_s, pending=until == "answer")
        return Reply(204, None) if record is None else Reply(200, dict(record))

    async def _session(self, request: Request) -> Reply:
        """Return the state of the voice session, and its latest transitions, newest first."""
        limit = requests.number(request, "limit", default=20, most=MAX_LISTED)
        moves = await self._ports.sessions.transitions(limit) if self._ports.sessions else []
        transitions = [dict(move) for move in moves]
        return Reply(200, {"state": dict(self._ports.session_state()), "transitions": transitions})

    async def _lens(self, request: Request) -> Reply:
        """Return what the lens shows; with `exact` each line's position and each image's pixels."""
        return Reply(200, dict(self._ports.render.lens(exact=requests.flag(request, "exact"))))

    async def _events(self, request: Request) -> Follow:
        return Follow(
            request.headers.get("last-event-id"),
            calls="calls" not in request.query or requests.flag(request, "calls"),
        )

    async def _packets(self, request: Request) -> Stream:
        from edge.control.packets import follow  # noqa: PLC0415 - only who records needs it

        return follow(request, self._ports.packets, str(self._ports.status().get("version", "")))

    async def _metrics(self, _request: Request) -> Reply:
        if self._ports.metrics is None:
            fix = "see its state instead: glassd status --json"
            raise RequestRefused("UNSUPPORTED", "this daemon keeps no metrics", fix)
        try:
            return Reply(200, await self._ports.metrics(), content_type=OPENMETRICS)
        except ModuleNotFoundError as e:
            raise RequestRefused(
                "UNSUPPORTED",
                f"OpenMetrics text needs prometheus-client: {e}",
                "pip install 'glassd[metrics]', then start glassd again; "
                "or read glassd status --json",
            ) from None

    # -------------------------------------------------------------- acting

    async def _say(self, request: Request) -> Reply:
        text = requests.read(request, {"text": partial(requests.text, most=MAX_TEXT)})["text"]
        return Reply(200, (await within(self._ports.say(text), MAX_TTL_S)).to_json())

    async def _enrol(self, request: Request) -> Reply:
        """Enrol with a code from a cloud's operator. The code is a secret: it is neither logged nor
        returned.
        """
        code = requests.read(request, {"code": partial(requests.text, most=MAX_CODE)})["code"]
        if self._ports.enrol is None:
            fix = "set [uplink] host in its configuration"
            raise RequestRefused("UNSUPPORTED", "this daemon cannot enrol", fix)
        try:
            return Reply(200, dict(await self._ports.enrol(code)))
        except EnrolRefused as e:
            status = 409 if e.final else 502
            raise RequestRefused(e.code, str(e), e.fix, status=status) from None

    async def _sync(self, _request: Request) -> Reply:
        """Fetch the cloud's registry now; return the registry layer of `status`. If it fails, the
        active registry stays.
        """
        if self._ports.sync is None:
            problem = "this daemon has no registry to fetch"
            raise RequestRefused("UNSUPPORTED", problem, "update glassd")
        try:
            async with timeout(SYNC_S):
                return Reply(200, dict(await self._ports.sync()))
        except SyncFailed as e:
            problem, fix = f"the registry was not fetched: {e}", e.hint or "see: glassd doctor"
            raise RequestRefused("SYNC_FAILED", problem, fix, status=502) from None
        except TimeoutError:
            problem = f"the registry was not fetched in {SYNC_S:.0f} s"
            raise RequestRefused("TIMEOUT", problem, "see: glassd doctor") from None
