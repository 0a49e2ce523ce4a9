"""TLS to a broker: certificates read for each connection, the clock checked first.

There is no switch to connect without verification.
"""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from edge.cloud.mqtt.connection_types import BrokerOptions, ConnectionFailed, open_socket
from edge.cloud.mqtt.faults import BrokerVerdict, Fault, error_text, of_os_error

MakeContext = Callable[[], ssl.SSLContext]
"""Reads certificates and key, blocking, for each connection: renewed files serve the next one."""

CLOCK_FLOOR: Final = 1_767_225_600.0
"""1 January 2026, before this program was written; a machine without an RTC starts in 1970."""
LISTEN_S: Final = 2.0
"""How long a broker that hung up without a word is listened to once more."""


async def context(make: MakeContext | None, wall: float) -> ssl.SSLContext | None:
    """Make the next connection's context; None is plain TCP. Raise ConnectionFailed."""
    if make is None:
        return None
    if wall < CLOCK_FLOOR:
        raise ConnectionFailed(clock_wrong(wall))
    try:
        return await asyncio.get_running_loop().run_in_executor(None, make)
    except (OSError, ValueError) as error:
        # A key that does not fit its certificate is an SSLError too, and that one is an OSError.
        name = getattr(error, "filename", None) or ""
        detail = error_text(error) + (f": {name}" if name else "")
        raise ConnectionFailed(BrokerVerdict(Fault.TLS_FILES, detail)) from None


def clock_wrong(wall: float) -> BrokerVerdict:
    detail = f"the clock says {_moment(wall)}: waiting for time sync"
    fix = f"{detail[0].upper()}{detail[1:]} (timedatectl set-ntp true, or date -s)"
    return BrokerVerdict(Fault.CLOCK, detail, fix)


def dated(verdict: BrokerVerdict, wall: float) -> BrokerVerdict:
    """Say what our clock shows beside every verdict that depends on it."""
    if verdict.fault not in (Fault.TLS_EARLY, Fault.TLS_EXPIRED, Fault.TLS_CLIENT_EXPIRED):
        return verdict
    return replace(verdict, detail=f"{verdict.detail}; our clock says {_moment(wall)}")


def _moment(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M UTC")


async def explained(verdict: BrokerVerdict, o: BrokerOptions) -> BrokerVerdict:
    """Ask a broker that hung up over TLS without a word what it has against our certificate."""
    if verdict.fault is not Fault.NOT_MQTT5 or o.tls is None:
        return verdict
    error = await asyncio.get_running_loop().run_in_executor(None, _complaint, o)
    return verdict if error is None else of_os_error(error)


def _complaint(o: BrokerOptions) -> OSError | None:
    """Shake hands again and only listen, blocking: return what TLS says of our certificate.

    In TLS 1.3 the broker judges it after our handshake. If we sent CONNECT meanwhile, as a client
    does, the reset for those unread bytes would overtake the alert.
    """
    try:
        sock = open_socket(o)
    except OSError as error:
        return error
    try:
        sock.settimeout(LISTEN_S)
        sock.recv(1)
    except TimeoutError:
        return None
    except OSError as error:
        return error if isinstance(error, ssl.SSLError) else None
    finally:
        sock.close()
    return None
