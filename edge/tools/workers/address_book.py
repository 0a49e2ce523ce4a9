"""An address book on a CardDAV server (RFC 6352), which is read and never written to.

Requests go to the configured address alone: what its answers name is not followed.
"""

import base64
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from edge.tools.workers import multistatus
from edge.tools.workers.http_client import HttpAnswer, HttpClient, check_status
from tools_cache.errors import ErrorCode, ToolFailure

SETTINGS: Final = "[tool.contacts.sync]"
MAX_ANSWER: Final = 8 * 1024 * 1024
TIMEOUT_S: Final = 15.0
BATCH: Final = 50
"""Cards of one REPORT; fewer if they are too large together."""
_CARD_DAV: Final = "{urn:ietf:params:xml:ns:carddav}"
_LIST: Final = (
    '<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:" '
    'xmlns:S="http://calendarserver.org/ns/"><D:prop><D:getetag/><D:resourcetype/><S:getctag/>'
    "</D:prop></D:propfind>"
)
_GET: Final = (
    '<?xml version="1.0" encoding="utf-8"?><C:addressbook-multiget xmlns:D="DAV:" '
    'xmlns:C="urn:ietf:params:xml:ns:carddav"><D:prop><D:getetag/><C:address-data/></D:prop>'
    "{hrefs}</C:addressbook-multiget>"
)


class Listing(NamedTuple):
    """What an address book has: the version of each card by its address, and that of all ("" if
    the server has none).
    """

    ctag: str
    etags: dict[str, str]


class AddressBook:
    """One address book. `password` is sent to the host of `url` only."""

    def __init__(self, url: str, *, username: str, password: str, ca_file: str) -> None:
        self._url = url.rstrip("/") + "/"
        self._host = urlsplit(url).hostname or ""
        self._client = HttpClient([self._host], timeout_s=TIMEOUT_S, ca_file=ca_file)
        login = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._login = {"Authorization": f"Basic {login}"} if username else {}

    def ctag(self) -> str:
        """Return the version of the whole address book. Raises `ToolFailure`."""
        return self._listing("0").ctag

    def listing(self) -> Listing:
        """Return which cards there are. Raises `ToolFailure`."""
        return self._listing("1")

    def texts(self, hrefs: Sequence[str]) -> dict[str, str]:
        """Return the text of each card that is there; one that is too large is "". Raises
        `ToolFailure`.
        """
        found: dict[str, str] = {}
        waiting = [hrefs[at : at + BATCH] for at in range(0, len(hrefs), BATCH)]
        while waiting:
            batch = waiting.pop()
            named = "".join(f"<D:href>{escape(href)}</D:href>" for href in batch)
            root = self._ask("REPORT", _GET.format(hrefs=named), "1")
            if root is not None:
                by_path = {_path(href): href for href in batch}
                for path, response in _responses(root):
                    data = response.find(f".//{_CARD_DAV}address-data")
                    if path in by_path and data is not None and data.text:
                        found[by_path[path]] = data.text
            elif len(batch) > 1:
                middle = len(batch) // 2
                waiting += [batch[:middle], batch[middle:]]
            else:
                found[batch[0]] = ""
        return found

    def _listing(self, depth: str) -> Listing:
        root = self._ask("PROPFIND", _LIST, depth)
        if root is None:
            raise self._wrong(f"is larger than {MAX_ANSWER >> 20} MiB")
        responses = sorted(_responses(root), key=lambda found: len(found[0]))
        # The collection itself has the shortest path, whatever a proxy makes of it.
        if not responses or responses[0][1].find(f".//{_CARD_DAV}addressbook") is None:
            raise self._wrong("is that of no address book")
        ctag = responses[0][1].findtext(".//{http://calendarserver.org/ns/}getctag") or ""
        etags = {
            (response.findtext("{DAV:}href") or "").strip(): response.findtext(".//{DAV:}getetag")
            or ""
            for _, response in responses[1:]
            if response.find(".//{DAV:}collection") is None
        }
        return Listing(ctag, etags)

    def _ask(self, method: str, body: str, depth: str) -> ET.Element | None:
        """Return what the server answers; None if that is too large. Raises `ToolFailure`."""
        headers = {"Depth": depth, "Content-Type": "application/xml; charset=utf-8", **self._login}
        try:
            answer = self._client.request(
                method, self._url, headers=headers, body=body.encode(), max_bytes=MAX_ANSWER
            )
        except ToolFailure as failure:
            raise self._away(failure) from None
        self._check(answer)
        if answer.cut:
            return None
        try:
            return multistatus.read(answer.body)
        except ValueError:
            raise self._wrong("is not understood") from None

    def _check(self, answer: HttpAnswer) -> None:
        if answer.status in (401, 403):
            raise ToolFailure.of(
                ErrorCode.AUTH,
                f"The address book server {self._host} does not accept the user name or the"
                f" password ({answer.status})",
                suggestion=f"Check username and password_file in {SETTINGS}",
                for_wearer="The address book does not accept the password.",
            )
        if answer.status in (404, 405, 410):
            raise self._wrong(f"is status {answer.status}: there is no address book")
        try:
            check_status(answer)
        except ToolFailure as failure:
            raise self._away(failure) from None
        if answer.status != 207:
            raise self._wrong("is that of no address book")

    def _away(self, failure: ToolFailure) -> ToolFailure:
        """Return the failure; if the server is away, as one that says what becomes of contacts."""
        e = failure.error
        if e.code is not ErrorCode.NETWORK_ERROR:
            return failure
        return ToolFailure.of(
            e.code,
            f"{e.message}; the contacts stay as they are",
            suggestion=f"Check the network, and url and ca_file in {SETTINGS}",
            for_wearer="The address book cannot be reached.",
        )

    def _wrong(self, problem: str) -> ToolFailure:
        return ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"The answer of the address book server {self._host} {problem}",
            suggestion=f"Set url in {SETTINGS} to the address of one address book",
        )


def _responses(root: ET.Element) -> list[tuple[str, ET.Element]]:
    return [
        (_path(response.findtext("{DAV:}href") or ""), response)
        for response in root.findall("{DAV:}response")
    ]


def _path(href: str) -> str:
    """Return the path of an address, in the one form in which it can be compared."""
    return unquote(urlsplit(href.strip()).path)
