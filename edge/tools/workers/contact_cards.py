"""Reads vCards (RFC 6350 and 2426, and the 2.1 of old phones) into the fields of a contact.

A card is refused when it has no name that can be stored. A value that a contact cannot have is left
out, and the card's result says which; all other properties are ignored.
"""

import quopri
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

from icalendar.parser import Contentline, split_on_unescaped_semicolon, unescape_backslash

from edge.tools.workers.readable_text import clean

MAX_LINE: Final = 16 * 1024
"""Characters of a property that is read, and of the values of one kind in a card together."""
MAX_LINES: Final = 200
"""Wanted properties of one card."""
MAX_LENGTHS: Final = {"name": 120, "phones": 40, "emails": 254, "addresses": 300, "note": 1000}
MAX_COUNTS: Final = {"phones": 10, "emails": 10, "addresses": 5}
MAX_UID: Final = 200
_WANTED: Final = re.compile(
    r"(?:[A-Za-z0-9-]{1,60}\.)?(FN|N|TEL|EMAIL|ADR|BDAY|NOTE|UID|KIND"
    r"|X-ADDRESSBOOKSERVER-KIND|VERSION)[;:]",
    re.IGNORECASE,
)
_LISTS: Final = {"TEL": "phones", "EMAIL": "emails", "ADR": "addresses"}
_SINGLE: Final = re.compile(r";([A-Za-z0-9-]{1,40})(?=[;:])")
"""A parameter of vCard 2.1 that has a value alone: `TEL;HOME:`."""
_QUOTED: Final = re.compile(r"quoted-printable", re.IGNORECASE)
_EMAIL: Final = re.compile(r"[^\s@<>\"(),:;\[\]\\]{1,64}@[^\s@<>\"(),:;\[\]\\]{1,189}")
_DAY: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ].{0,40})?", re.ASCII)
_CHARSETS: Final = re.compile(r"utf-?8|us-ascii|iso-8859-\d{1,2}|windows-125\d", re.IGNORECASE)
_VERSIONS: Final = frozenset({"2.1", "3.0", "4.0"})


class Refused(Exception):
    """A card that cannot become a contact; the message says why."""


def read_cards(text: str) -> Iterator[dict[str, Any]]:
    """Yield what each card of a text gives: see `read_card`. What stands between cards is ignored;
    a card that does not end is refused.
    """
    lines: list[str] = []
    depth = 0
    for line in text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n"):
        word = line.strip().upper()
        if word == "BEGIN:VCARD":
            depth += 1
        if depth == 1 and word not in ("BEGIN:VCARD", "END:VCARD"):
            lines.append(line)
        if word == "END:VCARD" and depth:
            depth -= 1
            if not depth:
                yield read_card(lines)
                lines = []
    if depth:
        yield {"name": "", "refused": "The card has no END:VCARD"}


def read_card(lines: list[str]) -> dict[str, Any]:
    """Return `{uid, card, left_out}`, or `{name, refused}`, of the lines between BEGIN and END."""
    reading = _Card()
    try:
        for line in _wanted(lines):
            reading.take(line)
        return reading.result()
    except Refused as why:
        return {"name": reading.name[: MAX_LENGTHS["name"]], "refused": str(why)}


def _wanted(lines: list[str]) -> Iterator[str]:
    """Yield the properties that are read, each as one line."""
    parts: list[str] = []
    soft = False
    for line in lines:
        if soft or (line[:1] in (" ", "\t") and line):
            if parts:
                parts.append(line if soft else line[1:])
        else:
            if parts:
                yield "".join(parts)[:MAX_LINE]
            parts = [line] if _WANTED.match(line) else []
        # A line of quoted-printable text goes on after a = at its end.
        soft = bool(parts) and line.endswith("=") and bool(_QUOTED.search(parts[0]))
        if soft:
            parts[-1] = parts[-1][:-1]
    if parts:
        yield "".join(parts)[:MAX_LINE]


