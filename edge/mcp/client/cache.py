"""The lists of tools that other servers gave last, on disk: a restart without a network still lists
them.

Refuses to judge what stands in them, and to lose a start over them: a file that is not whole is
none.
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
    """One server's list as it came. `asked` tells of which server: what is kept of another
    address is not this one's.
    """

    asked: str
    wall: float
    tools: tuple[Mapping[str, Json], ...]


class ListCache:
    """One file. Both methods block: they are for a thread, or for a start."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, CachedList]:
        """Give what was kept, by server; what cannot be read is as if it had never been."""
        try:
            with self._path.open("rb") as file:
                return _read(file.read(MAX_BYTES + 1))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            log.warning(
                "the kept lists of other servers' tools cannot be read (%s): they are listed again",
                e,
            )
            return {}

    def save(self, kept: Mapping[str, CachedList]) -> None:
        """Replace the file whole. A disk that takes nothing costs that, and nothing else."""
        servers = {
            name: {
                "asked": one.asked,
                "wall": one.wall,
                "tools": [dict(tool) for tool in one.tools],
            }
            for name, one in kept.items()
        }
        raw = json.dumps({"version": VERSION, "servers": servers}, separators=(",", ":")).encode()
        if len(raw) > MAX_BYTES:
            log.warning(
                "other servers' tools are %d bytes, too many to keep for a start without a network",
                len(raw),
            )
            return
        try:
            write_atomic(self._path, raw)
        except OSError as e:
            log.warning(
                "other servers' tools cannot be kept for a start without a network: %s", e.strerror
            )


def _read(raw: bytes) -> dict[str, CachedList]:
    if len(raw) > MAX_BYTES:
        raise ValueError("too large")
    document = json.loads(raw)
    if document["version"] != VERSION:
        raise ValueError("another version")
    return {str(name): _kept(one) for name, one in document["servers"].items()}


def _kept(one: Mapping[str, Json]) -> CachedList:
    tools = one["tools"]
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("a list of tools is none")
    return CachedList(str(one["asked"]), float(one["wall"]), tuple(tools))
