"""The streamable HTTP transport, with bounds that the SDK's lacks: on bodies and floods.

A network fault becomes the answer of the one request that it hit (the SDK would drop the whole
connection), and is recorded in the trace of that request. TLS is always verified.
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
from edge.mcp.client.request_trace import TRACE, RequestTrace
from edge.mcp.client.stdio import MAX_VALUES
from edge.runtime.logs import clean

CONNECT_S: Final = 15.0
SILENCE_S: Final = 300.0
"""Longest silence within an answer; the call's own deadline is usually shorter."""
CONNECTIONS: Final = 40
"""As many as calls at once, and some for notifications."""
AUTH_BYTES: Final = 256 * 1024
"""Of a document about authorisation."""
EVENTS: Final = 4
"""A stream of events that answers one request may be as long as four answers: it has progress too.
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
    """Yield the SDK's two streams. Raises OSError if `ca_file` cannot be read."""
    headers = {**server.headers, "accept-encoding": "identity"}
    if server.bearer:
        headers["authorization"] = f"Bearer {server.bearer}"
    inner = httpx2.AsyncHTTPTransport(
        verify=_trusted(server),
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=2),
        proxy=_proxy(server.url),
    )
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    # An event is a little longer than the answer in it; `Bounded` has the effective bound.
    async with (
        httpx2.AsyncClient(
            transport=Bounded(inner, server),
            headers=headers,
            auth=auth,
            timeout=timeout,
            trust_env=False,
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=2 * server.max_answer_bytes
        ) as streams,
    ):
        yield streams


class Bounded(httpx2.AsyncBaseTransport):
    """Sends requests through `inner`; a network fault becomes an answer, not an exception."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, server: McpServer) -> None:
        self._inner = inner
        self._limit = server.max_answer_bytes
        self._where = httpx2.URL(server.url)
        self._rate = RateLimiter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises nothing but cancellation."""
        trace = TRACE.get() or RequestTrace()

        def refuse(kind: CallFault, message: str) -> httpx2.Response:
            trace.fail(kind, message)
            return _refusal(request, message)

        if self._where.scheme == "https" and request.url.scheme != "https":
            # a server on the internet may not direct us to one in this network
            problem = "the server names an address without TLS to sign in at"
            return refuse(CallFault.INVALID, f"{problem}: {request.url.host}")
        try:
            response = await self._inner.handle_async_request(request)
        except _UNSENT as e:
            place = urlsplit(str(request.url)).netloc
            return refuse(CallFault.UNSENT, f"{place} cannot be reached: {_describe(e)}")
        except (httpx2.TransportError, OSError) as e:
            trace.sent = True
            return refuse(CallFault.LOST, f"the connection was lost: {_describe(e)}")
        is_mcp = self._is_mcp(request)
        if is_mcp:
            self._note_status(request, response, trace)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # 256 KiB may unpack to as many MiB
            await response.aclose()
            problem = "the server compresses its answer though asked not to"
            return refuse(CallFault.INVALID, problem)
        if is_mcp:
            response.stream = self._body(request, response, trace)
        else:
            response.stream = _Body(response.stream, trace, self._rate, AUTH_BYTES)
        return response

    def _is_mcp(self, request: httpx2.Request) -> bool:
        """Return whether it is MCP, perhaps redirected within its host (`/mcp` to `/mcp/`), and not
        about authorisation.
        """
        accepts = request.headers.get("accept", "")
        here = request.url.path == self._where.path or "text/event-stream" in accepts
        return here and request.url.host == self._where.host

    def _note_status(
        self, request: httpx2.Request, response: httpx2.Response, trace: RequestTrace
    ) -> None:
        """Record what a status means. With OAuth, a 401 may still be followed by an answer."""
        trace.sent, trace.status = True, response.status_code
        if response.is_success and trace.fault in (CallFault.AUTH, CallFault.DENIED):
            trace.fault, trace.message = None, ""
        elif response.status_code == 401:
            trace.fail(CallFault.AUTH, "the server asks for authorisation (HTTP 401)")
        elif response.status_code == 403:
            trace.fail(CallFault.DENIED, "the server refuses us (HTTP 403)")
        elif response.status_code == 404 and "mcp-session-id" in request.headers:
            trace.fail(CallFault.UNSENT, "the server has forgotten our session")

    def _body(
        self, request: httpx2.Request, response: httpx2.Response, trace: RequestTrace
    ) -> "_Body":
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return _Body(response.stream, trace, self._rate, self._limit)
        listens = request.headers.get("mcp-method") == "subscriptions/listen"
        most = None if request.method == "GET" or listens else self._limit * EVENTS
        return _Body(response.stream, trace, self._rate, most, most_event=self._limit)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """A body of at most `most` bytes, in events of at most `most_event` bytes (0: no events). When
    it or the network breaks off, it ends with an error that the SDK expects, noted in the trace.
    """

    def __init__(
        self,
        inner: Any,
        trace: RequestTrace,
        rate: RateLimiter,
        most: int | None,
        *,
        most_event: int = 0,
    ) -> None:
        self._inner = inner
        self._trace = trace
        self._rate = rate
        self._most = most
        self._most_event = most_event
        self._size = self._values = self._event = 0
        self._edge = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._count(chunk)
                events = chunk.count(b"\n") / 3 if self._most_event else 0
                await self._rate.take(events, len(chunk))
                yield chunk
        except (httpx2.TransportError, OSError) as e:
            self._fail(CallFault.LOST, f"the connection was lost: {_describe(e)}")

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._values += chunk.count(b",") + chunk.count(b"[") + chunk.count(b"{")
        if self._most_event:
            self._count_event(chunk)
        for number, most, what in (
            (self._size, self._most, "bytes"),
            (self._event, self._most_event, "bytes"),
            (self._values, MAX_VALUES, "values"),
        ):
            if most is not None and number > most:
                problem = f"the server answers with more than {most} {what}"
                self._fail(CallFault.TOO_LARGE, problem)

    def _count_event(self, chunk: bytes) -> None:
        """Count from the last empty line on, which may lie across two chunks."""
        joined = self._edge + chunk
        last = max(joined.rfind(b"\n\n"), joined.rfind(b"\r\n\r\n"), joined.rfind(b"\r\r"))
        if last >= 0:
            self._event = len(joined) - last
            self._values = joined.count(b",", last) + joined.count(b"[", last)
        else:
            self._event += len(chunk)
        self._edge = joined[-3:]

    def _fail(self, kind: CallFault, message: str) -> None:
        self._trace.fail(kind, message)
        raise httpx2.StreamError(message)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _refusal(request: httpx2.Request, message: str) -> httpx2.Response:
    """Return what the SDK reads as the server's refusal of this one request."""
    data = ErrorData(code=INTERNAL_ERROR, message=message)
    error = JSONRPCError(jsonrpc="2.0", id=None, error=data)
    body = error.model_dump_json(by_alias=True).encode()
    return httpx2.Response(
        503, headers={"content-type": "application/json"}, content=body, request=request
    )


def _describe(error: Exception) -> str:
    return clean(str(error) or type(error).__name__, 160)


def _trusted(server: McpServer) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=server.ca_file or None)


def _proxy(url: str) -> str | None:
    """Return the machine's proxy for this address: httpx2 leaves it to an explicit transport."""
    parts = urlsplit(url)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    found = urllib.request.getproxies()
    return found.get(parts.scheme) or found.get("all")
