"""The streamable HTTP transport with bounds the SDK's has not: on bodies, on floods, and on what a
fault may end.

A network fault becomes the answer of the one request it hit (the SDK would drop the whole
connection), and the flight of that request is told what happened. Refuses to know sessions and
tools. TLS is always verified.
"""

import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

from edge.mcp.client.models import CallFault, McpServer
from edge.mcp.client.rate_limiter import RateLimiter
from edge.mcp.client.request_trace import FLIGHT, RequestTrace
from edge.mcp.client.stdio import MAX_VALUES
from edge.runtime.logs import clean

CONNECT_S: Final = 15.0
SILENCE_S: Final = 300.0
"""Longest silence within an answer; the call's own deadline is usually shorter."""
CONNECTIONS: Final = 40
"""As many as calls at once, and some for notices."""
AUTH_BYTES: Final = 256 * 1024
"""Of a document about authorisation."""
EVENTS: Final = 4
"""A stream of events that answers one request may be this many answers long: progress comes on
it, too.
"""
_UNSENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


@asynccontextmanager
async def http_wire(server: McpServer, auth: httpx2.Auth | None) -> AsyncGenerator[tuple[Any, Any]]:
    """Give the SDK's two streams. Raises OSError when `ca_file` cannot be read."""
    headers = {**server.headers, "accept-encoding": "identity"}
    if server.bearer:
        headers["authorization"] = f"Bearer {server.bearer}"
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=2)
    inner = httpx2.AsyncHTTPTransport(
        verify=_trusted(server), limits=limits, proxy=_proxy(server.url)
    )
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    bounded = Bounded(inner, server)
    # An event may be a little longer than the answer in it; our bound on the body is the one that
    # counts.
    async with (
        httpx2.AsyncClient(
            transport=bounded, headers=headers, auth=auth, timeout=timeout, trust_env=False
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=2 * server.max_answer_bytes
        ) as streams,
    ):
        yield streams


