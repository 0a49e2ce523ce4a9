"""Our tools as MCP tells of them: the list a client gets, and the table by which a called name is
found.

Refuses to parse a name (C-05): the alias and the canonical name are both keys of one table. Pure:
rows of `GET /v1/tools` in.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools_cache import names
from tools_cache.errors import BadToolName

META: Final = "io.glassd/"
"""Before every key of ours in `_meta`."""
OFFERED: Final = "offered"
_EMPTY: Final = {"type": "object", "additionalProperties": False}
_OWN_DATA: Final = frozenset({"local", "glasses"})
"""Sources that reach nothing beyond this device and its glasses."""
_TOLD: Final = {
    "name": "toolId",
    "version": "version",
    "category": "category",
    "allowedModes": "allowedModes",
    "source": "source",
    "latencyBudgetMs": "latencyBudgetMs",
    "requiresConfirmation": "requiresConfirmation",
    "stale": "stale",
}
"""Fields of a row → their keys in `_meta`."""

_HINTS: Final[Mapping[str, type]] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KnownTool:
    """One tool: how clients call it, what the daemon calls it, whether its results promise a form
    (`as_object`: one that older clients are told too), and whether a second call does no harm.
    """

    alias: str
    name: str
    shaped: bool = False
    as_object: bool = False
    repeatable: bool = False
    schema: Row = field(default_factory=dict)
    """Of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The tools of one moment. `listed` are MCP tool objects; `table` finds hidden ones too,
    whose call says why they are.
    """

    listed: tuple[dict[str, Any], ...] = ()
    table: Mapping[str, KnownTool] = field(default_factory=dict)
    version: str = ""

    def find(self, name: str) -> KnownTool | None:
        return self.table.get(name)


def alias_of(literal: Collection[str] = ()) -> Callable[[str], str]:
    """Make the encoder; tools of a package in `literal` keep their own names (a test suite's,
    which asks for them so).
    """

    def alias(name: str) -> str:
        package, tool = names.parse(name)
        return tool if package in literal else names.alias(name)

    return alias


def tools_of(
    rows: Iterable[Row], *, alias: Callable[[str], str] = names.alias, version: str = ""
) -> ToolTable:
    """Make list and table, in the order of the canonical names. A name that cannot be told, or
    is taken, costs itself only.
    """
    listed: list[dict[str, Any]] = []
    table: dict[str, KnownTool] = {}
    for row in sorted(rows, key=lambda row: str(row["name"])):
        try:
            again = row.get("sideEffects") != "writes" or row.get("idempotent") is True
            shape = _mapping(row.get("outputSchema"))
            known = KnownTool(
                alias(row["name"]),
                row["name"],
                bool(shape),
                shape.get("type") == "object",
                again,
                _mapping(row.get("inputSchema")) or _EMPTY,
            )
        except BadToolName:
            continue
        if known.alias in table or known.name in table:
            continue
        table[known.alias] = table[known.name] = known
        if row.get("state", OFFERED) == OFFERED and not row.get("hidden"):
            listed.append(tool(row, known.alias))
    return ToolTable(tuple(listed), table, version)


def tool(row: Row, alias: str) -> dict[str, Any]:
    """One tool as `tools/list` tells it; the author's words as they were written, as far as MCP has
    a place for them: one that it has not would cost a client the whole list.
    """
    title, icons = row.get("title"), row.get("icons")
    told = {
        "name": alias,
        "title": title if isinstance(title, str) else None,
        "description": row["description"],
        "inputSchema": row.get("inputSchema") or _EMPTY,
        "outputSchema": _mapping(row.get("outputSchema")) or None,
        "icons": [icon for icon in icons if _is_icon(icon)] if isinstance(icons, list) else None,
        "annotations": {**_annotations(row), **_hints(row.get("annotations"))},
        "_meta": {
            **_mapping(row.get("_meta")),
            **{
                META + key: row[of]
                for of, key in _TOLD.items()
                if row.get(of) not in (None, "", False)
            },
        },
    }
    return {key: value for key, value in told.items() if value is not None}


def _annotations(row: Row) -> dict[str, bool]:
    """Hints from our own metadata (facts/mcp.md §2)."""
    writes = row.get("sideEffects") == "writes"
    hints = {"readOnlyHint": not writes, "openWorldHint": row.get("source") not in _OWN_DATA}
    if writes:
        hints["destructiveHint"] = row.get("requiresConfirmation") != "never"
        hints["idempotentHint"] = row.get("idempotent") is True
    return hints


def _hints(written: Any) -> dict[str, Any]:
    return {
        key: value
        for key, value in _mapping(written).items()
        if isinstance(value, _HINTS.get(key, object))
    }


def _is_icon(written: Any) -> bool:
    icon = {"sizes": [], "mimeType": "", "theme": "light", **_mapping(written)}
    sized = isinstance(icon["sizes"], list) and all(isinstance(size, str) for size in icon["sizes"])
    return (
        isinstance(icon.get("src"), str)
        and isinstance(icon["mimeType"], str)
        and sized
        and icon["theme"] in ("light", "dark")
    )


def _mapping(written: Any) -> Mapping[str, Any]:
    return written if isinstance(written, Mapping) else {}
