"""Formats the events of a demo for a person, each as one short block.

With `--json` the events themselves are printed instead.
"""

import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final

LENS_COLUMNS: Final = 68
"""A 576 px line of the mocks' 22 px font holds about 60 characters."""
_STYLE: Final = {"green": "32", "cyan": "36", "yellow": "33", "red": "31", "dim": "2", "bold": "1"}


class View:
    """Turns events into lines. `colour` only for a terminal."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._offline = False

    def text(self, event: Mapping[str, Any]) -> str:
        """Return what to print for an event; "" for those that are not shown."""
        name = str(event.get("event"))
        if name in _MARKED:
            mark, style, text = _MARKED[name]
            shown = text(event)
            return self._mark(mark, style, shown) if shown else ""
        block = _BLOCKS.get(name)
        return block(self, event) if block else ""

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLE[style]}m{text}\x1b[0m" if self._colour else text

    def _mark(self, mark: str, style: str, text: str) -> str:
        return f"{self._paint(mark, style)} {text}"

    # -------------------------------------------------------------- the daemon's events

    def uplink_up(self, e: Mapping[str, Any]) -> str:
        self._offline = False
        return self._mark("✓", "green", f"online: broker {e.get('broker')}")

    def uplink_down(self, e: Mapping[str, Any]) -> str:
        if self._offline:  # only the reason changed (lost, then refused)
            return ""
        self._offline = True
        return self._mark("!", "yellow", f"offline: {e.get('reason') or 'the broker is gone'}")

    def answered(self, e: Mapping[str, Any]) -> str:
        mark, style = ("✓", "green") if e.get("ok") else ("✗", "red")
        parts = (e.get("route"), e.get("code"), _delivery(e.get("delivery")))
        how = ", ".join(str(part) for part in parts if part)
        return self._mark(mark, style, f"{e['tool'] or 'nothing heard that fits'}: {how}")

    def decided(self, e: Mapping[str, Any]) -> str:
        mark, style = ("✓", "green") if e.get("outcome") == "allowed" else ("✗", "yellow")
        return self._mark(mark, style, f"{e['outcome']} by {e['by']}")

    # -------------------------------------------------------------- decoded by the mock

    def side(self, e: Mapping[str, Any]) -> str:
        """Of the events of the glasses, show only that a side is lost, or back."""
        what = e.get("said") or {}
        if what.get("type") != "SideChanged":
            return ""
        if what.get("up"):
            return self._mark("✓", "green", f"the {what.get('side')} arm is there")
        lost = f"the {what.get('side')} arm is lost; the other carries on"
        return self._mark("!", "yellow", lost)

    def lens(self, e: Mapping[str, Any]) -> str:
        sides = (e.get("sides") or {}).values()
        if e.get("same") is False and all(side.get("connected") for side in sides):
            return ""  # one arm has it, the other has it in a moment
        lines = [str(line) for line in e.get("lines") or []]
        if not any(lines):
            return self._paint("  (the lens is dark)", "dim")
        page = f" {e['page']}/{e['pages']} " if int(e.get("pages") or 1) > 1 else ""
        page += f" {e['side']} arm alone " if e.get("same") is False else ""
        top = "╭" + "─" * (LENS_COLUMNS + 2 - len(page)) + page + "╮"
        body = [f"│ {line[:LENS_COLUMNS]:<{LENS_COLUMNS}} │" for line in lines]
        return "\n".join(
            self._paint(line, "green")
            for line in (top, *body, "╰" + "─" * (LENS_COLUMNS + 2) + "╯")
        )

    # -------------------------------------------------------------- the demo's own events

    def step(self, e: Mapping[str, Any]) -> str:
        return f"\n{self._paint('== ' + str(e['title']), 'bold')}"

    def refused(self, e: Mapping[str, Any]) -> str:
        more = f"\n  {e['suggestion']}" if e.get("suggestion") else ""
        details = "".join(f"\n  {d['path']}: {d['problem']}" for d in _problems(e.get("details")))
        return self._mark("✗", "red", f"{e.get('code')}: {e.get('message')}{details}{more}")

    def tools(self, e: Mapping[str, Any]) -> str:
        shown = (e.get("document") or {}).get("tools") or []
        rows = [f"  {t['name']:<34} {_about(t)}" for t in shown]
        return "\n".join(rows) or "  no tools"

    def status(self, e: Mapping[str, Any]) -> str:
        d = e.get("document") or {}
        rows = [
            f"  {k:<9} {d[k].get('state', '')} {d[k].get('reason', '')}"
            for k in ("link", "glasses", "uplink")
            if k in d
        ]
        return "\n".join([*rows, f"  next: {d.get('next_action') or 'nothing'}"])

    def shown_lens(self, e: Mapping[str, Any]) -> str:
        return self.lens(e.get("document") or {})


def _about(tool: Mapping[str, Any]) -> str:
    if tool.get("hidden"):
        return f"hidden: {tool['hidden']}"
    return textwrap.shorten(str(tool.get("description", "")), 66, placeholder=" …")


def _delivery(value: Any) -> str:
    if isinstance(value, Mapping):
        why = value.get("reason") or value.get("downgrade")
        return f"{value.get('state')} ({why})" if why else str(value.get("state"))
    return str(value)


def _problems(details: Any) -> list[Mapping[str, Any]]:
    return (
        [d for d in details if isinstance(d, Mapping) and "path" in d]
        if isinstance(details, list)
        else []
    )


def _link(e: Mapping[str, Any]) -> str:
    words = {
        "SEEKING": "looking for glasses",
        "CONNECTING": "glasses found; connecting",
        "PREPARING": "greeting them",
    }
    return words.get(str(e.get("state")), "")


def _synced(e: Mapping[str, Any]) -> str:
    return f"{e['tools']} tools, {e['compatible']} for these glasses ({e['origin']})"


def _speaker(e: Mapping[str, Any]) -> str:
    stopped = ", stopped" if e.get("flushed") else ""
    return f"spoke for {e['seconds']:.1f} s{stopped}: {e.get('wav')}"


def _question(e: Mapping[str, Any]) -> str:
    return f"{e['preview']}: the wearer is asked (tap: yes, double_tap: no)"


def _ready(e: Mapping[str, Any]) -> str:
    return f"connected: {e['model']}, MTU {e['mtu']}, over {e['transport']}"


def _invoked(e: Mapping[str, Any]) -> str:
    return f"the cloud's agent called {e['tool']}: {'ok' if e.get('ok') else 'refused'}"


_MARKED: Final[Mapping[str, tuple[str, str, Callable[[Mapping[str, Any]], str]]]] = {
    "link.state": ("·", "dim", _link),
    "glasses.ready": ("✓", "green", _ready),
    "glasses.lost": ("!", "yellow", lambda e: f"the glasses are away: {e.get('reason')}"),
    "capabilities.published": (
        "✓",
        "green",
        lambda e: f"capabilities of {e['model']} reported to the cloud",
    ),
    "registry.synced": ("✓", "green", _synced),
    "call.received": ("→", "cyan", lambda e: f"{e['tool']} (asked by {e['origin']})"),
    "call.progress": ("…", "dim", lambda e: str(e.get("text"))),
    "call.completed": (
        "✓",
        "green",
        lambda e: f"{e['tool']}: finished now, {_delivery(e.get('delivery'))}",
    ),
    "confirmation.asked": ("?", "yellow", _question),
    "speaker": ("♪", "cyan", _speaker),
    "fault": ("⚡", "yellow", lambda e: f"fault: {e.get('fault')}"),
    "starting": (
        "·",
        "dim",
        lambda e: f"starting {e['glasses']} glasses, a small cloud and the daemon …",
    ),
    "cast": ("·", "dim", lambda e: f"{e['name']}: {e['where']}"),
    "cloud.invoked": ("☁", "cyan", _invoked),
    "problem": ("!", "red", lambda e: str(e.get("text"))),
}
"""Event → mark, colour and text of its line; no line if the text is empty."""
_BLOCKS: Final[Mapping[str, Callable[[View, Mapping[str, Any]], str]]] = {
    "uplink.up": View.uplink_up,
    "uplink.down": View.uplink_down,
    "call.answered": View.answered,
    "confirmation.decided": View.decided,
    "lens": View.lens,
    "prompt": View.lens,
    "glasses.event": View.side,
    "step": View.step,
    "refused": View.refused,
    "shown.tools": View.tools,
    "shown.status": View.status,
    "shown.lens": View.shown_lens,
}
