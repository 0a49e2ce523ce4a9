"""Sends one HTTP request of a user's tool. Imports httpx, so it is loaded at the first call.

No redirects, no cookies, no proxy settings from the environment, no compression (the size limit
counts real bytes); TLS is verified. Failures are distinguished by exception, not by message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.parse import urlsplit

import httpx

from tools_cache.api.tool import ErrorCode
from tools_cache.app_results import clean

MAX_ANSWER: Final = 128 * 1024
"""Bytes of an answer; with its envelope, and escaped, it must fit one MQTT message (256 KiB)."""
MAX_ERROR: Final = 4096
"""Bytes read of an error answer; its text is cut to 500 characters."""
CONNECT_S: Final = 10.0
CONNECTIONS: Final = 16
"""Connections of all tools at once; more calls wait within their time."""
KEPT: Final = 4
KEPT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class HttpToolAnswer:
    """The answer: a status with its text, or why it `failed`. `sent`: the server may have executed
    the request.
    """

    status: int = 0
    text: str = ""
    type: str = ""
    failed: str = ""
    code: ErrorCode = ErrorCode.EXECUTION_ERROR
    sent: bool = False


class OutgoingRequest:
    """One per daemon; the caller sets the deadline."""

    def __init__(self) -> None:
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=KEPT, keepalive_expiry=KEPT_S
        )
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            limits=limits,
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            headers={"User-Agent": "glassd", "Accept-Encoding": "identity"},
            # No cookie of one tool's answer goes out with another tool's call.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpToolAnswer:
        """Send one request. Raises only for mistakes in glassd itself."""
        host = urlsplit(url).hostname or ""
        try:
            async with self._client.stream(
                method, url, headers=dict(headers), content=body
            ) as answer:
                return await _read(answer)
        except httpx.InvalidURL:
            return HttpToolAnswer(
                failed="The address cannot be asked with these values",
                code=ErrorCode.INVALID_ARGUMENTS,
            )
        except httpx.ConnectTimeout:
            return HttpToolAnswer(
                failed=f"{host} did not answer within {CONNECT_S:.0f} s: connection timeout",
                code=ErrorCode.TIMEOUT,
            )
        except httpx.ConnectError as e:
            return HttpToolAnswer(
                failed=f"{host} cannot be reached: {_why(e)}", code=ErrorCode.NETWORK_ERROR
            )
        except httpx.TimeoutException:
            return HttpToolAnswer(failed=f"{host}: timeout", code=ErrorCode.TIMEOUT, sent=True)
        except httpx.LocalProtocolError:  # its words quote the header, and with it the secret in it
            return HttpToolAnswer(
                failed=(
                    "The request cannot be sent: a header of it begins or ends "
                    "with a space, or holds what none may"
                )
            )
        except httpx.TransportError as e:
            return HttpToolAnswer(
                failed=f"{host} broke off: {_why(e)}", code=ErrorCode.NETWORK_ERROR, sent=True
            )


def _why(error: Exception) -> str:
    """Return the message of the operating system, of TLS or of the server."""
    return clean(str(error)) or type(error).__name__


async def _read(answer: httpx.Response) -> HttpToolAnswer:
    if answer.headers.get("content-encoding", "identity") != "identity":
        return HttpToolAnswer(
            failed="The answer is compressed although that was not asked for", sent=True
        )
    most = MAX_ANSWER if answer.is_success else MAX_ERROR
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most:
            break
    if len(body) > most and answer.is_success:
        return HttpToolAnswer(
            failed=f"The answer is larger than {MAX_ANSWER // 1024} KiB", sent=True
        )
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return HttpToolAnswer(answer.status_code, _decoded(bytes(body[:most]), answer), kind)


def _decoded(body: bytes, answer: httpx.Response) -> str:
    try:
        return body.decode(answer.charset_encoding or "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")
