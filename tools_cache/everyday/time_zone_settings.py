"""The setting `timezone` of a tool. Imported only by `config.py` files, never by the daemon."""

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator


def check_zone(name: str) -> str:
    """Return the name; "" means the wearer's zone. Raise ValueError if it is not known here."""
    try:
        return ZoneInfo(name).key if name else name
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is not a known time zone; give an IANA name such as Europe/Berlin"
        ) from None


TimeZoneName = Annotated[str, AfterValidator(check_zone)]
