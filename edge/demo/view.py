"""How a demo looks to a person: one short block for each thing that happened. Pure: an event in,
text out.

`--json` does not pass here; it prints the events themselves.
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
        """Give what to print for an event; empty for those a person need not see."""
        shape = _SHAPES.get(str(event.get("event")))
        return shape(self, event) if shape else ""

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLE[style]}m{text}\x1b[0m" if self._colour else text

    def _mark(self, mark: str, style: str, text: str) -> str:
        return f"{self._paint(mark, style)} {text}"

    # -------------------------------------------------------------- the daemon's events

    def link(self, e: Mapping[str, Any]) -> str:
        words = {
            "SEEKING": "looking for glasses",
            "CONNECTING": "glasses found; connecting",
            "PREPARING": "greeting them",
        }
        word = words.get(str(e.get("state")))
        return self._mark("·", "dim", word) if word else ""

    def ready(self, e: Mapping[str, Any]) -> str:
        return self._mark(
            "✓", "green", f"connected: {e['model']}, MTU {e['mtu']}, over {e['transport']}"
        )

    def lost(self, e: Mapping[str, Any]) -> str:
        return self._mark("!", "yellow", f"the glasses are away: {e.get('reason')}")

    def published(self, e: Mapping[str, Any]) -> str:
        return self._mark("✓", "green", f"capabilities of {e['model']} reported to the cloud")

    def synced(self, e: Mapping[str, Any]) -> str:
        return self._mark(
            "✓", "green", f"{e['tools']} tools, {e['compatible']} for these glasses ({e['origin']})"
        )

    def uplink_up(self, e: Mapping[str, Any]) -> str:
        self._offline = False
        return self._mark("✓", "green", f"online: broker {e.get('broker')}")

    def uplink_down(self, e: Mapping[str, Any]) -> str:
        if self._offline:  # the reason changed (lost, then refused); a person has heard enough
            return ""
        self._offline = True
        return self._mark("!", "yellow", f"offline: {e.get('reason') or 'the broker is gone'}")

    def received(self, e: Mapping[str, Any]) -> str:
        return self._mark("→", "cyan", f"{e['tool']} (asked by {e['origin']})")

    def progress(self, e: Mapping[str, Any]) -> str:
        return self._mark("…", "dim", str(e.get("text")))

    def answered(self, e: Mapping[str, Any]) -> str:
        mark, style = ("✓", "green") if e.get("ok") else ("✗", "red")
        told = [
            str(part)
            for part in (e.get("route"), e.get("code"), _delivery(e.get("delivery")))
            if part
        ]
        return self._mark(
            mark, style, f"{e['tool'] or 'nothing heard that fits'}: {', '.join(told)}"
        )

    def completed(self, e: Mapping[str, Any]) -> str:
        return self._mark(
            "✓", "green", f"{e['tool']}: finished now, {_delivery(e.get('delivery'))}"
        )

    def asked(self, e: Mapping[str, Any]) -> str:
        return self._mark(
            "?", "yellow", f"{e['preview']}: the wearer is asked (tap: yes, double_tap: no)"
        )

    def decided(self, e: Mapping[str, Any]) -> str:
        mark, style = ("✓", "green") if e.get("outcome") == "allowed" else ("✗", "yellow")
        return self._mark(mark, style, f"{e['outcome']} by {e['by']}")

    # -------------------------------------------------------------- what the mock decoded from the
    # air

    def fault(self, e: Mapping[str, Any]) -> str:
        return self._mark("⚡", "yellow", f"fault: {e.get('fault')}")

    def said(self, e: Mapping[str, Any]) -> str:
        """Of what glasses say only that a side of them is lost, or back."""
        what = e.get("said") or {}
        if what.get("type") != "SideChanged":
            return ""
        if what.get("up"):
            return self._mark("✓", "green", f"the {what.get('side')} arm is there")
        return self._mark(
            "!", "yellow", f"the {what.get('side')} arm is lost; the other carries on"
        )

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

    def speaker(self, e: Mapping[str, Any]) -> str:
        cut = ", stopped" if e.get("flushed") else ""
        return self._mark("♪", "cyan", f"spoke for {e['seconds']:.1f} s{cut}: {e.get('wav')}")

    # -------------------------------------------------------------- the demo's own words

    def step(self, e: Mapping[str, Any]) -> str:
        return f"\n{self._paint('== ' + str(e['title']), 'bold')}"

    def cast(self, e: Mapping[str, Any]) -> str:
        return self._mark("·", "dim", f"{e['name']}: {e['where']}")

    def invoked(self, e: Mapping[str, Any]) -> str:
        return self._mark(
            "☁",
            "cyan",
            f"the cloud's agent called {e['tool']}: {'ok' if e.get('ok') else 'refused'}",
        )

    def refused(self, e: Mapping[str, Any]) -> str:
        more = f"\n  {e['suggestion']}" if e.get("suggestion") else ""
        details = "".join(f"\n  {d['path']}: {d['problem']}" for d in _problems(e.get("details")))
        return self._mark("✗", "red", f"{e.get('code')}: {e.get('message')}{details}{more}")

    def problem(self, e: Mapping[str, Any]) -> str:
        return self._mark("!", "red", str(e.get("text")))

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


_SHAPES: Final[Mapping[str, Callable[[View, Mapping[str, Any]], str]]] = {
    "link.state": View.link,
    "glasses.ready": View.ready,
    "glasses.lost": View.lost,
    "capabilities.published": View.published,
    "registry.synced": View.synced,
    "uplink.up": View.uplink_up,
    "uplink.down": View.uplink_down,
    "call.received": View.received,
    "call.progress": View.progress,
    "call.answered": View.answered,
    "call.completed": View.completed,
    "lens": View.lens,
    "prompt": View.lens,
    "confirmation.asked": View.asked,
    "confirmation.decided": View.decided,
    "speaker": View.speaker,
    "fault": View.fault,
    "glasses.event": View.said,
    "step": View.step,
    "cast": View.cast,
    "cloud.invoked": View.invoked,
    "refused": View.refused,
    "problem": View.problem,
    "shown.tools": View.tools,
    "shown.status": View.status,
    "shown.lens": View.shown_lens,
}
