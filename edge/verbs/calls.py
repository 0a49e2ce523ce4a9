"""`glassd calls`: history, pending calls, one call's whole story."""

from argparse import Namespace
from typing import Any
from urllib.parse import quote

from edge.verbs.call import delivered
from edge.verbs.screen import Screen, for_people
from edge.verbs.status import duration
from edge.verbs.talk import ask


def run(args: Namespace, screen: Screen) -> int:
    if args.id:
        story = ask(args, "GET", f"/v1/calls/{quote(args.id, safe='')}")
        if screen.as_json:
            screen.json(story)
        else:
            screen.line(for_people(story))
        return 0
    document = ask(args, "GET", f"/v1/calls?limit={args.limit}&pending={int(args.pending)}")
    if screen.as_json:
        screen.json(document)
    elif document["calls"]:
        screen.table([_row(call) for call in document["calls"]])
    else:
        screen.line("No calls are pending." if args.pending else "Nothing was called yet. Try: glassd call clock:now")
    return 0


def _row(call: dict[str, Any]) -> tuple[str, ...]:
    outcome = call.get("code") or (delivered(call["delivery"]) if call.get("delivery") else "")
    age = f"{duration(call['age_s'])} ago" if isinstance(call.get("age_s"), int | float) else ""
    return tuple(str(cell or "") for cell in (call.get("call_id"), age, call.get("tool"), call.get("state"), call.get("route"), outcome))
