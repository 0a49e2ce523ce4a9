"""Checks of the clock: plausible, synchronised, equal to the cloud's. It is never set here."""

import re
from datetime import UTC, datetime
from typing import Final

from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, Finding, Fix, do, fail, ok, warn

FLOOR: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""This program is younger than that, so a clock before it was never set."""
MUCH_S: Final = 60.0
"""Certificates and tokens begin to fail."""
SOME_S: Final = 5.0
"""An HTTP Date has whole seconds, and travels."""


class ClockChecks:
    """The check of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        # timedatectl starts a service when it is asked: seconds on a small machine
        return (
            Check(
                id="clock",
                layer="clock",
                title="clock",
                examine=self._clock,
                after=("cloud",),
                deadline_s=6.0,
            ),
        )

    async def _clock(self) -> Finding:
        wall = self._machine.clock.wall()
        said = _moment(wall)
        skew = self._skew()
        if skew is not None and abs(skew) > MUCH_S:
            return fail(
                f"{said} is {_long(skew)} {'behind' if skew > 0 else 'ahead of'} the cloud's",
                await self._set(wall + skew),
            )
        if wall < FLOOR:
            return fail(f"{said}: it was never set, TLS cannot work", await self._keep())
        agrees = "" if skew is None else f", {abs(skew):.0f} s off the cloud's"
        if not self._machine.clock_is_set():
            return warn(
                f"{said}{agrees}; nothing keeps it true (no time server has answered)",
                await self._keep(),
            )
        if skew is not None and abs(skew) > SOME_S:
            return warn(f"{said}{agrees}", await self._keep())
        return ok(f"{said}, synchronised{agrees}")

    def _skew(self) -> float | None:
        """Seconds our clock lacks; half a second is the middle of what a whole-second Date can
        mean.
        """
        p = self._patient
        return None if p.cloud_time is None else p.cloud_time + 0.5 - p.asked_cloud_at

    async def _set(self, now: float) -> Fix:
        return self._machine.as_root(
            f"date -u -s '{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S}'",
            *(await self._ntp())[:1],
        )

    async def _keep(self) -> Fix:
        commands = await self._ntp()
        return (
            self._machine.as_root(*commands)
            if commands
            else do(
                "let a time server keep it (systemd-timesyncd or "
                "chrony); in a container: on its host"
            )
        )

    async def _ntp(self) -> tuple[str, ...]:
        """How this machine gets a time server: the one it has switched on, restarted, or
        installed first.
        """
        ran = await self._machine.ask(
            "timedatectl", "show", "--property=CanNTP,NTP,NTPSynchronized"
        )
        told = dict(re.findall(r"(?m)^(\w+)=(\w+)$", ran.out)) if ran.code == 0 else {}
        if not told:
            return ()
        if told.get("CanNTP") != "yes":
            return ("apt-get install -y systemd-timesyncd", "timedatectl set-ntp true")
        if told.get("NTP") != "yes":
            return ("timedatectl set-ntp true",)
        return ("systemctl restart systemd-timesyncd",)


def _moment(wall: float) -> str:
    try:
        return f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{wall:.0f} s since 1970"


def _long(seconds: float) -> str:
    seconds = abs(seconds)
    for size, unit in ((2 * 86400, "days"), (2 * 3600, "hours"), (120, "minutes")):
        if seconds >= size:
            return f"{seconds / (size / 2):.0f} {unit}"
    return f"{seconds:.0f} s"
