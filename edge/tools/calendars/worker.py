"""The child that reads calendars: one JSON request on stdin, one JSON answer on stdout.

Run: `python -P -m edge.tools.calendars.worker`. Every outcome is an answer; the parent ends a child
that does not finish.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from edge.runtime.stdio import claim_stdio
from edge.runtime.unreadable import folder_problem
from edge.tools.calendars import folder, ical_read, ical_write
from edge.tools.calendars.dav import CalDavServer
from tools_cache.api.calendars import MAKER, CalendarTrouble, Trouble

MAX_REQUEST: Final = 256 * 1024


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Execute one request. Expected errors become an answer."""
    try:
        _check_folder(request["place"])
        return {"between": between, "make": make, "remove": remove}[request["do"]](request)
    except CalendarTrouble as e:
        return {
            "trouble": e.trouble.value,
            "text": str(e),
            "retry_after_s": e.retry_after_s,
            "uncertain": e.uncertain,
        }
    except ModuleNotFoundError as e:
        fix = "pip install 'glassd[calendar]'"
        text = f"Reading calendars needs {e.name}, which is not installed: {fix}"
    except OSError as e:
        text = f"The calendar folder cannot be used: {e.strerror}"
    return {"trouble": Trouble.REFUSED.value, "text": text}


def _check_folder(place: dict[str, Any]) -> None:
    """Raise `CalendarTrouble` if the configured folder cannot be used: it may not be mounted, so it
    is neither treated as empty nor created.
    """
    named = place.get("named") and not place.get("url")
    if named and (problem := folder_problem(Path(place["folder"]))):
        raise CalendarTrouble(
            Trouble.NO_FOLDER, f"The calendar folder {place['folder']} cannot be used: {problem}"
        )


def between(request: dict[str, Any]) -> dict[str, Any]:
    """Return the busy times in the window, by calendar."""
    start, end, place = _moment(request["start"]), _moment(request["end"]), request["place"]
    busy, unread = [], 0
    for name in dict.fromkeys(request["calendars"]):
        texts: Iterable[bytes] = ()
        if place.get("url"):
            texts = _server(place).texts(name, start, end)
        else:
            texts = folder.texts(Path(place["folder"]), name)
        found, bad = ical_read.busy(texts, start, end)
        unread += bad
        for one in found:
            moments = {"start": one.start.isoformat(), "end": one.end.isoformat()}
            busy.append({**asdict(one), **moments, "calendar": name})
    return {"busy": busy, "unread": unread}


def make(request: dict[str, Any]) -> dict[str, Any]:
    """Write one event; the same key is the same event."""
    place, plan = request["place"], request["plan"]
    uid, file = f"{plan['key']}@{MAKER}", f"{plan['key']}.ics"
    link = place.get("meeting_url", "") if plan["online"] else ""
    moments = {"start": _moment(plan["start"]), "end": _moment(plan["end"])}
    text = ical_write.event(
        {**plan, **moments},
        uid=uid,
        stamp=_moment(request["now"]),
        link=link,
        organizer=place.get("email", ""),
    )
    if place.get("url"):
        fresh = _server(place).put(file, text)
    else:
        fresh = folder.put(Path(place["folder"]), file, text)
    return {"uid": uid, "fresh": fresh, "link": link}


def remove(request: dict[str, Any]) -> dict[str, Any]:
    """Remove one event that `make` wrote: its name is the key, and its id is ours."""
    place, uid, file = request["place"], f"{request['key']}@{MAKER}", f"{request['key']}.ics"
    if place.get("url"):
        server = _server(place)
        text, tag = server.get(file)
    else:
        text, tag = folder.get(Path(place["folder"]), file), ""
    title = ical_write.title_of(text, uid) if text else None
    if title is None:
        return {"there": False}
    if place.get("url"):
        return {"there": server.delete(file, tag), "title": title}
    folder.delete(Path(place["folder"]), file)
    return {"there": True, "title": title}


def _server(place: dict[str, Any]) -> CalDavServer:
    return CalDavServer(
        place["url"], username=place.get("username", ""), password=place.get("password", "")
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def main() -> None:
    incoming, outgoing = claim_stdio()
    with os.fdopen(incoming, "rb") as source, os.fdopen(outgoing, "wb") as sink:
        sink.write(json.dumps(answer(json.loads(source.read(MAX_REQUEST)))).encode())


if __name__ == "__main__":
    main()
