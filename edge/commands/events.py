"""`glassd events`: follow what happens; one line an event for a person at a terminal, one JSON
object a line for programs.
"""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from edge.commands.shared.console import Screen, json_text, plain
from edge.commands.shared.daemon import client, delivered
from edge.runtime.durations import duration

MAX_CALLS: Final = 256
"""Calls whose tool is remembered: a few events have only the id of their call."""
_SHOWN: Final = frozenset({"event", "at"})
Event = Mapping[str, Any]


def events(args: Namespace, screen: Screen) -> int:
    left = args.count
    show = EventLines(screen).show if screen.terminal and not screen.as_json else _show_json(screen)
    for event_id, name, data in client(args).events(args.after):
        document = json.loads(data)
        if name == "missed":
            show(document)
            continue
        if args.kind and not str(document.get("event", "")).startswith(args.kind):
            continue
        show({**document, "id": event_id})
        if left is not None:
            left -= 1
            if not left:
                break
    return 0


def _show_json(screen: Screen) -> Callable[[Event], None]:
    return lambda event: screen.json(event, lines=True)


class EventLines:
    """Shows events to a person, one line each."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._tools: dict[str, str] = {}

    def show(self, event: Event) -> None:
        at = event.get("at")
        clock = time.localtime(at if isinstance(at, int | float) else None)
        label, text = self.text(event)
        self._screen.table([(time.strftime("%H:%M:%S", clock), f"{label:<9}", text)])
        self._screen.flush()

    def text(self, event: Event) -> tuple[str, str]:
        """Return (what it is about, what happened)."""
        self._remember(event)
        kind = str(event.get("event", ""))
        label, say = KINDS.get(kind, ("", None))
        facts = say(event) if say is not None else _fields(event, {*_SHOWN, "id"})
        if label == "call":
            facts = (self._tool(event), *facts)
        return label or kind, " · ".join(str(fact) for fact in facts if fact not in (None, ""))

    def _remember(self, event: Event) -> None:
        call_id, tool = event.get("call_id"), event.get("tool")
        if call_id and tool and call_id not in self._tools:
            self._tools[str(call_id)] = str(tool)
            for old in list(islice(self._tools, max(0, len(self._tools) - MAX_CALLS))):
                del self._tools[old]

    def _tool(self, event: Event) -> str:
        call_id = str(event.get("call_id", ""))
        return str(event.get("tool") or self._tools.get(call_id) or f"call {call_id}")


# ------------------------------------------------------------------ what happened, in words


def _fields(of: Event, without: Iterable[str]) -> tuple[str, ...]:
    """Return everything, for an event that has no words of its own."""
    return tuple(f"{key}={_value(value)}" for key, value in of.items() if key not in without)


def _value(value: Any) -> str:
    return plain(value) if isinstance(value, str) else json_text(value)


def _names(label: str, names: Any) -> str:
    return f"{label}{', '.join(map(str, names))}" if isinstance(names, list) and names else ""


def _outcome(event: Event) -> tuple[str, ...]:
    if event.get("final") is False:
        outcome = "waits for a yes" if event.get("code") == "CONFIRMATION_REQUIRED" else "waits"
    else:
        outcome = "done" if event.get("ok") else f"failed {event.get('code', '')}".rstrip()
    route = f"route {event['route']}" if event.get("route") else ""
    return outcome, route, _delivery(event.get("delivery"))


def _delivery(delivery: Any) -> str:
    return f"delivery {delivered(delivery)}" if delivery not in (None, "", "none") else ""


def _from_glasses(event: Event) -> tuple[str, ...]:
    said = event.get("said")
    if not isinstance(said, Mapping):
        return ()
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in str(said.get("type", "")))
    more = {key: value for key, value in said.items() if value not in (None, "")}
    return (words.strip(), *_fields(more, {"type"}))


def _lens(event: Event) -> tuple[str, ...]:
    lines = " / ".join(map(str, event.get("lines") or ()))
    if not event.get("page"):
        return ("dark",)
    pages = event.get("pages") or 0
    return lines or "a picture", f"page {event['page']} of {pages}" if pages > 1 else ""


def _filtered(event: Event) -> tuple[str, ...]:
    apps = event.get("apps")
    lacking = apps.items() if isinstance(apps, Mapping) else ()
    return (
        f"{event.get('count')} apps need what these glasses do not have",
        *(f"{app}: {', '.join(map(str, parts))}" for app, parts in lacking),
    )


def _open_question(event: Event) -> tuple[str, ...]:
    first = next(iter(event.get("particulars") or ()), event.get("preview", ""))
    left = event.get("expires_s")
    open_for = f"open for {duration(left)}" if isinstance(left, int | float) else ""
    return "waits for a yes", str(first), open_for


KINDS: Final[Mapping[str, tuple[str, Callable[[Event], tuple[Any, ...]]]]] = {
    "missed": ("events", lambda e: (f"{e.get('missed') or 'some'} events were missed",)),
    "link.state": ("link", lambda e: (e.get("state"), e.get("reason"))),
    "glasses.ready": (
        "glasses",
        lambda e: (f"{e.get('model')} ready", f"firmware {e.get('firmware')}", e.get("address")),
    ),
    "glasses.lost": ("glasses", lambda e: ("lost", e.get("reason"))),
    "glasses.paired": ("glasses", lambda e: (f"{e.get('model')} paired", e.get("how"))),
    "glasses.unpaired": ("glasses", lambda e: (f"{e.get('model')} is no longer paired",)),
    "glasses.event": ("glasses", _from_glasses),
    "capabilities.changed": (
        "glasses",
        lambda e: (
            f"{e.get('model')} are away; what they can do is remembered"
            if e.get("stale")
            else f"what {e.get('model')} can do is known",
        ),
    ),
    "capabilities.published": (
        "cloud",
        lambda e: (f"knows what {e.get('model')} can do", f"{e.get('tools')} tools"),
    ),
    "registry.synced": (
        "tools",
        lambda e: (
            f"{e.get('tools')} tools from {e.get('origin')}",
            f"{e.get('compatible')} work with these glasses",
            e.get("version"),
        ),
    ),
    "tools_list_changed": (
        "tools",
        lambda e: (
            f"{e.get('tools')} tools are offered",
            _names("new: ", e.get("added")),
            _names("gone: ", e.get("removed")),
            _names("changed: ", e.get("changed")),
        ),
    ),
    "tools.filtered": ("tools", _filtered),
    **{
        f"tools.{what}": ("tools", lambda e: (e.get("what"), e.get("tool"), e.get("why")))
        for what in ("initialized", "loaded", "unloaded", "used")
    },
    "tools.switched": (
        "tools",
        lambda e: (
            f"{e.get('tool')} switched {'on' if e.get('on') else 'off'} by {e.get('user')}",
            _names("also: ", e.get("also")),
        ),
    ),
    "server.state": (
        "server",
        lambda e: (
            f"{e.get('server')} {e.get('status')}",
            f"{e.get('tools')} tools",
            e.get("error"),
        ),
    ),
    "configuration.reloaded": (
        "settings",
        lambda e: (
            "read again",
            _names("in use: ", e.get("live")),
            _names("after a restart: ", e.get("needs_restart")),
        ),
    ),
    "uplink.up": ("cloud", lambda e: ("connected", e.get("broker"))),
    "uplink.down": ("cloud", lambda e: ("not connected", e.get("reason"), e.get("broker"))),
    "call.received": ("call", lambda e: (f"asked by {e.get('origin')}",)),
    "call.progress": ("call", lambda e: (e.get("text"),)),
    "call.answered": ("call", _outcome),
    "call.completed": ("call", _outcome),
    "call.resolved": ("call", lambda _: ("its result was handed in",)),
    "call.off": ("call", lambda e: ("the wearer cancels it", e.get("reason"))),
    "offer.taken": ("call", lambda _: ("the wearer taps what its result offers",)),
    "delivery": ("call", lambda e: (_delivery(e.get("report")),)),
    "confirmation.asked": ("call", _open_question),
    "confirmation.decided": (
        "call",
        lambda e: (f"{e.get('outcome')} by {e.get('by')}" if e.get("by") else e.get("outcome"),),
    ),
    "lens.acknowledged": ("lens", _lens),
    "service.crashed": (
        "service",
        lambda e: (
            f"{e.get('service')} ended with an error: {e.get('error')}",
            f"starts again in {duration(e.get('retry_in_s') or 0)}",
        ),
    ),
    "alarm": (
        "alarm",
        lambda e: (
            (f"over: {e.get('alarm')}",) if e.get("over") else (e.get("alarm"), e.get("text"))
        ),
    ),
}
"""Kind of event → (what it is about, what happened, in parts)."""
