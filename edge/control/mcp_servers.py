"""Paths of the other MCP servers: their state, listing their tools again, completing a sign-in. No
secret passes through here.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final
from urllib.parse import parse_qs, urlsplit

from edge.control import requests
from edge.control.dependencies import NoServer, ServersPort
from edge.control.http import Reply, Request, RequestRefused
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json

LONGEST_S: Final = 60.0
"""Starting a program and listing what it offers; npx may fetch it first."""
_OPTIONAL: Final = partial(requests.optional_text, most=4096)
_AUTHORIZE: Final[requests.Fields] = {
    "code": partial(requests.text, most=4096),
    "state": _OPTIONAL,
    "iss": _OPTIONAL,
}


class ServerRoutes:
    """`/v1/servers`."""

    def __init__(self, servers: ServersPort | None) -> None:
        self._servers = servers

    async def show(self, _request: Request) -> Reply:
        return Reply(200, {"servers": self._all()})

    async def refresh(self, request: Request, server: str) -> Reply:
        """List the server's tools again; the reply is its new state."""
        requests.read(request, {}, empty=True)
        return await self._done(server, self._port().refresh(server))

    async def authorize(self, request: Request, server: str) -> Reply:
        """Complete a sign-in; without `state` the one that is under way."""
        body = requests.read(request, _AUTHORIZE)
        state, iss = body["state"] or self._state(server), body["iss"] or None
        return await self._done(server, self._port().authorize(server, body["code"], state, iss))

    async def _done(self, server: str, work: Awaitable[None]) -> Reply:
        try:
            async with timeout(LONGEST_S):
                await work
        except NoServer as e:
            raise RequestRefused("NOT_FOUND", str(e), e.fix) from None
        except TimeoutError:
            problem = f"{server} gave no answer in {LONGEST_S:.0f} s"
            raise RequestRefused("TIMEOUT", problem, "see: glassd servers") from None
        return Reply(200, self._one(server))

    def _one(self, server: str) -> dict[str, Json]:
        return next((one for one in self._all() if one["id"] == server), {})

    def _state(self, server: str) -> str:
        """Return the `state` of the sign-in that is under way, from its address."""
        url = str(self._one(server).get("authorize_url", ""))
        return next(iter(parse_qs(urlsplit(url).query).get("state", ())), "")

    def _all(self) -> list[dict[str, Json]]:
        return [dict(one) for one in self._servers.describe()] if self._servers is not None else []

    def _port(self) -> ServersPort:
        if self._servers is None:
            problem = "this daemon supports no other MCP servers"
            raise RequestRefused("UNSUPPORTED", problem, "update glassd")
        return self._servers
