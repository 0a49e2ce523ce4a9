"""Checks of the options of `glassd devcloud`: a typing mistake is reported before anything heavy is
loaded, and before any port or file is used.
"""

from typing import Final

from edge.cloud.mqtt.topics import check_word
from edge.devcloud.broker import parse_broker

MAX_PORT: Final = 65535


def check(*, http: str, broker: str | None, tenant: str, pool: str) -> None:
    """Raise ValueError for what cannot work."""
    check_word("tenant", tenant)
    check_word("pool", pool)
    parse_broker(broker or "embedded")
    split_address(http)


def split_address(http: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`. Raise ValueError."""
    host, colon, port = http.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"http: {http!r} is not HOST:PORT")
    return host.strip("[]"), int(port)
