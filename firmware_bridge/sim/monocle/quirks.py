"""Variants of the simulated Monocle.

glassd's own program is the same in all of them.
"""

from collections.abc import Mapping
from typing import Any, Final

QUIRKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "mtu": {"256": {}, "128": {}},
    "running": {"nothing": {}, "other-program": {}, "glassd": {}},
}
"""`mtu`: that of the firmware, or what brilliant-monocle-driver 0.1.3 expects. `running`: what runs
when the glasses are switched on; another program is main.py.
"""