class Bounded(httpx2.AsyncBaseTransport):
    """Carries requests through `inner`; nothing that happens on the network leaves it as an
    exception.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, server: McpServer) -> None:
        self._inner = inner
        self._limit = server.max_answer_bytes
        self._where = httpx2.URL(server.url)
        self._pace = RateLimiter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises nothing but cancellation."""
        flight = FLIGHT.get() or RequestTrace()
        if (
            self._where.scheme == "https" and request.url.scheme != "https"
        ):  # a server out there may not send us about in here
            return _refusal(
                request,
                flight,
                CallFault.INVALID,
                f"the server names an address without TLS to sign in at: {request.url.host}",
            )
        try:
            response = await self._inner.handle_async_request(request)
        except _UNSENT as e:
            return _refusal(
                request,
                flight,
                CallFault.UNSENT,
                f"{urlsplit(str(request.url)).netloc} cannot be reached: {_said(e)}",
            )
        except (httpx2.TransportError, OSError) as e:
            flight.sent = True
            return _refusal(request, flight, CallFault.LOST, f"the connection was lost: {_said(e)}")
        ours = self._is_ours(request)
        if ours:
            self._judge(request, response, flight)
        if (
            response.headers.get("content-encoding", "identity").lower() != "identity"
        ):  # 256 KiB may unpack to as many MiB
            await response.aclose()
            return _refusal(
                request,
                flight,
                CallFault.INVALID,
                "the server compresses its answer though asked not to",
            )
        if not ours:
            response.stream = _Body(response.stream, flight, AUTH_BYTES, self._pace, events=False)
            return response
        response.stream = self._body(request, response, flight)
        return response

    def _is_ours(self, request: httpx2.Request) -> bool:
        """Is it a word of MCP, perhaps sent on within its host (`/mcp` to `/mcp/`), and not a
        question about signing in?
        """
        spoken = request.url.path == self._where.path or "text/event-stream" in request.headers.get(
            "accept", ""
        )
        return spoken and request.url.host == self._where.host

    def _judge(
        self, request: httpx2.Request, response: httpx2.Response, flight: RequestTrace
    ) -> None:
        """Tell the flight what a status means. Where OAuth is in use, a 401 may still turn into
        an answer.
        """
        flight.sent, flight.status = True, response.status_code
        if response.is_success and flight.fault in (CallFault.AUTH, CallFault.DENIED):
            flight.fault, flight.message = None, ""
        elif response.status_code == 401:
            flight.fail(CallFault.AUTH, "the server asks for authorisation (HTTP 401)")
        elif response.status_code == 403:
            flight.fail(CallFault.DENIED, "the server refuses us (HTTP 403)")
        elif response.status_code == 404 and "mcp-session-id" in request.headers:
            flight.fail(CallFault.UNSENT, "the server has forgotten our session")

    def _body(
        self, request: httpx2.Request, response: httpx2.Response, flight: RequestTrace
    ) -> "_Body":
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        endless = (
            request.method == "GET" or request.headers.get("mcp-method") == "subscriptions/listen"
        )
        most = None if events and endless else self._limit * EVENTS if events else self._limit
        return _Body(
            response.stream, flight, most, self._pace, events=events, most_event=self._limit
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """A body that ends with an error the SDK expects, told to the flight, when it breaks a
    bound or the network does.
    """

    def __init__(
        self,
        inner: Any,
        flight: RequestTrace,
        most: int | None,
        pace: RateLimiter,
        *,
        events: bool,
        most_event: int = 0,
    ) -> None:
        self._inner = inner
        self._flight = flight
        self._most = most
        self._pace = pace
        self._events = events
        self._most_event = most_event
        self._size = self._values = self._event = 0
        self._edge = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._count(chunk)
                await self._pace.take(chunk.count(b"\n") / 3 if self._events else 0, len(chunk))
                yield chunk
        except (httpx2.TransportError, OSError) as e:
            self._fail(CallFault.LOST, f"the connection was lost: {_said(e)}")

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._values += chunk.count(b",") + chunk.count(b"[") + chunk.count(b"{")
        if self._events:
            self._new_event(chunk)
        if self._most is not None and self._size > self._most:
            self._fail(CallFault.TOO_LARGE, f"the server answers with more than {self._most} bytes")
        if self._event > self._most_event and self._events:
            self._fail(
                CallFault.TOO_LARGE, f"the server answers with more than {self._most_event} bytes"
            )
        if self._values > MAX_VALUES:
            self._fail(
                CallFault.TOO_LARGE, f"the server answers with more than {MAX_VALUES} values"
            )

    def _new_event(self, chunk: bytes) -> None:
        """Count from the last empty line on, which may lie on the edge of two chunks."""
        joined = self._edge + chunk
        last = max(joined.rfind(b"\n\n"), joined.rfind(b"\r\n\r\n"), joined.rfind(b"\r\r"))
        if last >= 0:
            self._event, self._values = (
                len(joined) - last,
                joined.count(b",", last) + joined.count(b"[", last),
            )
        else:
            self._event += len(chunk)
        self._edge = joined[-3:]

    def _fail(self, kind: CallFault, message: str) -> None:
        self._flight.fail(kind, message)
        raise httpx2.StreamError(message)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()


def _refusal(
    request: httpx2.Request, flight: RequestTrace, kind: CallFault, message: str
) -> httpx2.Response:
    """What the SDK takes for the server's own refusal of this one request."""
    flight.fail(kind, message)
    error = JSONRPCError(
        jsonrpc="2.0", id=None, error=ErrorData(code=INTERNAL_ERROR, message=message)
    )
    body = error.model_dump_json(by_alias=True).encode()
    return httpx2.Response(
        503, headers={"content-type": "application/json"}, content=body, request=request
    )


def _said(error: Exception) -> str:
    return clean(str(error) or type(error).__name__, 160)


def _trusted(server: McpServer) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=server.ca_file or None)


def _proxy(url: str) -> str | None:
    """The machine's own proxy for this address; a transport of ours is not asked for it by the
    client.
    """
    parts = urlsplit(url)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    found = urllib.request.getproxies()
    return found.get(parts.scheme) or found.get("all")
