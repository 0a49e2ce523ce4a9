"""Who listened when: lines of the audit log and of the service's log, and what `status` says. Never
the words.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

from edge.core.hearing.purposes import Purpose
from edge.runtime.clock import Clock
from tools_cache.api.tool import Json

_log = logging.getLogger(__name__)


class ListeningJournal:
    """One per daemon. `audit` takes records of the audit log."""

    def __init__(self, clock: Clock, audit: Callable[[Mapping[str, Json]], None]) -> None:
        self._clock = clock
        self._audit = audit
        self._on_at: float | None = None
        self._purposes: list[str] = []
        self._last: dict[str, Json] | None = None
        self._last_at = 0.0

    def serve(self, purposes: Iterable[Purpose]) -> None:
        """The microphone is on for these; the first call after `off` says that it went on."""
        names = [purpose.value for purpose in Purpose if purpose in {*purposes}]
        if self._on_at is None:
            self._on_at, self._purposes = self._clock.boot(), []
            self._write("microphone_on", ", ".join(names))
        self._purposes += [name for name in names if name not in self._purposes]

    def off(self, sentences: int, why: str) -> None:
        """The microphone is off; fine if it was not on. `why`: "" where nothing is wrong."""
        if self._on_at is None:
            return
        on_s = self._clock.boot() - self._on_at
        self._on_at, self._last_at = None, self._clock.boot()
        served = ", ".join(self._purposes)
        self._last = {"for": served, "on_s": round(on_s, 1), "sentences": sentences, "reason": why}
        said = f"{served}; {on_s:.1f} s, {sentences} sentence{'s' * (sentences != 1)}"
        self._write(
            "microphone_off", f"{said}; {why}" if why else said, duration=round(on_s * 1000)
        )

    def _write(self, outcome: str, reason: str, **more: Json) -> None:
        _log.info("%s: %s", outcome.replace("_", " "), reason)
        self._audit({"outcome": outcome, "reason": reason, **more})

    def describe(self) -> dict[str, Json]:
        """Return since when the microphone is on, and what there was last."""
        now = self._clock.boot()
        since = None if self._on_at is None else round(now - self._on_at, 1)
        last = self._last and {**self._last, "ago_s": round(now - self._last_at)}
        return {"since_s": since, "last": last}
