"""Checks of the glasses: paired, link up, packet size. Only the daemon knows the last two.

Nothing is connected; glasses that are only away are not a failure.
"""

import os
from pathlib import Path
from typing import Any, Final

from edge.core.pairing_state import Bond
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, Finding, Fix, do, fail, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.link.bonds import MAX_FILE, DamagedBonds, parsed
from firmware_bridge.bonding import How

SMALLEST_MTU: Final = 23
"""What two radios that never agreed on more use: every page takes ten times as long."""


class GlassesChecks:
    """The checks of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(
                id="bond",
                layer="glasses",
                title="paired glasses",
                examine=self._bond,
                needs=("config",),
                after=("daemon", "bus"),
            ),
            Check(
                id="link",
                layer="glasses",
                title="link",
                examine=self._link,
                needs=("daemon",),
                effect=True,
            ),
            Check(
                id="mtu",
                layer="glasses",
                title="MTU",
                examine=self._mtu,
                needs=("daemon",),
                effect=True,
            ),
        )

    # -------------------------------------------------------------- bonds

    async def _bond(self) -> Finding:
        settings = self._patient.settings
        assert settings is not None
        path = self._patient.state_dir / "bonds.json"
        try:
            bonds = await in_thread(lambda: _read(path))
        except PermissionError:
            return skip(f"you may not read {path}", self._machine.as_root("glassd doctor"))
        except DamagedBonds as e:
            return fail(f"{path} is damaged: {e}; your glasses are not known", self._away(path))
        if self._patient.layer("glasses").get("bond") == "lost":
            return fail("the glasses do not know our key any more", run("glassd pair"))
        return self._judge(bonds)

    def _judge(self, bonds: tuple[Bond, ...]) -> Finding:
        """Compare what we keep with what BlueZ keeps: a key that one of them lost is of no use
        to the other.
        """
        assert self._patient.settings is not None
        g = self._patient.settings.glasses
        seen = self._patient.bluez if self._patient.radio == "bluez" else None
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
            return ok(
                ", ".join(
                    (
                        f"{b.name} ({b.model}, "
                        f"{' and '.join(filter(None, b.addresses)) or b.id}, {b.how})"
                    )
                    for b in bonds
                )
            )
        if g.address:
            return ok(f"{g.address}, by the configuration")
        if g.connect == "any" or self._patient.radio.partition(":")[0] in {"tcp", "inproc"}:
            return ok("none; whatever is heard is taken, as the configuration says")
        return warn("none: glassd connects to paired glasses only", run("glassd up"))

    def _away(self, path: Path) -> Fix:
        command = f"mv {quoted(path)} {quoted(str(path) + '.damaged')}"
        return run(command) if os.access(path.parent, os.W_OK) else self._machine.as_root(command)

    # -------------------------------------------------------------- the link, by the daemon's own
    # word

    async def _link(self) -> Finding:
        p = self._patient
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
        return ok(
            (
                f"READY: {glasses.get('model')} {glasses.get('firmware')} "
                f"over {glasses.get('transport')}"
            ).rstrip()
        )

    async def _mtu(self) -> Finding:
        if self._patient.layer("link").get("state") != "READY":
            return skip("no glasses are connected")
        mtu = int(self._patient.layer("glasses").get("mtu") or 0)
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


def _down(side: Any) -> bool:
    return isinstance(side, dict) and str(side.get("state", "")).lower() not in {
        "up",
        "ready",
        "connected",
    }


def _why(side: Any) -> str:
    return str(side.get("reason") or side.get("state") or "away")
