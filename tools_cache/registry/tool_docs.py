"""Information about a tool on demand: its summary, policy and documentation.

Documentation is read from its file on each request and not kept in memory.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from tools_cache.api.tool import Json, Source
from tools_cache.registry.models import BUILD_KEY

SUMMARY_KEY: Final = "io.glassd/summary"
DOCUMENTATION_KEY: Final = "io.glassd/documentation"
"""Key under which a tool from elsewhere may carry its documentation, as text."""
MAX_DOCUMENTATION: Final = 64 * 1024
"""Maximum characters of documentation given to a model."""
_FOLDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}")


class DocumentedTool(Protocol):
    """The parts of a definition used here; `tools_cache.api.tool.ToolDefinition` has them."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def source(self) -> Source: ...
    @property
    def requires_confirmation(self) -> str: ...
    @property
    def raw(self) -> Mapping[str, Json]: ...


def summary(tool: DocumentedTool) -> str:
    """Return the author's summary, else the description."""
    written = _meta(tool).get(SUMMARY_KEY)
    return written if isinstance(written, str) and written else tool.description


def documentation(tool: DocumentedTool, tools: Path) -> str | None:
    """Return the documentation of a tool, or None if there is none. Reads a file in `tools` for a
    local tool: blocking.

    Only local tools name a folder; a folder named by a cloud is ignored.
    """
    if tool.source not in (Source.LOCAL, Source.GLASSES):
        carried = _meta(tool).get(DOCUMENTATION_KEY)
        return carried[:MAX_DOCUMENTATION] if isinstance(carried, str) and carried else None
    folder = folder_of(tool, tools)
    if folder is None:
        return None
    try:
        with (folder / "doc.md").open(encoding="utf-8") as file:
            return file.read(MAX_DOCUMENTATION)
    except (OSError, UnicodeDecodeError):
        return None


def folder_of(tool: DocumentedTool, tools: Path) -> Path | None:
    """Return a local tool's folder, in `tools` or in the owner's package; None if it names none."""
    build = _meta(tool).get(BUILD_KEY)
    if not isinstance(build, Mapping):
        return None
    return _path(build.get("at"), build.get("folder"), tools)


@lru_cache(maxsize=256)
def _path(at: Json, folder: Json, tools: Path) -> Path | None:
    """Return the folder; each call of a tool asks for it."""
    if isinstance(at, str) and at:
        return Path(at)
    return tools / folder if isinstance(folder, str) and _FOLDER.fullmatch(folder) else None


def metadata(tool: Json) -> dict[str, Json]:
    """Return the eight policy fields of a `ToolDefinition`."""
    return {
        "toolId": tool.name,
        "version": tool.version,
        "category": tool.category,
        "sideEffects": tool.side_effects.value,
        "idempotent": tool.idempotent,
        "requiresConfirmation": tool.requires_confirmation,
        "allowedModes": sorted(mode.value for mode in tool.allowed_modes),
        "latencyBudgetMs": tool.latency_budget_ms,
    }


def of_category(tools: Iterable[DocumentedTool], category: str) -> list[str]:
    """Return the names of the tools in one category, in order."""
    return [tool.name for tool in tools if tool.category == category]


def _meta(tool: DocumentedTool) -> Mapping[str, Json]:
    meta = tool.raw.get("_meta")
    return meta if isinstance(meta, Mapping) else {}
