"""The firmware update of OMI Glass, peripheral role: what it is told, and how it reports progress.

glassd updates no firmware; this is for other hosts of the simulator (`ota.cpp`, `config.h`).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

MAX_SSID: Final = 32
MAX_PASSWORD: Final = 64
MAX_ADDRESS: Final = 256
IDLE: Final = 0x00
CONNECTING: Final = 0x10
CONNECTED: Final = 0x11
DOWNLOADING: Final = 0x20
DOWNLOAD_FAILED: Final = 0x22
INSTALLING: Final = 0x30
INSTALLED: Final = 0x31
RESTARTING: Final = 0x40
ERROR: Final = 0xFF
STEP_S: Final = 0.1
"""Seconds from one report of progress to the next: the simulator downloads nothing."""
RESTART_S: Final = 2.0
PERCENTS: Final = range(0, 101, 5)
_SCHEMES: Final = (b"http://", b"https://")


class FirmwareUpdate:
    """One pair's update. `say` sends a report of two bytes; `restart` restarts the glasses."""

    def __init__(
        self,
        say: Callable[[bytes], None],
        *,
        short_address: bool = False,
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._say = say
        self._short = short_address
        self._restart = restart
        self._status = bytes([IDLE, 0])
        self._has_network = False
        self._address = b""
        self._steps: deque[bytes] = deque()
        self._due = 0.0

    @property
    def status(self) -> bytes:
        """What is read from the control: the status, and 0."""
        return bytes([self._status[0], 0])

    @property
    def due(self) -> float | None:
        """The time of the next report; None: nothing is under way."""
        return self._due if self._steps else None

    def receive(self, packet: bytes, now: float) -> None:
        """Take a command; what follows it in the packet is ignored."""
        match packet[:1]:
            case b"\x01":
                self._report(IDLE if self._take_network(packet[1:]) else ERROR)
            case b"\x05":
                self._report(IDLE if self._take_address(packet[1:]) else ERROR)
            case b"\x02":
                self._begin(now)
            case b"\x03":
                if self._steps:
                    self._steps = deque([bytes([IDLE, 0])])
            case b"\x04":
                self._say(self._status)
            case b"":
                pass
            case _:
                self._report(ERROR)

    def step(self, now: float) -> None:
        """Report what is due."""
        while self._steps and now >= self._due:
            if self._status[0] == RESTARTING:
                self._steps.clear()
                self._restart()
                return
            step = self._steps.popleft()
            self._report(*step)
            self._due = now + (RESTART_S if step[0] == RESTARTING else STEP_S)
            if step[0] == RESTARTING:
                self._steps.append(step)

    def _report(self, status: int, percent: int = 0) -> None:
        self._status = bytes([status, percent])
        self._say(self._status)

    def _take_network(self, rest: bytes) -> bool:
        size = rest[0] if len(rest) >= 2 else MAX_SSID + 1
        if size > MAX_SSID or len(rest) < 2 + size:
            return False
        password = rest[1 + size]
        if password > MAX_PASSWORD or len(rest) < 2 + size + password:
            return False
        self._has_network = True
        return True

    def _take_address(self, rest: bytes) -> bool:
        head = 1 if self._short else 2
        if len(rest) <= head:
            return False
        size = int.from_bytes(rest[:head], "big")
        if size > MAX_ADDRESS or len(rest) < head + size:
            return False
        self._address = rest[head : head + size]
        return True

    def _begin(self, now: float) -> None:
        if not (self._has_network and self._address):
            self._report(ERROR)
        elif not self._steps:
            steps = [bytes([status, 0]) for status in (CONNECTING, CONNECTED, DOWNLOADING)]
            if self._address.startswith(_SCHEMES):
                steps += [bytes([INSTALLING, percent]) for percent in PERCENTS]
                steps += [bytes([INSTALLED, 100]), bytes([RESTARTING, 0])]
            else:
                steps.append(bytes([DOWNLOAD_FAILED, 0]))
            self._steps, self._due = deque(steps), now
