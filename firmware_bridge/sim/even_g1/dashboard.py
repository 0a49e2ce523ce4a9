"""What the wearer of a simulated Even G1 sees on its own dashboard."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from firmware_bridge.messages import SetClock
from firmware_bridge.own_commands import DashboardLayout, DashboardPane, SetWeather, Sky


class Face(Struct):
    """Clock and weather of one arm. `at`: when it was set, on the simulator's clock."""

    clock: SetClock | SetWeather | None = None
    at: float = 0.0
    weather: SetWeather | None = None

    def set(self, clock: SetClock | SetWeather, now: float) -> None:
        """Set the clock; the weather stays where none comes with it."""
        self.clock, self.at = clock, now
        if isinstance(clock, SetWeather):
            self.weather = clock

    def line(self, now: float) -> str:
        """Return time, temperature and sky: `14:03  11 °C  rain`."""
        parts = []
        if self.clock is not None:
            time = datetime.fromtimestamp(self.clock.local_s + int(now - self.at), UTC)
            parts.append(time.strftime("%I:%M %p" if self.clock.twelve_hour else "%H:%M"))
        if self.weather is not None:
            celsius, fahrenheit = self.weather.celsius, self.weather.fahrenheit
            degrees = f"{round(celsius * 9 / 5 + 32)} °F" if fahrenheit else f"{celsius} °C"
            sky = self.weather.sky
            parts += [degrees] + [sky.value.replace("_", " ")] * (sky is not Sky.UNKNOWN)
        return "  ".join(parts)


def rows(
    face: Face,
    layout: DashboardLayout,
    pane: DashboardPane,
    settings: Mapping[str, Any],
    now: float,
) -> list[str]:
    """Return the rows: the clock's, and below it what the chosen pane has."""
    first = face.line(now)
    if layout is DashboardLayout.MINIMAL:
        return [first]
    if pane is DashboardPane.CALENDAR:
        return [first, *("  ".join(filter(None, entry)) for entry in settings.get("calendar", []))]
    if pane is DashboardPane.NOTES:
        written = [settings[key] for key in sorted(settings) if key.startswith("note ")]
        return [first, *(": ".join(filter(None, note)) for note in written if note)]
    return [first] if pane is DashboardPane.EMPTY else [first, pane.value]
