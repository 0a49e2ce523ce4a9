"""The network part of the `web` tools: one search, one page, or one request."""

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from edge.tools.workers.http_client import (
    SAFE,
    HttpAnswer,
    HttpClient,
    check_status,
    checked_url,
)
from edge.tools.workers.readable_text import clean, decoded, one_line
from tools_cache.errors import ErrorCode, ToolFailure

MOST_RESULTS: Final = 10
MAX_TITLE: Final = 200
MAX_EXCERPT: Final = 500
MAX_RESULT_URL: Final = 2000
MAX_KEY: Final = 4096
MAX_REQUEST_BODY: Final = 64 * 1024
MAX_REQUEST_ANSWER: Final = 64 * 1024
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
SETTINGS: Final = "Check search_url and search_form in [tool.web.search]"
OURS: Final = frozenset(
    "host content-length connection keep-alive proxy-authenticate proxy-authorization"
    " proxy-connection te trailer transfer-encoding upgrade accept-encoding expect".split()
)
"""Headers that belong to the connection, or to its client alone."""
TOLD: Final = ("content-type", "date", "etag", "last-modified", "location", "retry-after")
"""Headers of an answer that are reported."""
_EMPHASIS: Final = re.compile(r"</?(?:b|em|strong)>")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, the page, or the answer, by `do`. Raises `ToolFailure`."""
    return _DOING[request["do"]](request)


# ------------------------------------------------------------------ search


class _Form(NamedTuple):
    """The API of a search service: its path, how it gets the key, and the keys of its answer."""

    path: str
    params: Mapping[str, str]
    header: str
    key: str
    results: tuple[str, ...]
    excerpt: str


_FORMS: Final = {
    "searxng": _Form(
        "/search", {"format": "json"}, "Authorization", "Bearer {}", ("results",), "content"
    ),
    "kagi": _Form(
        "/api/v0/search",
        {"limit": str(MOST_RESULTS)},
        "Authorization",
        "Bot {}",
        ("data",),
        "snippet",
    ),
    "brave": _Form(
        "/res/v1/web/search",
        {"count": str(MOST_RESULTS)},
        "X-Subscription-Token",
        "{}",
        ("web", "results"),
        "description",
    ),
}


def _search(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{results: [{title, url, host, text}]}`, ten at most."""
    form, base = _FORMS[request["search_form"]], request["search_url"].rstrip("/")
    host = str(checked_url(base).hostname)
    headers = {"Accept": "application/json"}
    if request["key_file"]:
        headers[form.header] = form.key.format(_key(request["key_file"]))
    params = {"q": request["query"], **form.params}
    try:
        found = HttpClient([host]).get_json(base + form.path, params, headers=headers)
    except ToolFailure as failure:
        if failure.error.code is ErrorCode.AUTH and not request["key_file"]:
            raise ToolFailure.of(
                ErrorCode.TOOL_UNAVAILABLE,
                f"{failure.error.message}; it may give no JSON",
                suggestion="Add json to search.formats in the settings.yml of SearXNG",
            ) from None
        raise
    for name in form.results:
        # Brave leaves `web` out when nothing is found.
        missing: Any = {"results": []} if name == "web" else None
        found = found.get(name, missing) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"{host} answered with something else than search results",
            suggestion=SETTINGS,
        )
    results = [one for each in found if (one := _result(each, form)) is not None]
    return {"results": results[:MOST_RESULTS]}


def _result(found: Any, form: _Form) -> dict[str, str] | None:
    """Return one result; None for what is none, as Kagi's related searches are."""
    if not isinstance(found, dict) or found.get("t", 0) != 0:
        return None
    url = found.get("url")
    if not isinstance(url, str) or len(url) > MAX_RESULT_URL:
        return None
    try:
        host = checked_url(url).hostname
    except ToolFailure:
        return None
    title = _words(found.get("title"), MAX_TITLE)
    return {
        "title": title or str(host),
        "url": url,
        "host": str(host).removeprefix("www."),
        "text": _words(found.get(form.excerpt), MAX_EXCERPT),
    }


def _words(value: Any, most: int) -> str:
    """Return a text of a search service as one line, without its emphasis."""
    text = html.unescape(_EMPHASIS.sub("", value)) if isinstance(value, str) else ""
    return one_line(text, most)


