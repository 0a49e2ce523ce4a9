"""The paths of the control API, `/v1/…`: a request in, a reply out.

The result of a tool is always 200, also if the tool failed; 4xx is a request that is invalid, or
cannot be served in the current state.
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from edge.control import requests
from edge.control.calls import MAX_TTL_S, CallRoutes, within
from edge.control.dependencies import ControlDependencies
from edge.control.enrolment import enrolled
from edge.control.grants import GrantRoutes
from edge.control.http import HttpLimits, Reply, Request, RequestRefused
from edge.control.mcp_servers import ServerRoutes
from edge.control.metrics import counted
from edge.control.pairing import PairingRoutes
from edge.control.registry_sync import synced
from edge.control.results import Answers
from edge.control.roles import ClientRole, for_the_owner
from edge.control.slots import Slots
from edge.control.sockets import SocketFile
from edge.control.stream import Stream
from edge.control.tools import ToolRoutes

MAX_TEXT: Final = 4000
"""Characters of one transcript: minutes of talking."""
MAX_LISTED: Final = 1000
MAX_WAIT_S: Final = 60.0
"""The longest a client may wait for a call's answer with one request; it may repeat it."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Not a reply but a stream: happenings after this id."""

    last_event_id: str | None
    calls: bool = True
    """How calls fare, too."""


class Routes:
    """Finds the handler of a path for the clients of one socket; `answer` raises `RequestRefused`
    for what cannot be served.
    """

    def __init__(
        self, ports: ControlDependencies, limits: HttpLimits, role: ClientRole, owners: SocketFile
    ) -> None:
        self._ports = ports
        self._owners = owners  # where what is refused here may be asked
        self._role = role
        self._answers = Answers(ports.store, ports.bus)
        self._polls = Slots(
            limits.polls,
            "too many clients wait for an answer",
            "ask without wait, or try again in a moment",
        )
        calls, grants = (
            CallRoutes(ports, self._answers, begins=limits.begins, role=role, owners=owners),
            GrantRoutes(ports),
        )
        pairing, tools = PairingRoutes(ports.pairing), ToolRoutes(ports)
        servers = ServerRoutes(ports.servers)
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
                (owner, "GET", r"/v1/scan", pairing.scan),
                (caller, "GET", r"/v1/pairing", pairing.show),
                (owner, "POST", r"/v1/pairing", pairing.open),
                (owner, "POST", r"/v1/pairing/answer", pairing.answer),
                (owner, "DELETE", r"/v1/pairing", pairing.close),
                (owner, "DELETE", r"/v1/bonds", pairing.unpair),
                (owner, "DELETE", r"/v1/bonds/([^/]{1,64})", pairing.unpair),
                (owner, "POST", r"/v1/enrol", partial(enrolled, ports.enrol)),
                (owner, "POST", r"/v1/registry/sync", partial(synced, ports.sync)),
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
            raise RequestRefused(
                405,
                "METHOD_NOT_ALLOWED",
                f"{request.method} is not allowed for {request.path}",
                f"use {allow}",
                allow=allow,
            )
        raise RequestRefused(
            404,
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
        """One call's whole story; with `wait` when it has its answer, or 204 when it still has
        none.
        """
        wait_s = requests.patience(request, "wait", most=MAX_WAIT_S)
        until = requests.one_of(request.query, "until", ("final", "answer"))
        if wait_s is None:
            return Reply(200, dict(await self._answers.story(call_id)))
        with self._polls.one():
            story = await self._answers.wait(call_id, wait_s, pending=until == "answer")
        return Reply(204, None) if story is None else Reply(200, dict(story))

    async def _session(self, request: Request) -> Reply:
        """How the voice session stands, and how it came there; newest first."""
        limit = requests.number(request, "limit", default=20, most=MAX_LISTED)
        moves = await self._ports.sessions.transitions(limit) if self._ports.sessions else []
        return Reply(
            200,
            {
                "state": dict(self._ports.session_state()),
                "transitions": [dict(move) for move in moves],
            },
        )

    async def _lens(self, request: Request) -> Reply:
        """With `exact`, every line at its place and every picture's pixels too."""
        return Reply(200, dict(self._ports.render.lens(exact=requests.flag(request, "exact"))))

    async def _events(self, request: Request) -> Follow:
        return Follow(
            request.headers.get("last-event-id"),
            calls="calls" not in request.query or requests.flag(request, "calls"),
        )

    async def _metrics(self, _request: Request) -> Reply:
        return await counted(self._ports.metrics)

    async def _say(self, request: Request) -> Reply:
        text = requests.text(requests.json_object(request, ("text",)), "text", most=MAX_TEXT)
        return Reply(200, (await within(self._ports.heard(text), MAX_TTL_S)).to_json())
