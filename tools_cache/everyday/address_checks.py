"""Checks addresses and places in the settings of tools. Raises ValueError, which names the fix."""

from typing import Final
from urllib.parse import urlsplit

MAX_URL: Final = 500
_SCHEMES: Final = ("http", "https")


def check_url(url: str, *, empty: bool = False) -> str:
    """Return the address of a service, without a slash at its end."""
    if empty and not url:
        return url
    try:
        parts = urlsplit(url)
        good = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
    except ValueError:
        parts, good = None, None
    wrong = not url.isprintable() or " " in url or len(url) > MAX_URL
    if not parts or not good or wrong or parts.query or parts.fragment:
        raise ValueError("is no address of a service: write one like https://example.com/api")
    return url.rstrip("/")


def split_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    digits = port.isascii() and port.isdigit() and len(port) <= 5
    if not host or not host.isprintable() or " " in host or not digits or not 0 < int(port) < 65536:
        raise ValueError("is no address: write HOST:PORT, for example localhost:2947")
    return host, int(port)


def check_address(text: str) -> str:
    """Return `HOST:PORT`; "" is not set."""
    if text:
        split_address(text)
    return text


def check_home(latitude: float | None, longitude: float | None) -> None:
    """Check the place of the settings: both numbers of it, or none."""
    if (latitude is None) != (longitude is None):
        raise ValueError("set both latitude and longitude, or neither")
    if latitude is not None and not -90 <= latitude <= 90:
        raise ValueError("latitude must be from -90 to 90 degrees")
    if longitude is not None and not -180 <= longitude <= 180:
        raise ValueError("longitude must be from -180 to 180 degrees")
