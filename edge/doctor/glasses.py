"""Checks of the glasses: are they ours, is the link up, how much fits into one packet. Only the daemon knows the last two.

Refuses to connect, and to judge glasses that are merely away.
"""

from typing import Any, Final

from edge.doctor.patient import Patient
from edge.doctor.words import Check, Finding, do, ok, skip, warn

SMALLEST_MTU: Final = 23
"""What two radios that never agreed on more use: every page takes ten times as long."""


class Glasses:
    """The checks of this layer."""

    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(id="link", layer="glasses", title="link", examine=self._link, needs=("daemon",)),
            Check(id="mtu", layer="glasses", title="MTU", examine=self._mtu, needs=("daemon",)),
        )

    async def _link(self) -> Finding:
        p = self._patient
        if p.status is None:
            return skip("only the running daemon knows")
        link, glasses = p.layer("link"), p.layer("glasses")
        state = str(link.get("state", ""))
        if state != "READY":
            why = link.get("reason") or glasses.get("state") or "no glasses yet"
            hint = p.layer("adapter").get("hint") or "switch your glasses on near this machine; they are being looked for"
            return warn(f"{state or 'unknown'}: {why}", do(str(hint)))
        lost = [f"{name} ({_why(side)})" for name, side in (glasses.get("sides") or {}).items() if _down(side)]
        if lost:
            return warn(f"READY, but a side is away: {', '.join(lost)}", do("take that side of the glasses out of its case, near this machine; it is looked for"))
        return ok(f"READY: {glasses.get('model')} {glasses.get('firmware')} over {glasses.get('transport')}".rstrip())

    async def _mtu(self) -> Finding:
        if self._patient.layer("link").get("state") != "READY":
            return skip("no glasses are connected")
        mtu = int(self._patient.layer("glasses").get("mtu") or 0)
        if 0 < mtu <= SMALLEST_MTU:
            return warn(f"{mtu} bytes: the glasses and this radio agreed on no more", do("switch the glasses off and on; it is agreed on anew with each connection"))
        return ok(f"{mtu} bytes")


def _down(side: Any) -> bool:
    return isinstance(side, dict) and str(side.get("state", "")).lower() not in {"up", "ready", "connected"}


def _why(side: Any) -> str:
    return str(side.get("reason") or side.get("state") or "away")
