"""Calendar: stores events in a file, one per line, so that running a call twice is visible.

It asks for no confirmation: the edge asked the wearer before the call.
"""

import json
import os
import tempfile
import threading
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, failure, params, reply

STATE_ENV: Final = "GLASSD_APP_STATE_DIR"
EVENTS_FILE: Final = "events.jsonl"
MAX_EVENTS: Final = 20_000
SHOWN: Final = 20
_WRITING: Final = threading.Lock()
"""Handlers run in threads: one numbers and writes its event before the next one counts."""


class EventFile:
    """All events, one per line in the order they were made, appended and synced."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [
            json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines() if line
        ]

    def add(self, user: str, event: dict[str, Any]) -> int | None:
        """Append an event and return its number; None if there is no room."""
        number = len(self.read()) + 1
        if number > MAX_EVENTS:
            return None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(
                json.dumps({"user": user, "number": number, **event}, ensure_ascii=False) + "\n"
            )
            file.flush()
            os.fsync(file.fileno())
        return number

    def of(self, user: str) -> list[dict[str, Any]]:
        """Return one person's events, soonest first."""
        return sorted(
            (e for e in self.read() if e["user"] == user), key=lambda e: (e["start"], e["number"])
        )


def _file() -> EventFile:
    return EventFile(Path(os.environ.get(STATE_ENV) or tempfile.gettempdir()) / EVENTS_FILE)


def moment(text: str) -> str:
    """Parse a start in ISO 8601, to the minute. Raises ValueError with the expected form."""
    try:
        return datetime.fromisoformat(text).isoformat(timespec="minutes")
    except ValueError:
        raise ValueError(
            f"start: {text[:40]!r} is no date and time; write it like 2026-05-04T15:00"
        ) from None


def _create_tool(args: dict[str, Any], context: CallContext) -> Any:
    title = " ".join(args["title"].split())
    if not title:
        raise ValueError("title: must not be blank")
    event = {"title": title, "start": moment(args["start"]), "attendees": args.get("attendees", [])}
    with _WRITING:
        number = _file().add(context.user_id, event)
    if number is None:
        return failure("CONFLICT", f"the calendar is full ({MAX_EVENTS} events)")
    with_whom = f"\nwith {', '.join(event['attendees'])}" if event["attendees"] else ""
    shown = f"{title}\n{event['start'].replace('T', ' ')}{with_whom}"
    return reply({"number": number, **event}, title="In your calendar", show=shown)


def _list_tool(_: dict[str, Any], context: CallContext) -> Any:
    events = [{k: v for k, v in e.items() if k != "user"} for e in _file().of(context.user_id)]
    shown = (
        "\n".join(f"{e['start'].replace('T', ' ')} {e['title']}" for e in events[:SHOWN])
        or "Nothing planned."
    )
    return reply(
        {"events": events[:SHOWN], "count": len(events)}, title=f"{len(events)} events", show=shown
    )


_ATTENDEE: Final = {"type": "string", "minLength": 1, "maxLength": 100}

app = AppServer("com.example.calendar", name="Calendar")
app.register_tool(
    create_tool(
        "create_event",
        "Puts an event into the wearer's calendar and invites its attendees.",
        params(
            ["title", "start"],
            title={"type": "string", "minLength": 1, "maxLength": 200, "description": "What"},
            start={
                "type": "string",
                "minLength": 10,
                "maxLength": 40,
                "description": "When, as in 2026-05-04T15:00",
            },
            attendees={
                "type": "array",
                "items": _ATTENDEE,
                "maxItems": 50,
                "description": "Who is invited",
            },
        ),
        _create_tool,
        activation_phrases=["create an event"],
        category="action",
        requires_confirmation="always",
    )
)
app.register_tool(
    create_tool(
        "list_events",
        "Lists the wearer's events, soonest first.",
        params(),
        _list_tool,
        activation_phrases=["what's in my calendar"],
        category="retrieval",
        side_effects="read_only",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
