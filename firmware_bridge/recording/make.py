"""Makes a recording of the events of `GET /v1/packets`: all of it is in memory until the end, so
that nothing is on disk before names, sound and photos are out of it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from firmware_bridge.recording.files import MAX_BYTES, Recording
from firmware_bridge.recording.lines import Header, Line
from firmware_bridge.recording.media import leave_out
from firmware_bridge.recording.names import anonymise

ROOM: Final = MAX_BYTES - 256 * 1024
"""Bytes of lines after which a recording is full: a file must stay readable."""
_PASSED: Final = frozenset(Line.__struct_fields__)


class RecordingMaker:
    """Collects lines. `full` once there is no more room for any."""

    def __init__(self) -> None:
        self.full = False
        self.packets = 0
        self.model = ""
        self._header: Header | None = None
        self._names: set[str] = set()
        self._lines: list[Line] = []
        self._began = 0.0
        self._bytes = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event; what comes before the first connection is left out. Raise `ValueError`."""
        if event.get("event") == "connected":
            self._connect(event)
        if self._header is None or self.full:
            return
        fields = {key: value for key, value in event.items() if key in _PASSED}
        line = msgspec.convert(fields, Line)
        self._append(replace(line, at=round(max(0.0, line.at - self._began), 6)))

    def _connect(self, event: Mapping[str, Any]) -> None:
        self._names |= {str(name) for name in event.get("names", ())}
        if self._header is None:
            self.model = str(event["model"])
            self._began = round(float(event["at"]), 6)
            mtu, version = int(event["mtu"]), str(event["glassd"])
            self._header = Header(1, self.model, mtu, version, clock=self._began)

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Add what the owner said, at the time of the last line."""
        self._append(Line(self._lines[-1].at if self._lines else 0.0, answer=dict(answer)))

    def _append(self, line: Line) -> None:
        self._bytes += len(msgspec.json.encode(line))
        self.full = self._bytes > ROOM
        if not self.full:
            self._lines.append(line)
            self.packets += line.is_packet

    def count(self, kind: str, **fields: str) -> int:
        """Return how often the glasses said this message, with these values in it."""
        wanted = {"type": kind, **fields}.items()
        return sum(wanted <= line.message.items() for line in self._lines if line.message)

    def know(self, *names: str) -> None:
        """Replace these names too."""
        self._names |= set(names)

    def recording(self, *, sound: bool = False, photos: bool = False) -> Recording | None:
        """Return it without names and without what is not wanted; None if no glasses connected."""
        if self._header is None:
            return None
        whole = Recording(replace(self._header, sound=sound, photos=photos), tuple(self._lines))
        lines: list[Line] = []
        for session in whole.sessions():
            lines += leave_out(session, sound=sound, photos=photos)
        return Recording(whole.header, tuple(anonymise(lines, self._names)))
