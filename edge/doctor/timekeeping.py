"""Checks of the clock: plausible, synchronised, equal to the cloud's. It is never set here."""

import re
from datetime import UTC, datetime
from typing import Final

from edge.config import locale_forms
from edge.core.words.wearer_forms import utc
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, Fix, do, fail, ok, warn

FLOOR: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""This program is newer than that, so an earlier clock was never set."""
MUCH_S: Final = 60.0
"""Certificates and tokens begin to fail."""
SOME_S: Final = 5.0
"""An HTTP Date has whole seconds, and is sent over a network."""


class ClockChecks(CheckGroup):
    """Whether the clock is right."""

    async def clock(self) -> Finding:
        wall = self._machine.clock.wall()
        now = _moment(wall)
        skew = self._skew()
        if skew is not None and abs(skew) > MUCH_S:
            order = "behind" if skew > 0 else "ahead of"
            fix = await self._set(wall + skew)
            return fail(f"{now} is {_long(skew)} {order} the cloud's", fix)
        if wall < FLOOR:
            return fail(f"{now}: it was never set, TLS cannot work", await self._keep())
        agrees = "" if skew is None else f", {abs(skew):.0f} s off the cloud's"
        if not self._machine.clock_is_set():
            problem = "the clock is not synchronised (no time server has answered)"
            return warn(f"{now}{agrees}; {problem}", await self._keep())
        if skew is not None and abs(skew) > SOME_S:
            return warn(f"{now}{agrees}", await self._keep())
        return ok(f"{now}, synchronised{agrees}{self._as_read(wall)}")

    def _as_read(self, wall: float) -> str:
        """Return how the wearer reads this moment."""
        settings, env = self._examined.settings, self._examined.env
        if settings is None:
            return ""
        configured = settings.wearer.locale, settings.wearer.timezone, env
        forms, named = locale_forms.wearer_forms(*configured), locale_forms.describe(*configured)
        at = utc(wall)
        read = forms.moment(at.replace(second=0, microsecond=0), now=at)
        return f"; the wearer reads {read} ({named['locale']}, {named['timezone']})"

    def _skew(self) -> float | None:
        """Return how many seconds this clock is behind; an HTTP Date of whole seconds means half a
        second later on average.
        """
        p = self._examined
        return None if p.cloud_time is None else p.cloud_time + 0.5 - p.asked_cloud_at

    async def _set(self, now: float) -> Fix:
        return self._machine.as_root(
            f"date -u -s '{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S}'",
            *(await self._ntp())[:1],
        )

    async def _keep(self) -> Fix:
        if commands := await self._ntp():
            return self._machine.as_root(*commands)
        return do(
            "let a time server keep it (systemd-timesyncd or chrony); in a container: on its host"
        )

    async def _ntp(self) -> tuple[str, ...]:
        """Return the commands that give this machine a time server: install one, switch it on, or
        restart it.
        """
        properties = "--property=CanNTP,NTP,NTPSynchronized"
        ran = await self._machine.ask("timedatectl", "show", properties)
        state = dict(re.findall(r"(?m)^(\w+)=(\w+)$", ran.out)) if ran.code == 0 else {}
        if not state:
            return ()
        if state.get("CanNTP") != "yes":
            return ("apt-get install -y systemd-timesyncd", "timedatectl set-ntp true")
        if state.get("NTP") != "yes":
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
