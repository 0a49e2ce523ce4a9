"""Writes one event as iCalendar text (RFC 5545): escaped, folded at 75 octets, in UTC; and finds
its title again.

Without a library: it takes four rules, and a test reads the text back with one.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

PRODUCT: Final = "-//glassd//calendar//EN"
_OCTETS: Final = 75
_FOLD: Final = re.compile(rb"\r?\n[ \t]")
_LINE: Final = re.compile(
    rb"^(UID|SUMMARY)(?:;[^:\r\n]*)?:([^\r\n]*)", re.MULTILINE | re.IGNORECASE
)
_ESCAPED: Final = re.compile(r"\\(.)")


def event(
    plan: Mapping[str, Any], *, uid: str, stamp: datetime, link: str = "", organizer: str = ""
) -> bytes:
    """Return the text of `{title, start, end, attendees, description}`; it names the organizer if
    there are attendees.
    """
    description = "\n\n".join(
        part for part in (str(plan.get("description", "")), f"Join: {link}" if link else "") if part
    )
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:{PRODUCT}",
        "CALSCALE:GREGORIAN",
        "BEGIN:VEVENT",
        f"UID:{_text(uid)}",
        f"DTSTAMP:{_utc(stamp)}",
        f"DTSTART:{_utc(plan['start'])}",
        f"DTEND:{_utc(plan['end'])}",
        f"SUMMARY:{_text(plan['title'])}",
    ]
    if description:
        lines.append(f"DESCRIPTION:{_text(description)}")
    if link:
        lines += [f"LOCATION:{_text(link)}", f"URL:{_bare(link)}"]
    attendees = [_bare(address) for address in plan.get("attendees", ())]
    if attendees and organizer:
        lines.append(f"ORGANIZER:mailto:{_bare(organizer)}")
    lines += [f"ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:{address}" for address in attendees]
    lines += ["END:VEVENT", "END:VCALENDAR"]
    return b"".join(piece + b"\r\n" for line in lines for piece in _folded(line))


def title_of(text: bytes, uid: str) -> str | None:
    """Return the title of a text with one event, that of this id; None for any other text."""
    found = [
        (name.upper(), value.decode("utf-8", "replace"))
        for name, value in _LINE.findall(_FOLD.sub(b"", text))
    ]
    titles = [value for name, value in found if name == b"SUMMARY"]
    if [value for name, value in found if name == b"UID"] != [uid]:
        return None
    return _ESCAPED.sub(lambda m: " " if m[1] in "nN" else m[1], titles[0] if titles else "")


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    kept = "".join(
        ch
        for ch in value.replace("\r\n", "\n").replace("\r", "\n")
        if ch == "\n" or ch.isprintable() or ch == "\t"
    )
    return kept.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _bare(value: str) -> str:
    """Remove what could end the line: a value that is not text cannot be escaped."""
    return "".join(ch for ch in value if ch.isprintable() and not ch.isspace())


def _folded(line: str) -> Iterator[bytes]:
    """Fold between characters: a reader that decodes before it unfolds must not see half of one."""
    piece, room = b"", _OCTETS
    for ch in line:
        coded = ch.encode()
        if len(piece) + len(coded) > room:
            yield piece
            piece = b" "
        piece += coded
    yield piece
