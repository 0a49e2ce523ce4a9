"""A person's authorisation for one server, through the SDK's client: discovery, registration, PKCE,
refreshing.

Adds what a machine without a browser needs: the address is told as news, and code and state are
handed in later. Tokens are kept in a file that only we can read. Refuses to know connections.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from edge.mcp.client.models import McpServer
from edge.mcp.client.request_trace import FLIGHT
from edge.runtime.files import write_atomic
from firmware_bridge.deadlines import timeout

AUTHORIZE_S: Final = 600.0
"""How long a person has to authorise; then the server is asked for a new address."""
MAX_FILE: Final = 64 * 1024

log = logging.getLogger(__name__)
Wants = Callable[[str, int], None]
Browser = Callable[[str], Awaitable[tuple[str, str, str | None]]]
"""Goes to an address as a person would; gives code, state and issuer. For who can do without a
person.
"""


class Tokens:
    """The SDK's storage: one JSON file, mode 0600, replaced whole; without a path only memory."""

    def __init__(self, server: McpServer) -> None:
        self._path = Path(server.tokens_file) if server.tokens_file else None
        self._server = server
        self._kept: dict[str, Any] = self._read()
        self.expires_at: float | None = self._kept.get("expires_at")

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept, if it can still be understood."""
        try:
            return (
                OAuthToken.model_validate(self._kept["tokens"]) if "tokens" in self._kept else None
            )
        except ValidationError:
            return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them, and until when they hold."""
        self.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._keep(
            tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=self.expires_at
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are there: as configured, else as registered."""
        if self._server.client_id:
            method = (
                "client_secret_basic" if self._server.client_secret else "none"
            )  # every server must take it (RFC 6749 §2.3.1)
            return OAuthClientInformationFull.model_validate(
                {
                    "client_id": self._server.client_id,
                    "client_secret": self._server.client_secret or None,
                    "redirect_uris": [self._server.redirect_uri],
                    "token_endpoint_auth_method": method,
                }
            )
        try:
            return (
                OAuthClientInformationFull.model_validate(self._kept["client"])
                if "client" in self._kept
                else None
            )
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what we were registered as."""
        self._keep(client=client_info.model_dump(mode="json", exclude_none=True))

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_bytes()[:MAX_FILE]) if self._path is not None else {}
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and found.get("url") == self._server.url else {}

    def _keep(self, **more: Any) -> None:
        self._kept |= {"url": self._server.url, **more}
        if self._path is None:
            return
        try:
            write_atomic(self._path, json.dumps(self._kept).encode())
        except OSError as e:
            log.warning("the tokens of %s cannot be kept: %s", self._server.id, e.strerror)


class Authorizer:
    """One per server; a new flow per connection. `browser` answers in a person's place, where
    there is none to wait for.
    """

    def __init__(self, server: McpServer, browser: Browser | None = None) -> None:
        self._server = server
        self._browser = browser
        self._tokens = Tokens(server)
        self._answer: asyncio.Future[AuthorizationCodeResult] | None = None

    def flow(self, *, wants: Wants, authorized: Callable[[], None]) -> httpx2.Auth:
        """Give the SDK's flow. `wants(url, status)` is told that a person is needed,
        `authorized()` that they were there.
        """

        async def redirect(url: str) -> None:
            flight = FLIGHT.get()
            self._answer = asyncio.get_running_loop().create_future()
            if self._browser is None:
                wants(url, 401 if flight is None else flight.status)
                return
            code, state, iss = await self._browser(url)
            self.complete(code, state, iss)

        async def callback() -> AuthorizationCodeResult:
            assert self._answer is not None
            async with timeout(AUTHORIZE_S):
                found = await self._answer
            authorized()
            return found

        server = self._server
        described = OAuthClientMetadata.model_validate(
            {
                "client_name": "glassd",
                "redirect_uris": [server.redirect_uri],
                "scope": server.scope or None,
            }
        )
        return _Provider(
            server.url,
            described,
            self._tokens,
            redirect,
            callback,
            client_metadata_url=server.client_metadata_url or None,
        )

    def complete(self, code: str, state: str, iss: str | None = None) -> bool:
        """Hand over what the browser came back with; says whether anybody was waiting for it."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(AuthorizationCodeResult(code=code, state=state, iss=iss))
        return True


class _Provider(OAuthClientProvider):
    """Knows when tokens from the file end; the SDK's would be told by the server, and then ask
    a person again.
    """

    async def _initialize(self) -> None:
        await super()._initialize()
        storage = self.context.storage
        if isinstance(storage, Tokens) and self.context.current_tokens is not None:
            self.context.token_expiry_time = storage.expires_at


def wanted(server: McpServer) -> bool:
    """Whether a demand for authorisation is followed: not where a secret is configured."""
    return (
        server.oauth
        and bool(server.url)
        and not server.bearer
        and "authorization" not in {h.lower() for h in server.headers}
    )
