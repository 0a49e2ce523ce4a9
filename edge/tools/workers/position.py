"""Where the device is: by a gpsd (its JSON protocol over TCP), else the place of the settings."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tools_cache.api.durations import ago
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.address_checks import split_address
from tools_cache.everyday.geography import on_earth

WITHIN_S: Final = 3.0
MAX_AGE_S: Final = 120.0
"""Seconds after which a position is no longer where the device is."""
MAX_LINE: Final = 16 * 1024
MAX_READ: Final = 256 * 1024
_WATCH: Final = b'?WATCH={"enable":true,"json":true};\n'


def here(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `{latitude, longitude, source}` of the device; None if nothing says it. `request` has
    the settings `gpsd`, `latitude` and `longitude`. Raises `ToolFailure` if only gpsd could say it
    and does not.
    """
    latitude, longitude = request.get("latitude"), request.get("longitude")
    home = on_earth(latitude, longitude)
    if address := str(request.get("gpsd") or ""):
        try:
            return by_gpsd(address)
        except ToolFailure:
            if not home:
                raise
    return {"latitude": latitude, "longitude": longitude, "source": "home"} if home else None


def by_gpsd(
    address: str, *, within_s: float = WITHIN_S, wall: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Return the position that a gpsd at HOST:PORT reports. Raises `ToolFailure`."""
    ends, old = time.monotonic() + within_s, ""
    try:
        with socket.create_connection(split_address(address), timeout=within_s) as connection:
            connection.sendall(_WATCH)
            for line in _lines(connection, ends):
                report = _fix_in(line)
                if report is None:
                    continue
                age_s = _age_s(report, wall())
                if age_s <= MAX_AGE_S:
                    return {
                        "latitude": report["lat"],
                        "longitude": report["lon"],
                        "source": "gpsd",
                    }
                old = f"; its last one is from {ago(age_s)} by the clock of this machine"
    except TimeoutError:
        raise _failure(address, f"reported no position within {within_s:.0f} s{old}") from None
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise _failure(address, f"cannot be reached: {why}") from None
    raise _failure(address, f"reported no position{old}")


def _lines(connection: socket.socket, ends: float) -> Iterator[bytes]:
    """Yield the lines that arrive until `ends`. Raises TimeoutError."""
    waiting, total = b"", 0
    while total < MAX_READ and len(waiting) <= MAX_LINE:
        left = ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(4096)
        if not part:
            return
        total += len(part)
        *lines, waiting = (waiting + part).split(b"\n")
        yield from lines


def _fix_in(line: bytes) -> dict[str, Any] | None:
    """Return a TPV report with a position, fixed in two or three dimensions."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("class") != "TPV":
        return None
    mode, latitude, longitude = (report.get(key) for key in ("mode", "lat", "lon"))
    fixed = isinstance(mode, int) and mode >= 2
    return report if fixed and on_earth(latitude, longitude) else None


def _age_s(report: Mapping[str, Any], now: float) -> float:
    """Return how old a report is; 0 if it does not say, or by a clock that is ahead of ours."""
    try:
        at = datetime.fromisoformat(report["time"])
        return max(0.0, now - at.timestamp())
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return 0.0


def _failure(address: str, what: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.NETWORK_ERROR,
        f"gpsd at {address} {what}",
        suggestion="Check that gpsd runs and its receiver sees the sky, or set latitude and "
        "longitude in the settings",
    )
