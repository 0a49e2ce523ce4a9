"""Calendar: stores events in a file, one per line, so that running a call twice is visible.

It asks for no confirmation: the edge asked the wearer before the call.
"""

import threading
from datetime import datetime
from typing import Any, Final

from edge.devcloud.apps.state import append_row, read_rows
from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, failure, params, reply, string

EVENTS_FILE: Final = "events.jsonl"
MAX_EVENTS: Final = 20_000
SHOWN: Final = 20
_WRITING: Final = threading.Lock()
"""Handlers run in threads: one numbers and writes its event before the next one counts."""


def moment(text: str) -> str:
    """Parse a start in ISO 8601, to the minute. Raises ValueError with the expected form."""
    try:
        return datetime.fromisoformat(text).isoformat(timespec="minutes")
    except ValueError:
        problem = f"start: {text[:40]!r} is no date and time"
        raise ValueError(f"{problem}; write it like 2026-05-04T15:00") from None


def _create_tool(args: dict[str, Any], context: CallContext) -> Any:
    title = " ".join(args["title"].split())
    if not title:
        raise ValueError("title: must not be blank")
    event = {"title": title, "start": moment(args["start"]), "attendees": args.get("attendees", [])}
    with _WRITING:
        number = len(read_rows(EVENTS_FILE)) + 1
        if number > MAX_EVENTS:
            return failure("CONFLICT", f"the calendar is full ({MAX_EVENTS} events)")
        append_row(EVENTS_FILE, {"user": context.user_id, "number": number, **event})
    with_whom = f"\nwith {', '.join(event['attendees'])}" if event["attendees"] else ""
    shown = f"{title}\n{event['start'].replace('T', ' ')}{with_whom}"
    return reply({"number": number, **event}, title="In your calendar", show=shown)


def _list_tool(_: dict[str, Any], context: CallContext) -> Any:
    own = [e for e in read_rows(EVENTS_FILE) if e.pop("user") == context.user_id]
    own.sort(key=lambda e: (e["start"], e["number"]))
    lines = [f"{e['start'].replace('T', ' ')} {e['title']}" for e in own[:SHOWN]]
    data = {"events": own[:SHOWN], "count": len(own)}
    return reply(data, title=f"{len(own)} events", show="\n".join(lines) or "Nothing planned.")


_ATTENDEE: Final = {"type": "string", "minLength": 1, "maxLength": 100}
_ATTENDEES: Final = {"type": "array", "items": _ATTENDEE, "maxItems": 50}

app = AppServer("com.example.calendar", name="Calendar")
app.register_tool(
    create_tool(
        "create_event",
        "Puts an event into the wearer's calendar and invites its attendees.",
        params(
            ["title", "start"],
            title=string("What", 200),
            start=string("When, as in 2026-05-04T15:00", 40, least=10),
            attendees={**_ATTENDEES, "description": "Who is invited"},
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
