"""Notify systemd: ready, alive, reloading, stopping. Without systemd, or on failure, do nothing."""

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

log = logging.getLogger(__name__)

MAX_STATUS: Final = 200
"""Characters of the line `systemctl status` shows."""


class Notifier:
    """The sd_notify(3) protocol on `$NOTIFY_SOCKET`, a path or (`@…`) an abstract name."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        pid: int | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._address = _address(env.get("NOTIFY_SOCKET", ""))
        self._monotonic_ns = monotonic_ns
        self._warned = False
        self.watchdog_s = _watchdog_s(env, os.getpid() if pid is None else pid)
        """Longest time between two `watchdog()`, None without a watchdog. Ping at a third of it."""

    @property
    def enabled(self) -> bool:
        return self._address is not None

    def ready(self, status: str = "") -> None:
        self._send("READY=1", *_status(status))

    def status(self, text: str) -> None:
        self._send(*_status(text))

    def watchdog(self) -> None:
        self._send("WATCHDOG=1")

    def reloading(self, status: str = "") -> None:
        """Say that a reload began; `ready()` ends it."""
        now = f"MONOTONIC_USEC={self._monotonic_ns() // 1000}"
        self._send("RELOADING=1", now, *_status(status))

    def stopping(self, status: str = "") -> None:
        self._send("STOPPING=1", *_status(status))

    def _send(self, *lines: str) -> None:
        if self._address is None or not lines:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.setblocking(False)
                out.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except (OSError, ValueError) as e:
            level = logging.DEBUG if self._warned else logging.WARNING
            log.log(level, "systemd cannot be notified of %s: %s", lines[0], e)
            self._warned = True
        else:
            self._warned = False


def _address(value: str) -> str | None:
    """Accept what sd_notify(3) does: an absolute path, or @ for the abstract namespace."""
    if len(value) < 2 or value[0] not in "/@":
        return None
    return "\0" + value[1:] if value[0] == "@" else value


def _watchdog_s(env: Mapping[str, str], pid: int) -> float | None:
    """Read the interval, if it is meant for this process and not for its parent."""
    usec, for_pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not (usec.isascii() and usec.isdecimal()) or for_pid not in {"", str(pid)}:
        return None
    return int(usec[:18]) / 1e6 or None


def _status(text: str) -> tuple[str, ...]:
    """Keep a status on its one line: a line end in it would begin another word of the protocol."""
    return (f"STATUS={' '.join(text.split())[:MAX_STATUS]}",) if text.strip() else ()
