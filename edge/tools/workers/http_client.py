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
from time import monotonic, time
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from tools_cache.errors import ErrorCode, ToolFailure

MAX_BODY: Final = 1024 * 1024
MAX_REDIRECTS: Final = 5
MAX_URL: Final = 8000
TIMEOUT_S: Final = 8.0
MOST_RETRY_AFTER_S: Final = 3600.0
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
SAFE: Final = frozenset({"GET", "HEAD", "PROPFIND", "REPORT"})
"""Methods that change nothing: of others it is uncertain whether they were carried out."""
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
    """Requests to any public host, and to those in `named`. One per child.

    `timeout_s`: of a whole request with its redirects, from its first connection on. The parent's
    deadline ends what even that does not: a name server, or headers that arrive byte by byte.
    """

    def __init__(
        self, named: Collection[str], *, timeout_s: float = TIMEOUT_S, ca_file: str = ""
    ) -> None:
        self._named = {_ascii_host(host.lower()) for host in named}
        self._timeout_s = timeout_s
        self._until = 0.0
        self._client = httpx.Client(
            trust_env=False,
            follow_redirects=False,
            headers=HEADERS,
            verify=_context(ca_file),
            # A connection is used once: its certificate was checked for one host name only.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def get_json(
        self, url: str, params: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the JSON of an API. Raises `ToolFailure`, also for a redirect."""
        checked_url(url)
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
        own, hop, sent = dict(headers or {}), method, False
        self._until = monotonic() + self._timeout_s
        try:
            for _ in range(redirects + 1):
                answer = self._once(hop, url, own, body, max_bytes)
                sent = True
                target = answer.headers.get("location")
                if answer.status not in REDIRECTS or not target:
                    return answer
                before, url = url, _redirected(url, target)
                if (answer.status == 303 and hop != "HEAD") or (
                    answer.status in (301, 302) and hop == "POST"
                ):
                    hop, body = "GET", None
                if urlsplit(url)[:2] != urlsplit(before)[:2]:
                    own = {}  # a secret of one host is not for another
                    _check_harmless(hop, before, url)
        except ToolFailure as failure:
            raise _after(failure, sent=sent and method not in SAFE) from None
        many = f"more than {redirects} times" if redirects else "to another address"
        endless = ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"{_host(url)} redirects {many}",
            suggestion=None if redirects else "Check the url in the settings",
        )
        raise _after(endless, sent=method not in SAFE)

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, most: int
    ) -> HttpAnswer:
        parts = checked_url(url)
        host, shown = _ascii_host(str(parts.hostname)), str(parts.hostname)
        last: Exception | None = None
        for address in self._addresses(host, parts.port or _PORTS[parts.scheme]):
            request = self._request(method, parts, host, address, headers=headers, body=body)
            try:
                return _read(self._client.send(request, stream=True), url, most, self._until)
            except (httpx.ConnectError, httpx.ConnectTimeout) as e:
                last = e
            except httpx.HTTPError as e:
                raise ToolFailure.of(
                    ErrorCode.NETWORK_ERROR,
                    f"{shown} did not answer: {_why(e)}",
                    partial_side_effects=method not in SAFE,
                ) from None
            except ToolFailure as failure:
                raise _after(failure, sent=method not in SAFE) from None
        raise ToolFailure.of(
            ErrorCode.NETWORK_ERROR, f"{shown} cannot be reached: {_why(last)}"
        ) from None

    def _request(
        self,
        method: str,
        parts: SplitResult,
        host: str,
        address: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> httpx.Request:
        """Return a request that goes to `address`, and names `host` to it."""
        port = f":{parts.port}" if parts.port else ""
        query = f"?{parts.query}" if parts.query else ""
        self._client.cookies.clear()  # httpx would send them to other names of the address
        return self._client.build_request(
            method,
            f"{parts.scheme}://{_bracketed(address)}{port}{parts.path or '/'}{query}",
            headers={**headers, "Host": f"{_bracketed(host)}{port}"},
            content=body,
            timeout=max(0.001, self._until - monotonic()),
            extensions={"sni_hostname": host},
        )

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


def _context(ca_file: str) -> ssl.SSLContext:
    """Return a context that verifies certificates: by those in `ca_file` alone if it is given.
    Raises `ToolFailure` if that file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ValueError) as e:
        reason = "it holds no certificates"
        if not isinstance(e, ssl.SSLError):
            reason = getattr(e, "strerror", None) or "it is no name of a file"
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The file of ca_file cannot be used: {reason}",
            suggestion="Name a file of certificates (PEM) as ca_file in the settings",
        ) from None


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public internet, also inside of IPv6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
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
    """Raise `ToolFailure` unless the answer of an API has a status of success."""
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


def _read(response: httpx.Response, url: str, most: int, until: float) -> HttpAnswer:
    """Read an answer up to `most` bytes. Closes the connection. Raises `ToolFailure` for one that
    is compressed, or goes on at the time `until`.
    """
    method = response.request.method
    try:
        body = bytearray()
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity") and method != "HEAD":
            raise ToolFailure.of(
                ErrorCode.HTTP_ERROR, f"{_host(url)} compresses although that was not asked for"
            )
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > most:
                break
            if monotonic() > until:
                raise ToolFailure.of(
                    ErrorCode.NETWORK_ERROR, f"The answer of {_host(url)} takes too long"
                )
    finally:
        response.close()
    headers = {key.lower(): value for key, value in response.headers.items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return HttpAnswer(
        response.status_code, url, kind, headers, bytes(body[:most]), len(body) > most
    )


def _redirected(url: str, target: str) -> str:
    """Return the address that a redirect names. Raises `ToolFailure`, in which the server is at
    fault and not the caller.
    """
    try:
        found = urljoin(url, target)
        checked_url(found)
    except (ValueError, ToolFailure):
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR, f"{_host(url)} redirects to what is no address: {target[:80]!r}"
        ) from None
    return found


def _check_harmless(method: str, before: str, after: str) -> None:
    """Raise `ToolFailure` if a request that may change something, or its body, would go to a host
    that its caller did not name.
    """
    if method in SAFE:
        return
    scheme, host = urlsplit(after)[:2]
    raise ToolFailure.of(
        ErrorCode.HTTP_ERROR,
        f"{_host(before)} wants the request at another address: {scheme}://{host}",
        suggestion="Send it there if that host is trusted",
    )


def _after(failure: ToolFailure, *, sent: bool) -> ToolFailure:
    """Return the failure, uncertain if an earlier request of the same call was `sent`."""
    e = failure.error
    if not sent or e.partial_side_effects:
        return failure
    return ToolFailure.of(e.code, e.message, suggestion=e.suggestion, partial_side_effects=True)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url[:80]


def _ascii_host(host: str) -> str:
    """Return the host as name servers and certificates spell it. Raises `ToolFailure`."""
    if host.isascii():
        return host
    try:
        return httpx.URL(scheme="http", host=host).raw_host.decode("ascii")
    except httpx.InvalidURL:
        raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, f"{host!r} is no host name") from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _why(error: Exception | None) -> str:
    text = "".join(ch for ch in str(error or "") if ch.isprintable())[:200]
    if _BAD_CERTIFICATE in text:
        reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return f"its certificate is not valid: {reason}" if reason else "its certificate is invalid"
    return text or type(error).__name__


_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_BAD_CERTIFICATE: Final = "CERTIFICATE_VERIFY_FAILED"
