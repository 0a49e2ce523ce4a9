"""iCalendar texts for tests, written by hand."""

from datetime import UTC, datetime


def text(*events: str, zones: str = "") -> bytes:
    blocks = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    return (
        f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n{zones}{blocks}END:VCALENDAR\n".replace(
            "\n", "\r\n"
        ).encode()
    )


def moment(iso: str) -> datetime:
    return datetime.fromisoformat(iso).astimezone(UTC)