def _key(file: str) -> str:
    """Return the key in a file. Raises `ToolFailure`, without a part of it."""
    try:
        with Path(file).open("rb") as source:
            raw = source.read(MAX_KEY + 1)
    except OSError as e:
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The file of key_file cannot be read: {e.strerror}",
            suggestion="See key_file in [tool.web.search]",
        ) from None
    key = raw.decode("ascii", errors="replace").strip()
    if not key or len(raw) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The file of key_file must hold one line of ASCII text, 1 to {MAX_KEY} bytes",
            suggestion="See key_file in [tool.web.search]",
        )
    return key


# ------------------------------------------------------------------ a page


def _fetch(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{title, url, type, content}`, and `truncated` if the page is longer than is read."""
    found = HttpClient(request["hosts"]).request(
        "GET", request["url"], headers={"Accept": "text/html, text/plain, application/json"}
    )
    host = str(urlsplit(found.url).hostname)
    if found.status in (401, 403):
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR, f"{host} does not show this page to everybody ({found.status})"
        )
    if found.status in (404, 410):
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"{host} has no such page ({found.status})",
            retryable=False,
            for_wearer="There is no such page.",
        )
    check_status(found)
    title, content = _page(found, host)
    told = {"title": one_line(title, MAX_TITLE), "url": found.url, "type": found.type}
    return {**told, **({"truncated": True} if found.cut else {}), "content": clean(content)}


def _page(found: HttpAnswer, host: str) -> tuple[str, str]:
    """Return title and text of a page. Raises `ToolFailure` for a kind that is not read."""
    if found.type == "text/plain" or _is_json(found.type):
        return "", decoded(found.body, found.headers.get("content-type", ""))
    if found.type not in HTML:
        raise ToolFailure.of(
            ErrorCode.UNSUPPORTED,
            f"{host} answers with {found.type[:80] or 'something of no stated type'}",
            suggestion="HTML, plain text and JSON can be read",
        )
    from edge.tools.workers import web_page  # noqa: PLC0415 - a search does without its library

    title, content = web_page.read(decoded(found.body, found.headers.get("content-type", "")))
    if not content:
        raise ToolFailure.of(
            ErrorCode.UNSUPPORTED,
            f"The page of {host} has no text",
            suggestion="Its text may be made by a script, which is not run",
        )
    return title, content


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


# ------------------------------------------------------------------ any request


def _request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{status, url, host, type, headers, bytes, truncated, content}`."""
    method, body = request["method"], request["body"]
    if body is not None and method in SAFE:
        raise _wrong("/body", f"a {method} request has none", "Leave it out")
    raw = None if body is None else body.encode(errors="surrogatepass")
    if raw is not None and len(raw) > MAX_REQUEST_BODY:
        raise _wrong("/body", "is longer than 64 KiB", "Send less")
    found = HttpClient(request["hosts"]).request(
        method,
        request["url"],
        headers=_headers(request["headers"], has_body=raw is not None),
        body=raw,
        max_bytes=MAX_REQUEST_ANSWER,
    )
    readable = found.type.startswith("text/") or _is_json(found.type) or "xml" in found.type
    text = decoded(found.body, found.headers.get("content-type", "")) if readable else ""
    return {
        "status": found.status,
        "url": found.url,
        "host": str(urlsplit(found.url).hostname),
        "type": found.type,
        "headers": {
            name: one_line(found.headers[name], 500) for name in TOLD if name in found.headers
        },
        "bytes": len(found.body),
        "truncated": found.cut,
        "content": clean(text),
    }


def _headers(given: Mapping[str, str], *, has_body: bool) -> dict[str, str]:
    """Return the headers to send. Raises `ToolFailure` for one that is not the caller's."""
    for name in given:
        if not _HEADER.fullmatch(name):
            raise _wrong("/headers", f"{name[:80]!r} is no name of a header", "Use letters and -")
        if name.lower() in OURS:
            raise _wrong("/headers", f"{name} is set by glassd itself", "Leave it out")
    names = [name.lower() for name in given]
    if len(set(names)) < len(names):
        raise _wrong("/headers", "one is there twice", "Give each once")
    missing = has_body and "content-type" not in names
    return {**({"Content-Type": "text/plain; charset=utf-8"} if missing else {}), **given}


def _wrong(field: str, problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {field} {problem}", suggestion=fix
    )


_DOING: Final = {"search": _search, "fetch": _fetch, "request": _request}
