"""Calendar interface for tools: busy times, making and removing events, errors. All moments have a
time zone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Protocol

from tools_cache.api.handed import Json
from tools_cache.errors import ErrorCode, ToolFailure

PRIMARY: Final = "primary"
MAKER: Final = "glassd"
"""Ends the id of each event that `make` writes: `KEY@glassd`."""
RETRY_AFTER_S: Final = 60.0
"""Seconds to wait for a server that reports too many requests without a time."""
MOST_RETRY_AFTER_S: Final = 3600.0
YEARS: Final = range(1900, 9999)
"""Supported years: a window around the first and the last year of Python's dates would not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A busy period. `start` < `end`, both with a zone."""

    start: datetime
    end: datetime
    title: str = ""
    calendar: str = PRIMARY
    all_day: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An event to create; `key` identifies it, so that a repeated call creates no second one."""

    key: str
    title: str
    start: datetime
    end: datetime
    attendees: tuple[str, ...] = ()
    description: str = ""
    online: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An event in the calendar. `fresh`: it did not exist before; `link`: online meeting, or ""."""

    uid: str
    calendar: str = PRIMARY
    fresh: bool = True
    link: str = ""
    invites: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Busy periods in a window. `unread`: entries that could not be parsed and may be busy too."""

    busy: tuple[Busy, ...]
    unread: int = 0


class Trouble(StrEnum):
    """Why a calendar request failed."""

    RATE_LIMIT = "rate limit"
    AUTH = "auth"
    AWAY = "away"
    REFUSED = "refused"
    UNKNOWN_CALENDAR = "unknown calendar"
    NO_FOLDER = "no folder"
    """The folder that the owner named cannot be read."""


class CalendarTrouble(Exception):
    """A calendar request that failed. `uncertain`: it may have been written all the same."""

    def __init__(
        self,
        trouble: Trouble,
        text: str,
        *,
        retry_after_s: float | None = None,
        uncertain: bool = False,
    ) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.retry_after_s = retry_after_s
        self.uncertain = uncertain


class Calendars(Protocol):
    """The owner's calendars."""

    async def between(self, start: datetime, end: datetime, *, calendars: Sequence[str]) -> Agenda:
        """Return busy periods, in any order. Raises `CalendarTrouble`."""

    async def make(self, plan: Plan) -> Made:
        """Write one event into the primary calendar. Raises `CalendarTrouble`."""

    async def remove(self, uid: str) -> str | None:
        """Remove an event that `make` wrote; return its title, None if there is none of this id.
        Raises `CalendarTrouble`.
        """


def moment(args: Mapping[str, Json], name: str) -> datetime:
    """Read an argument of the format date-time. Raises `ToolFailure`.

    That format also allows lower-case `t` and `z`, which are accepted, and leap seconds and the
    year 0, which Python cannot represent.
    """
    try:
        read = datetime.fromisoformat(str(args[name]).upper())
        known = read.astimezone(UTC).year in YEARS
    except (ValueError, OverflowError):
        known = False
    if not known:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /{name} must be a moment in {YEARS[0]} to {YEARS[-1]}",
            suggestion="Give it like 2026-11-23T09:00:00+01:00",
        )
    return read


def failure(trouble: CalendarTrouble) -> ToolFailure:
    """Return the tool error for a calendar error. AUTH is final: a person must sign in again."""
    code, fix = _ERRORS[trouble.trouble]
    text, partial = str(trouble), trouble.uncertain
    if trouble.trouble is not Trouble.RATE_LIMIT:
        return ToolFailure.of(code, text, suggestion=fix, partial_side_effects=partial)
    wait_s = min(MOST_RETRY_AFTER_S, max(1.0, trouble.retry_after_s or RETRY_AFTER_S))
    return ToolFailure.of(
        code,
        text,
        retry_after_ms=math.ceil(wait_s * 1000),
        suggestion=f"Try again in {math.ceil(wait_s)} s",
        partial_side_effects=partial,
    )


_ERRORS: Final[Mapping[Trouble, tuple[ErrorCode, str | None]]] = {
    Trouble.RATE_LIMIT: (ErrorCode.RATE_LIMIT, None),
    Trouble.AUTH: (ErrorCode.AUTH, "Check calendar.username and calendar.password_file"),
    Trouble.AWAY: (ErrorCode.NETWORK_ERROR, "Try again in a moment"),
    Trouble.REFUSED: (ErrorCode.TOOL_UNAVAILABLE, None),
    Trouble.UNKNOWN_CALENDAR: (
        ErrorCode.INVALID_ARGUMENTS,
        'Leave calendars out for "primary"',
    ),
    Trouble.NO_FOLDER: (
        ErrorCode.TOOL_UNAVAILABLE,
        "Make or mount that folder, or correct [calendar] folder in glassd.toml",
    ),
}
