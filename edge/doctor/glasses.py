"""Checks of the glasses: paired, link up, packet size. Only the daemon knows the last two.

Nothing is connected; glasses that are only away are not a failure.
"""

from pathlib import Path
from typing import Any, Final

from edge.core.pairing_state import Bond
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, Fix, do, fail, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.link.bonds import MAX_FILE, DamagedBonds, parsed
from firmware_bridge.bonding import How

SMALLEST_MTU: Final = 23
"""What two radios that never agreed on more use: every page takes ten times as long."""


class GlassesChecks(CheckGroup):
    """Whether the glasses are paired and connected."""

    # -------------------------------------------------------------- bonds

    async def bond(self) -> Finding:
        path = self._examined.state_dir / "bonds.json"
        try:
            bonds = await in_thread(lambda: _read(path))
        except PermissionError:
            return self._not_allowed(f"read {path}")
        except DamagedBonds as e:
            return fail(f"{path} is damaged: {e}; your glasses are not known", self._away(path))
        if self._examined.layer("glasses").get("bond") == "lost":
            return fail("the glasses do not know our key any more", run("glassd pair"))
        return self._judge(bonds)

    def _judge(self, bonds: tuple[Bond, ...]) -> Finding:
        """Compare the bonds with the keys of BlueZ: a bond needs both."""
        g = self._settings.glasses
        seen = self._examined.bluez if self._examined.radio == "bluez" else None
        if seen is not None and not seen.no_service and not seen.refused:
            known = {d.address.upper() for d in seen.devices if d.paired}
            for bond in bonds:
                lost = [a for a in bond.addresses.values() if a.upper() not in known]
                if lost and bond.how != How.NONE:
                    return fail(
                        f"BlueZ has no key for {bond.name} {', '.join(lost)} any more",
                        run(f"glassd pair {quoted(bond.id)}"),
                    )
        if bonds:
            return ok(", ".join(map(_describe, bonds)))
        if g.address:
            return ok(f"{g.address}, by the configuration")
        if g.connect == "any" or self._examined.radio.partition(":")[0] in {"tcp", "inproc"}:
            return ok("none; whatever is heard is taken, as the configuration says")
        return warn("none: glassd connects to paired glasses only", run("glassd up"))

    def _away(self, path: Path) -> Fix:
        command = f"mv {quoted(path)} {quoted(str(path) + '.damaged')}"
        return self._machine.by_writer(path.parent, command)

    # -------------------------------------------------------------- the link, as the daemon sees it

    async def link(self) -> Finding:
        p = self._examined
        if p.status is None:
            return skip("only the running daemon knows")
        link, glasses = p.layer("link"), p.layer("glasses")
        state = str(link.get("state", ""))
        if state != "READY":
            why = link.get("reason") or glasses.get("state") or "no glasses yet"
            hint = (
                link.get("hint")
                or p.layer("adapter").get("hint")
                or "switch your glasses on near this machine; they are being looked for"
            )
            return warn(f"{state or 'unknown'}: {why}", do(str(hint)))
        lost = [
            f"{name} ({_why(side)})"
            for name, side in (glasses.get("sides") or {}).items()
            if _down(side)
        ]
        if lost:
            return warn(
                f"READY, but a side is away: {', '.join(lost)}",
                do(
                    "take that side of the glasses out of its case, "
                    "near this machine; it is looked for"
                ),
            )
        model, firmware, transport = map(glasses.get, ("model", "firmware", "transport"))
        return ok(f"READY: {model} {firmware} over {transport}".rstrip())

    async def mtu(self) -> Finding:
        if self._examined.layer("link").get("state") != "READY":
            return skip("no glasses are connected")
        mtu = int(self._examined.layer("glasses").get("mtu") or 0)
        if 0 < mtu <= SMALLEST_MTU:
            return warn(
                f"{mtu} bytes: the glasses and this radio agreed on no more",
                do("switch the glasses off and on; it is negotiated with each connection"),
            )
        return ok(f"{mtu} bytes")


def _read(path: Path) -> tuple[Bond, ...]:
    try:
        with path.open("rb") as file:
            return parsed(file.read(MAX_FILE + 1))
    except FileNotFoundError:
        return ()


def _describe(bond: Bond) -> str:
    sides = " and ".join(filter(None, bond.addresses)) or bond.id
    return f"{bond.name} ({bond.model}, {sides}, {bond.how})"


def _down(side: Any) -> bool:
    up = {"up", "ready", "connected"}
    return isinstance(side, dict) and str(side.get("state", "")).lower() not in up


def _why(side: Any) -> str:
    return str(side.get("reason") or side.get("state") or "away")
