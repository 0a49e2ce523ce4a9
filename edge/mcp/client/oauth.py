"""A person's authorisation for one server, by the SDK's client: discovery, registration, PKCE,
refreshing.

It adds what a machine without a browser needs: the address is reported as news, and code and state
are passed in later. Tokens are stored in a file of mode 0600.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import BaseModel, ValidationError

from edge.mcp.client.models import AUTHORIZE_S, McpServer
from edge.mcp.client.request_trace import TRACE
from edge.runtime.files import write_atomic
from firmware_bridge.deadlines import timeout

MAX_FILE: Final = 64 * 1024

log = logging.getLogger(__name__)
Browser = Callable[[str], Awaitable[tuple[str, str, str | None]]]
"""Opens an address in place of a person; returns code, state and issuer."""
M = TypeVar("M", bound=BaseModel)


class Tokens:
    """The SDK's storage: one JSON file, mode 0600; without a path in memory only."""

    def __init__(self, server: McpServer) -> None:
        self._path = Path(server.tokens_file) if server.tokens_file else None
        self._server = server
        self._stored: dict[str, Any] = self._read()
        self.expires_at: float | None = self._stored.get("expires_at")

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens; None if they are absent or invalid."""
        return self._get("tokens", OAuthToken)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._store(
            tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=self.expires_at
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client as configured, else as registered."""
        if not self._server.client_id:
            return self._get("client", OAuthClientInformationFull)
        secret = self._server.client_secret or None
        return OAuthClientInformationFull.model_validate(
            {
                "client_id": self._server.client_id,
                "client_secret": secret,
                "redirect_uris": [self._server.redirect_uri],
                # every server must support it (RFC 6749 §2.3.1)
                "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
            }
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._store(client=client_info.model_dump(mode="json", exclude_none=True))

    def _get(self, key: str, model: type[M]) -> M | None:
        try:
            return model.model_validate(self._stored[key])
        except (KeyError, ValidationError):
            return None

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_bytes()[:MAX_FILE]) if self._path is not None else {}
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and found.get("url") == self._server.url else {}

    def _store(self, **more: Any) -> None:
        self._stored |= {"url": self._server.url, **more}
        if self._path is None:
            return
        try:
            write_atomic(self._path, json.dumps(self._stored).encode())
        except OSError as e:
            log.warning("the tokens of %s cannot be stored: %s", self._server.id, e.strerror)


class Authorizer:
    """One per server, with a new flow per connection. `browser` answers in place of a person."""

    def __init__(self, server: McpServer, browser: Browser | None = None) -> None:
        self._server = server
        self._browser = browser
        self._tokens = Tokens(server)
        self._answer: asyncio.Future[AuthorizationCodeResult] | None = None

    def flow(self, *, wait: Callable[[str, int], None], resume: Callable[[], None]) -> httpx2.Auth:
        """Return the SDK's flow. It calls `wait(url, HTTP status)` when a person is needed, and
        `resume()` when they have answered.
        """

        async def redirect(url: str) -> None:
            trace = TRACE.get()
            self._answer = asyncio.get_running_loop().create_future()
            if self._browser is None:
                wait(url, 401 if trace is None else trace.status)
                return
            code, state, iss = await self._browser(url)
            self.complete(code, state, iss)

        async def callback() -> AuthorizationCodeResult:
            assert self._answer is not None
            async with timeout(AUTHORIZE_S):
                found = await self._answer
            resume()
            return found

        server = self._server
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "glassd",
                "redirect_uris": [server.redirect_uri],
                "scope": server.scope or None,
            }
        )
        return _Provider(
            server.url,
            metadata,
            self._tokens,
            redirect,
            callback,
            client_metadata_url=server.client_metadata_url or None,
        )

    def complete(self, code: str, state: str, iss: str | None = None) -> bool:
        """Pass on what the browser came back with; return whether a flow was waiting for it."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(AuthorizationCodeResult(code=code, state=state, iss=iss))
        return True


class _Provider(OAuthClientProvider):
    """Knows when stored tokens expire; the SDK's learns it from a refusal, and asks a person."""

    async def _initialize(self) -> None:
        await super()._initialize()
        storage = self.context.storage
        if isinstance(storage, Tokens) and self.context.current_tokens is not None:
            self.context.token_expiry_time = storage.expires_at


def supports(server: McpServer) -> bool:
    """Return whether a demand for authorisation is followed: not if a secret is configured."""
    return (
        server.oauth
        and bool(server.url)
        and not server.bearer
        and "authorization" not in {h.lower() for h in server.headers}
    )
