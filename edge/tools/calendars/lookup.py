"""Reads and writes calendars in a child process, which is ended when it takes too long.

iCalendar, HTTP and XML would stay in the daemon's memory (12 MiB), and recurrence rules can run
without end (see ical_read.py).
"""

import asyncio
import hashlib
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from firmware_bridge.deadlines import timeout
from tools_cache import subprocess_call
from tools_cache.api.calendars import (
    MAKER,
    Agenda,
    Busy,
    CalendarTrouble,
    Made,
    Plan,
    Trouble,
)

DEADLINE_S: Final = 12.0
MAX_ANSWER: Final = 4 * 1024 * 1024
CHILD: Final = (sys.executable, "-P", "-m", "edge.tools.calendars.worker")
"""-P: a module in the working directory cannot replace a library."""
_KEY: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarPlace:
    """Where the calendars are: a folder, or a server if there is a `url`. `password` is a secret. A
    `named` folder comes from the configuration and must exist; the daemon's own is created with the
    first event.
    """

    folder: Path
    named: bool = False
    url: str = ""
    username: str = ""
    password: str = ""
    email: str = ""
    meeting_url: str = ""

    def __repr__(self) -> str:
        return f"Place({self.url or self.folder})"


@dataclass(eq=False, repr=False)
class CalendarLookup:
    """Implements `tools_cache.api.calendars.Calendars`. `now` is the wall clock."""

    place: CalendarPlace
    _: KW_ONLY
    now: Callable[[], float]
    deadline_s: float = DEADLINE_S
    command: Sequence[str] = CHILD
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2), init=False)

    async def between(self, start: datetime, end: datetime, *, calendars: Sequence[str]) -> Agenda:
        """See `Calendars`."""
        request = {
            "do": "between",
            "start": start.isoformat(),
            "end": end.isoformat(),
            "calendars": list(calendars),
        }
        answer = await self._request(request)
        for one in answer["busy"]:
            one["start"], one["end"] = map(datetime.fromisoformat, (one["start"], one["end"]))
        return Agenda(busy=tuple(Busy(**one) for one in answer["busy"]), unread=answer["unread"])

    async def make(self, plan: Plan) -> Made:
        """See `Calendars`."""
        whole = {
            **asdict(plan),
            "key": _key(plan.key),
            "start": plan.start.isoformat(),
            "end": plan.end.isoformat(),
        }
        now = datetime.fromtimestamp(self.now(), UTC).isoformat()
        made = await self._request({"do": "make", "plan": whole, "now": now}, writes=True)
        return Made(**made, invites=bool(self.place.url))

    async def remove(self, uid: str) -> str | None:
        """See `Calendars`."""
        key = uid.removesuffix(f"@{MAKER}")
        if key == uid or not _KEY.fullmatch(key):
            return None
        removed = await self._request({"do": "remove", "key": key}, writes=True)
        return str(removed["title"]) if removed["there"] else None

    async def _request(self, request: Mapping[str, Any], *, writes: bool = False) -> dict[str, Any]:
        place = {**asdict(self.place), "folder": str(self.place.folder)}
        try:
            async with timeout(self.deadline_s), self._turns:
                raw, _ = await subprocess_call.run(
                    self.command,
                    question=json.dumps({**request, "place": place}).encode(),
                    limit_s=self.deadline_s,
                    max_bytes=MAX_ANSWER,
                )
            answer: dict[str, Any] = json.loads(raw)
        except TimeoutError:
            text = f"The calendar took longer than {self.deadline_s:.0f} s"
            raise CalendarTrouble(Trouble.AWAY, text, uncertain=writes) from None
        except OSError as e:
            raise CalendarTrouble(
                Trouble.REFUSED, f"The calendar cannot be read: {e.strerror}"
            ) from None
        except ValueError:
            _log.warning("the child that reads calendars ended without an answer")
            raise CalendarTrouble(
                Trouble.REFUSED, "The calendar could not be read", uncertain=writes
            ) from None
        if "trouble" in answer:
            raise CalendarTrouble(
                Trouble(answer["trouble"]),
                answer["text"],
                retry_after_s=answer.get("retry_after_s"),
                uncertain=answer.get("uncertain") is True,
            )
        return answer


def _key(key: str) -> str:
    """Return the key as a file name: one that cannot be a name is replaced by its hash."""
    return key if _KEY.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()[:32]