class _Card:
    """What was read of one card so far."""

    def __init__(self) -> None:
        self._names = {"FN": "", "N": ""}
        self._found: dict[str, Any] = {"phones": [], "emails": [], "addresses": []}
        self._notes: list[str] = []
        self._uid = ""
        self._left_out: list[str] = []
        self._count = 0

    @property
    def name(self) -> str:
        return self._names["FN"] or self._names["N"]

    def take(self, line: str) -> None:
        """Take one property. Raises `Refused`."""
        self._count += 1
        if self._count > MAX_LINES:
            raise Refused(f"The card has more than {MAX_LINES} properties of a contact")
        kind = _kind(line)
        try:
            params, value = _parts(line)
        except ValueError as why:
            if kind in self._names:
                raise Refused(f"{kind}: {why}") from None
            self._left_out.append(f"{kind}: {why}")
            return
        if kind in self._names:
            text = _name(value) if kind == "N" else _text(value)
            self._names[kind] = self._names[kind] or text
        elif kind in _LISTS:
            self._add(kind, value)
        elif kind == "BDAY":
            self._birthday(params, _text(value))
        elif kind == "NOTE":
            self._notes.append(_text(value))
        elif kind == "UID":
            self._uid = self._uid or _text(value).removeprefix("urn:uuid:")[:MAX_UID]
        elif kind == "VERSION":
            if (version := _text(value)) not in _VERSIONS:
                raise Refused(f"VERSION: {version[:20]!r} is none of 2.1, 3.0 and 4.0")
        elif _text(value).lower() == "group":
            raise Refused("It is a group, not a person")

    def result(self) -> dict[str, Any]:
        """Return the whole card. Raises `Refused`."""
        if not self.name:
            raise Refused("The card has no name (FN or N)")
        if len(self.name) > (most := MAX_LENGTHS["name"]):
            raise Refused(f"The name is longer than {most} characters")
        note, most = " ".join(filter(None, self._notes)), MAX_LENGTHS["note"]
        if len(note) > most:
            self._left_out.append(f"NOTE: what follows {most} characters")
            note = f"{note[: most - 1].rstrip()}…"
        fields = {"name": self.name, **self._found, "note": note}
        card = {key: value for key, value in fields.items() if value}
        return {"uid": self._uid, "card": card, "left_out": self._left_out}

    def _add(self, kind: str, value: str) -> None:
        field = _LISTS[kind]
        text, values = _list_text(kind, value), self._found[field]
        if not text or text in values:
            return
        if len(text) > (most := MAX_LENGTHS[field]):
            self._left_out.append(f"{kind}: it is longer than {most} characters")
        elif kind == "EMAIL" and not _EMAIL.fullmatch(text):
            self._left_out.append("EMAIL: it is no e-mail address")
        elif len(values) >= (many := MAX_COUNTS[field]):
            self._left_out.append(f"{kind}: a contact has at most {many}")
        else:
            values.append(text)

    def _birthday(self, params: Mapping[str, Any], text: str) -> None:
        found = _DAY.fullmatch(text)
        # Apple writes a birthday without a year with one that it says to leave out.
        if not found or found[1] == params.get("X-APPLE-OMIT-YEAR"):
            if text:
                self._left_out.append("BDAY: it is no date with a year")
            return
        try:
            self._found["birthday"] = date(*map(int, found.groups())).isoformat()
        except ValueError:
            self._left_out.append("BDAY: there is no such day")


def _kind(line: str) -> str:
    found = _WANTED.match(line)
    assert found is not None
    kind = found[1].upper()
    return "KIND" if kind.endswith("-KIND") else kind


def _parts(line: str) -> tuple[Mapping[str, Any], str]:
    """Return the parameters and the value of a property, its escapes as they were. Raises
    ValueError.
    """
    head, colon, rest = line.partition(":")
    if '"' not in head:  # quotes are of later versions, and those name all parameters
        line = f"{_SINGLE.sub(_named, head + colon)}{rest}"
    try:
        _, params, value = Contentline(line).raw_parts()  # type: ignore[no-untyped-call]
    except (ValueError, AssertionError):
        raise ValueError("it cannot be read") from None
    if _QUOTED.fullmatch(str(params.get("ENCODING", ""))):
        charset = str(params.get("CHARSET", "utf-8"))
        if not _CHARSETS.fullmatch(charset):
            raise ValueError(f"its charset {clean(charset)[:30]!r} is not known")
        try:
            value = quopri.decodestring(value.encode()).decode(charset)
        except (UnicodeError, LookupError):
            raise ValueError(f"it is not written in {charset}") from None
    if "\ufffd" in value:
        raise ValueError("it was read with a wrong charset")
    return params, value


def _named(found: re.Match[str]) -> str:
    kind = "ENCODING" if _QUOTED.fullmatch(found[1]) else "TYPE"
    return f";{kind}={found[1]}"


def _text(value: str) -> str:
    """Return a text on one line, without characters that are not seen."""
    return " ".join(clean(unescape_backslash(value)).split())


def _list_text(kind: str, value: str) -> str:
    if kind == "ADR":
        box, more, street, city, region, code, country = _fields(value, 7)
        lines = (box, more, street, f"{code} {city}".strip(), region, country)
        return ", ".join(filter(None, lines))
    text = _text(value)
    scheme = {"TEL": "tel:", "EMAIL": "mailto:"}[kind]
    return text[len(scheme) :] if text[: len(scheme)].lower() == scheme else text


def _name(value: str) -> str:
    family, given, additional, prefix, suffix = _fields(value, 5)
    return " ".join(filter(None, (prefix, given, additional, family, suffix)))


def _fields(value: str, count: int) -> list[str]:
    """Return the parts of a value with `;` between them, as many as there must be."""
    parts = [" ".join(clean(part).split()) for part in split_on_unescaped_semicolon(value)]
    return [*parts, *[""] * count][:count]
