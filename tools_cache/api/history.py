"""What was called, shown and said on this device: questions to the history, and its answers.

Dates are days in the wearer's time zone.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from tools_cache.api.handed import Json
from tools_cache.api.shortening import shortened
from tools_cache.errors import ErrorCode, ToolFailure

CALLED: Final = "called"
SHOWN: Final = "shown"
SAID: Final = "said"
MOST: Final = 10
"""Entries of one answer."""
MAX_TEXT: Final = 1000
"""Characters of one entry in an answer: ten of them fit a result."""
LINES: Final = 5
LINE: Final = 80
"""Entries that the lens lists, and characters of each."""
OFF: Final = "The history is off: set enabled = true in [history]"
_WORD: Final = re.compile(r"[^\W_]+")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMED_DAYS: Final = {"today": 0, "yesterday": 1}
_FIX: Final = "Give a day like 2026-11-23, a moment like 2026-11-23T09:00, today or yesterday"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """`at`: seconds since 1970 by the clock of then. `tool` is empty for what was said; `delivery`
    says how far the result of a call got.
    """

    at: float
    kind: str
    text: str
    tool: str = ""
    delivery: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """All conditions must be met. `until` is exclusive."""

    words: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    kind: str = ""
    limit: int = MOST


@dataclass(frozen=True, slots=True)
class FoundHistory:
    """The newest `entries` that match, and how many match in `total`."""

    entries: tuple[HistoryEntry, ...] = field(default=())
    total: int = 0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many `entries` of the history, and how many stored `calls`, are gone."""

    entries: int = 0
    calls: int = 0


class History(Protocol):
    """One user's history."""

    @property
    def recording(self) -> bool:
        """Whether new entries are recorded."""

    async def search(self, query: HistoryQuery) -> FoundHistory:
        """Find entries, newest first in the order of recording."""

    async def forget(self, query: HistoryQuery) -> Forgotten:
        """Delete what matches, from disk, too, also from the list of finished calls. A word also
        matches a part of a longer one. `limit` does not count.
        """


def folded_text(text: str) -> str:
    """Return text for comparing: without capitals and accents."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(ch for ch in plain if not unicodedata.combining(ch))


def words_of(text: str, most: int) -> tuple[str, ...]:
    """Return the first `most` different words of a text, folded."""
    return tuple(dict.fromkeys(_WORD.findall(folded_text(text))))[:most]


def zone_of(name: str) -> tzinfo | None:
    """Return the configured zone; None stands for the zone of this machine."""
    return ZoneInfo(name) if name else None


def read_range(
    args: Mapping[str, Json], now: float, zone: tzinfo | None
) -> tuple[float | None, float | None]:
    """Read the arguments `since` and `until`; a day in `until` is included. Raises
    `ToolFailure`.
    """
    since = _moment(args, "since", now, zone, days=0)
    until = _moment(args, "until", now, zone, days=1)
    if since is not None and until is not None and since >= until:
        raise invalid("/since must be before /until", "Swap since and until")
    return since, until


def _moment(
    args: Mapping[str, Json], name: str, now: float, zone: tzinfo | None, *, days: int
) -> float | None:
    """Return a moment; that of a day is its start, `days` later."""
    given = str(args.get(name, "")).strip()
    if not given:
        return None
    try:
        if given.casefold() in _NAMED_DAYS:
            today = datetime.fromtimestamp(now, UTC).astimezone(zone).date()
            return _start(today - timedelta(_NAMED_DAYS[given.casefold()] - days), zone)
        if _DAY.fullmatch(given):
            return _start(date.fromisoformat(given) + timedelta(days), zone)
        read = datetime.fromisoformat(given.upper())
        return (read if read.tzinfo else _in_zone(read, zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise invalid(f"/{name} {given[:60]!r} is neither a day nor a moment", _FIX) from None


def _start(day: date, zone: tzinfo | None) -> float:
    return _in_zone(datetime.combine(day, time()), zone).timestamp()


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.replace(tzinfo=zone) if zone else moment.astimezone()


def invalid(problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
    )


def to_json(entry: HistoryEntry, zone: tzinfo | None) -> dict[str, Json]:
    """Return an entry for a caller, with its time in the wearer's zone."""
    at = datetime.fromtimestamp(entry.at, UTC).astimezone(zone)
    text = entry.text if len(entry.text) <= MAX_TEXT else entry.text[:MAX_TEXT] + "…"
    more = {"tool": entry.tool, "delivery": entry.delivery}
    known = {key: value for key, value in more.items() if value}
    return {"at": at.isoformat(timespec="seconds"), "kind": entry.kind, **known, "text": text}


def listing(entries: Iterable[HistoryEntry], now: float, zone: tzinfo | None) -> str:
    """Return the first entries for the lens, one a line; the day is named unless it is today. Calls
    that showed no text are left out: the wearer knows nothing of them.
    """
    today = datetime.fromtimestamp(now, UTC).astimezone(zone).date()
    lines = []
    shown = [entry for entry in entries if entry.text.strip()]
    for entry in shown[:LINES]:
        at = datetime.fromtimestamp(entry.at, UTC).astimezone(zone)
        when = f"{at:%H:%M}" if at.date() == today else f"{at.date().isoformat()} {at:%H:%M}"
        lines.append(f"{when} {_in_a_line(entry.text)}")
    return "\n".join(lines)


def _in_a_line(text: str) -> str:
    """Return the lines of a text in one; a long one ends at a word, with a mark."""
    lines = (" ".join(line.split()).removeprefix("- ") for line in text.splitlines())
    return shortened("; ".join(filter(None, lines)), LINE)
