"""How dates and numbers are written for the wearer: as configured, at this moment."""

from collections.abc import Mapping
from datetime import timedelta

from edge.config import locale_forms
from edge.config.model import Settings
from edge.core.words.wearer_forms import Writer, utc
from edge.runtime.clock import Clock
from edge.runtime.paths import Env
from firmware_bridge.messages import SetClock


class WearerWriter:
    """Called for each text: returns a `Writer` bound to now."""

    def __init__(self, settings: Settings, env: Env, clock: Clock) -> None:
        self._env = env
        self._clock = clock
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Take the language and the time zone of these settings."""
        w = settings.wearer
        self._forms = locale_forms.wearer_forms(w.locale, w.timezone, self._env)
        self._described = locale_forms.describe(w.locale, w.timezone, self._env)

    def __call__(self) -> Writer:
        return Writer(self._forms, utc(self._clock.wall()))

    def glasses_clock(self) -> SetClock | None:
        """Return what sets the glasses' clock to the wearer's time; None while this machine's own
        clock is not set.
        """
        if not self._clock.synced():
            return None
        at = utc(self._clock.wall())
        offset = at.astimezone(self._forms.zone).utcoffset() or timedelta()
        local_s, offset_s = int((at + offset).timestamp()), round(offset.total_seconds())
        halves = "a" in self._forms.locale.clock
        return SetClock(local_s, twelve_hour=halves, offset_s=offset_s)

    def describe(self) -> Mapping[str, str]:
        """Return the language and the time zone in use, for the status."""
        return self._described
