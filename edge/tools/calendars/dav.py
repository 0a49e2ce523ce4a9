"""Calendars on a CalDAV server (RFC 4791): a REPORT to read, a PUT to write, a DELETE to remove.

Runs in the child. No redirects, no proxy settings from the environment; the size of an answer is
limited. The password is sent to the configured origin only.
"""

import base64
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Final
from urllib.parse import quote, urlsplit

from edge.tools.workers import multistatus
from tools_cache.api.calendars import PRIMARY, CalendarTrouble, Trouble

MAX_ANSWER: Final = 8 * 1024 * 1024
STALL_S: Final = 8.0
"""For connecting, and for silence within an answer; the parent has a deadline for everything."""
_UTC: Final = "%Y%m%dT%H%M%SZ"
_DATA: Final = "{urn:ietf:params:xml:ns:caldav}calendar-data"
_QUERY: Final = (
    '<?xml version="1.0" encoding="utf-8"?><C:calendar-query '
    'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">'
    "<D:prop><C:calendar-data/></D:prop><C:filter><C:comp-filter "
    'name="VCALENDAR"><C:comp-filter name="VEVENT">'
    '<C:time-range start="{start}" end="{end}"/></C:comp-filter></'
    "C:comp-filter></C:filter></C:calendar-query>"
)


class CalDavServer:
    """One server. `url` is the primary calendar's collection; other calendars are next to it."""

    def __init__(self, url: str, *, username: str = "", password: str = "") -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/") + "/"
        login = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._login = {"Authorization": f"Basic {login}"} if username else {}

    def texts(self, name: str, start: datetime, end: datetime) -> list[bytes]:
        """Return a calendar's events that touch the window. Raises `CalendarTrouble`."""
        query = _QUERY.format(
            start=f"{start.astimezone(UTC):{_UTC}}", end=f"{end.astimezone(UTC):{_UTC}}"
        )
        headers = {"Depth": "1", "Content-Type": "application/xml; charset=utf-8"}
        status, answered, body = self._ask(
            "REPORT", self._collection(name), query.encode(), headers
        )
        if status in (404, 410) and name != PRIMARY:
            raise CalendarTrouble(
                Trouble.UNKNOWN_CALENDAR, f"The calendar server has no calendar {name!r}"
            )
        _check(status, answered, wanted=(207,))
        return _answers(body)

    def put(self, file: str, text: bytes) -> bool:
        """Write one event; False if it already exists. Raises `CalendarTrouble`."""
        headers = {"If-None-Match": "*", "Content-Type": "text/calendar; charset=utf-8"}
        status, answered, _ = self._ask("PUT", self._path + quote(file), text, headers, writes=True)
        if status == 412:
            return False
        _check(status, answered, wanted=(200, 201, 204), writes=True)
        return True

    def get(self, file: str) -> tuple[bytes, str]:
        """Return an event and its version; (b"", "") if there is none. Raises `CalendarTrouble`."""
        status, answered, body = self._ask("GET", self._path + quote(file), b"", {})
        if status in (404, 410):
            return b"", ""
        _check(status, answered, wanted=(200,))
        return body, answered.get("etag", "")

    def delete(self, file: str, version: str) -> bool:
        """Remove an event if it still has this version ("": any); False if it is gone already.
        Raises `CalendarTrouble`.
        """
        headers = {"If-Match": version} if version else {}
        status, answered, _ = self._ask(
            "DELETE", self._path + quote(file), b"", headers, writes=True
        )
        if status in (404, 410):
            return False
        if status == 412:
            text = "The event was changed just now, so it was not removed"
            raise CalendarTrouble(Trouble.REFUSED, text)
        _check(status, answered, wanted=(200, 202, 204), writes=True)
        return True

    def _collection(self, name: str) -> str:
        if name == PRIMARY:
            return self._path
        return f"{self._path[:-1].rpartition('/')[0]}/{quote(name, safe='')}/"

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        writes: bool = False,
    ) -> tuple[int, Mapping[str, str], bytes]:
        sent = False
        connection = self._connection()
        try:
            connection.connect()
            sent = True  # from here on nobody knows how much of it the server had
            connection.request(method, path, body, {**headers, **self._login})
            with connection.getresponse() as response:
                answered = {k.lower(): v for k, v in response.getheaders()}
                return response.status, answered, _body(response)
        except (OSError, HTTPException) as e:
            why = f"The calendar server cannot be reached: {type(e).__name__}"
            raise CalendarTrouble(Trouble.AWAY, why, uncertain=writes and sent) from None
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._secure:
            return HTTPSConnection(
                self._host, self._port, timeout=STALL_S, context=ssl.create_default_context()
            )
        return HTTPConnection(self._host, self._port, timeout=STALL_S)


def _body(response: HTTPResponse) -> bytes:
    body = response.read(MAX_ANSWER + 1)
    if len(body) > MAX_ANSWER:
        raise CalendarTrouble(
            Trouble.REFUSED, f"The calendar server's answer is larger than {MAX_ANSWER >> 20} MiB"
        )
    if response.length:
        raise IncompleteRead(body, response.length)
    return body


def _check(
    status: int, headers: Mapping[str, str], *, wanted: tuple[int, ...], writes: bool = False
) -> None:
    """Accept the wanted statuses. Raises `CalendarTrouble` for all others."""
    if status in wanted:
        return
    if status == 429:
        raise CalendarTrouble(
            Trouble.RATE_LIMIT,
            "The calendar server is asked too often",
            retry_after_s=_retry_after(headers),
        )
    if status in (401, 403):
        raise CalendarTrouble(Trouble.AUTH, f"The calendar server refused us ({status})")
    if status >= 500 or status == 408:
        raise CalendarTrouble(
            Trouble.AWAY, f"The calendar server is in trouble ({status})", uncertain=writes
        )
    raise CalendarTrouble(
        Trouble.REFUSED, f"The calendar server answered {status}; is calendar.url a calendar?"
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    said = headers.get("retry-after", "")
    if said.isdecimal():
        return float(said[:9])
    try:
        return (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _answers(body: bytes) -> list[bytes]:
    try:
        root = multistatus.read(body)
    except ValueError:
        raise CalendarTrouble(
            Trouble.REFUSED,
            "The calendar server's answer is not understood; is calendar.url a calendar?",
        ) from None
    return [(data.text or "").encode() for data in root.iter(_DATA)]
