"""Paths of the other MCP servers: their state, listing their tools again, completing a sign-in. No
secret passes through here.
"""

from collections.abc import Awaitable
from typing import Final
from urllib.parse import parse_qs, urlsplit

from edge.control import requests
from edge.control.dependencies import NoServer, ServersPort
from edge.control.http import Reply, Request, RequestRefused
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import Json

LONGEST_S: Final = 60.0
"""Starting a program and listing what it offers; npx may fetch it first."""
MAX_CODE: Final = 4096


class ServerRoutes:
    """`/v1/servers`."""

    def __init__(self, servers: ServersPort | None) -> None:
        self._servers = servers

    async def show(self, _request: Request) -> Reply:
        return Reply(200, {"servers": self._all()})

    async def refresh(self, request: Request, server: str) -> Reply:
        """List the server's tools again; the reply is its new state."""
        requests.json_object(request, (), empty=True)
        return await self._done(server, self._port().refresh(server))

    async def authorize(self, request: Request, server: str) -> Reply:
        """Complete a sign-in; without `state` the one that is under way."""
        body = requests.json_object(request, ("code", "state", "iss"))
        code = requests.text(body, "code", most=MAX_CODE)
        state, iss = (
            requests.text(body, key, most=MAX_CODE, default="") for key in ("state", "iss")
        )
        return await self._done(
            server, self._port().authorize(server, code, state or self._state(server), iss or None)
        )

    async def _done(self, server: str, work: Awaitable[None]) -> Reply:
        try:
            async with timeout(LONGEST_S):
                await work
        except NoServer as e:
            raise RequestRefused(404, "NOT_FOUND", str(e), e.fix) from None
        except TimeoutError:
            raise RequestRefused(
                504,
                "TIMEOUT",
                f"{server} gave no answer in {LONGEST_S:.0f} s",
                "see: glassd servers",
            ) from None
        return Reply(200, next((one for one in self._all() if one["id"] == server), {}))

    def _state(self, server: str) -> str:
        """The `state` of the sign-in that is under way stands in its address."""
        url = next(
            (str(one.get("authorize_url", "")) for one in self._all() if one["id"] == server), ""
        )
        return next(iter(parse_qs(urlsplit(url).query).get("state", ())), "")

    def _all(self) -> list[dict[str, Json]]:
        return [dict(one) for one in self._servers.describe()] if self._servers is not None else []

    def _port(self) -> ServersPort:
        if self._servers is None:
            raise RequestRefused(
                501, "UNSUPPORTED", "this daemon supports no other MCP servers", "update glassd"
            )
        return self._servers
