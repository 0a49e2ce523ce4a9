"""HTTP requests of the workers: bounded in size and time, TLS verified, addresses checked.

A host that the owner configured may be anywhere. Any other must be public: each address of its name
is checked, and the connection goes to a checked one, so that a name cannot change in between.
"""

import ipaddress
import json
import math
import socket
import ssl
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from tools_cache.errors import ErrorCode, ToolFailure

MAX_BODY: Final = 1024 * 1024
MAX_REDIRECTS: Final = 5
MAX_URL: Final = 2000
TIMEOUT_S: Final = 8.0
MOST_RETRY_AFTER_S: Final = 3600.0
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
HEADERS: Final = {"User-Agent": "glassd", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered. `url`: the last of all redirects; `cut`: the body went on."""

    status: int
    url: str
    type: str
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


class HttpClient:
    """Requests to any public host, and to those in `named`. One per child."""

    def __init__(self, named: Collection[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._named = {host.lower() for host in named}
        self._client = httpx.Client(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(timeout_s),
            headers=HEADERS,
            verify=ssl.create_default_context(),
        )

    def get_json(
        self, url: str, params: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the JSON of an API. Raises `ToolFailure`, also for a redirect."""
        whole = str(httpx.URL(url, params=dict(params)))
        answer = self.request("GET", whole, headers=headers or {}, redirects=0)
        return read_json(answer)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        redirects: int = MAX_REDIRECTS,
        max_bytes: int = MAX_BODY,
    ) -> HttpAnswer:
        """Send one request and follow redirects. Raises `ToolFailure` if there is no answer; one
        that may have been carried out is uncertain (`partial_side_effects`).
        """
        safe = method in ("GET", "HEAD")
        own, sent = dict(headers or {}), False
        for _ in range(redirects + 1):
            try:
                answer = self._once(method, url, own, body, max_bytes)
            except ToolFailure as failure:
                raise _after(failure, sent=sent and not safe) from None
            target = answer.headers.get("location")
            if answer.status not in REDIRECTS or not target:
                return answer
            if not redirects:
                break
            sent, before, url = True, urlsplit(url), urljoin(url, target)
            if urlsplit(url)[:2] != before[:2]:
                own = {}  # a secret of one host is not for another
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, body = "GET", None
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR, f"{_host(url)} redirects more than {redirects} times"
        )

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, most: int
    ) -> HttpAnswer:
        parts = checked_url(url)
        host = str(parts.hostname)
        last: Exception | None = None
        for address in self._addresses(host, parts.port or _PORTS[parts.scheme]):
            literal = f"[{address}]" if ":" in address else address
            port = f":{parts.port}" if parts.port else ""
            query = f"?{parts.query}" if parts.query else ""
            target = f"{parts.scheme}://{literal}{port}{parts.path or '/'}{query}"
            request = self._client.build_request(
                method,
                target,
                headers={**headers, "Host": parts.netloc.rpartition("@")[2]},
                content=body,
                extensions={"sni_hostname": host},
            )
            try:
                return _read(self._client.send(request, stream=True), url, most)
            except httpx.ConnectError as e:
                last = e
            except httpx.ConnectTimeout as e:
                last = e
            except httpx.HTTPError as e:
                raise ToolFailure.of(
                    ErrorCode.NETWORK_ERROR,
                    f"{host} did not answer: {_why(e)}",
                    partial_side_effects=method not in ("GET", "HEAD"),
                ) from None
        raise ToolFailure.of(
            ErrorCode.NETWORK_ERROR, f"{host} cannot be reached: {_why(last)}"
        ) from None

    def _addresses(self, host: str, port: int) -> Iterator[str]:
        """Return the addresses of a host, all checked before the first is used."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolFailure.of(ErrorCode.NETWORK_ERROR, f"{host} cannot be found") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if host.lower() not in self._named:
            for address in addresses:
                if not is_public(address):
                    raise ToolFailure.of(
                        ErrorCode.DENIED,
                        f"{host} is not on the public internet ({address})",
                        suggestion="Only a host that the settings name may be private",
                    )
        return iter(addresses)


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public internet, also inside of IPv6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def checked_url(url: str) -> SplitResult:
    """Return the parts of an http(s) address. Raises `ToolFailure`."""
    parts = None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if parts is None or not usable or len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"{url[:80]!r} is no address of the web",
            suggestion=f"Give one like https://example.com/page, at most {MAX_URL} characters",
        )
    return parts


def read_json(answer: HttpAnswer) -> Any:
    """Return the JSON of a successful answer. Raises `ToolFailure` for any other."""
    host = _host(answer.url)
    check_status(answer)
    if answer.cut:
        raise ToolFailure.of(ErrorCode.HTTP_ERROR, f"The answer of {host} is too long")
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"{host} answered with something else than JSON",
            suggestion="Check the url in the settings",
        ) from None


def check_status(answer: HttpAnswer) -> None:
    """Raise `ToolFailure` unless the answer has a status of success."""
    host, status = _host(answer.url), answer.status
    if 200 <= status < 300:
        return
    if status == 429:
        wait_s = _retry_after_s(answer.headers.get("retry-after", ""))
        raise ToolFailure.of(
            ErrorCode.RATE_LIMIT,
            f"{host} is asked too often",
            retry_after_ms=math.ceil(wait_s * 1000),
            suggestion=f"Try again in {math.ceil(wait_s)} s",
        )
    if status in (401, 403):
        raise ToolFailure.of(
            ErrorCode.AUTH,
            f"{host} does not allow that ({status})",
            suggestion="Check the key in the settings",
        )
    code = ErrorCode.NETWORK_ERROR if status >= 500 else ErrorCode.HTTP_ERROR
    raise ToolFailure.of(code, f"{host} answered with status {status}")


def _retry_after_s(text: str) -> float:
    """Return the seconds of a Retry-After header: a number, or a date; 60 without one."""
    try:
        wait_s = float(text) if text.isascii() and text.isdigit() else _seconds_until(text)
    except (TypeError, ValueError):
        wait_s = 60.0
    return min(MOST_RETRY_AFTER_S, max(1.0, wait_s))


def _seconds_until(date: str) -> float:
    return parsedate_to_datetime(date).timestamp() - time()


def _read(response: httpx.Response, url: str, most: int) -> HttpAnswer:
    """Read an answer up to `most` bytes. Closes the connection."""
    try:
        body = bytearray()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ToolFailure.of(
                ErrorCode.HTTP_ERROR, f"{_host(url)} compresses although that was not asked for"
            )
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > most:
                break
    finally:
        response.close()
    headers = {key.lower(): value for key, value in response.headers.items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return HttpAnswer(
        response.status_code, url, kind, headers, bytes(body[:most]), len(body) > most
    )


def _after(failure: ToolFailure, *, sent: bool) -> ToolFailure:
    """Return the failure, uncertain if an earlier request of the same call was `sent`."""
    e = failure.error
    if not sent or e.partial_side_effects:
        return failure
    return ToolFailure.of(e.code, e.message, suggestion=e.suggestion, partial_side_effects=True)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url[:80]


def _why(error: Exception | None) -> str:
    text = "".join(ch for ch in str(error or "") if ch.isprintable())[:200]
    return text or type(error).__name__


_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
