"""The last tool lists of other servers, on disk: a restart without a network still has them. A
damaged file counts as none.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge.runtime.files import write_atomic
from tools_cache.api.tool import Json

MAX_BYTES: Final = 16 * 1024 * 1024
VERSION: Final = 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedList:
    """One server's list as it came. `asked` is the server's fingerprint: the list of another
    address is not used.
    """

    asked: str
    wall: float
    tools: tuple[Mapping[str, Json], ...]


class ListCache:
    """One file. Both methods block: call them in a thread, or at startup."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, CachedList]:
        """Return the stored lists by server; {} if they cannot be read."""
        try:
            with self._path.open("rb") as file:
                return _read(file.read(MAX_BYTES + 1))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            log.warning("stored tool lists cannot be read (%s): servers are listed again", e)
            return {}

    def save(self, lists: Mapping[str, CachedList]) -> None:
        """Replace the file. A failure is logged."""
        servers = {
            name: {"asked": one.asked, "wall": one.wall, "tools": [dict(t) for t in one.tools]}
            for name, one in lists.items()
        }
        raw = json.dumps({"version": VERSION, "servers": servers}, separators=(",", ":")).encode()
        if len(raw) > MAX_BYTES:
            log.warning("tool lists are not stored: %d bytes are more than %d", len(raw), MAX_BYTES)
            return
        try:
            write_atomic(self._path, raw)
        except OSError as e:
            log.warning("tool lists cannot be stored for a start without a network: %s", e.strerror)


def _read(raw: bytes) -> dict[str, CachedList]:
    if len(raw) > MAX_BYTES:
        raise ValueError("too large")
    document = json.loads(raw)
    if document["version"] != VERSION:
        raise ValueError("another version")
    return {str(name): _parse(one) for name, one in document["servers"].items()}


def _parse(one: Mapping[str, Json]) -> CachedList:
    tools = one["tools"]
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("tools is not a list of objects")
    return CachedList(str(one["asked"]), float(one["wall"]), tuple(tools))
