"""Our tools for MCP clients: the list, and the table in which a called name is found (alias and
canonical name are both keys). Pure: from rows of `GET /v1/tools`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools_cache import names
from tools_cache.api.tool import Delivery
from tools_cache.errors import BadToolName

META: Final = "io.glassd/"
"""The prefix of our keys in `_meta`."""
OFFERED: Final = "offered"
_EMPTY: Final = {"type": "object", "additionalProperties": False}
_OWN_DATA: Final = frozenset({"local", "glasses"})
"""Sources that reach nothing beyond this device and its glasses."""
OUTPUT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What the wearer got, in words."},
        "result": {"description": "The data of a tool that returns no object."},
        "delivery": {
            "type": "object",
            "description": "How far it got on the glasses; absent if nothing was to be shown.",
            "properties": {
                "state": {"type": "string", "enum": [s.value for s in Delivery]},
                "reason": {"type": "string", "description": "Why not further."},
                "downgrade": {"type": "string", "description": "What replaced what."},
                "callId": {
                    "type": "string",
                    "description": "get_pending_result with this id gives a later state.",
                },
            },
            "required": ["state"],
        },
        "next": {"type": "string", "description": "How to get the answer if this is not it yet."},
    },
}
"""The output schema of our tools that declare none: their data, and how far it got."""
_META_FIELDS: Final = {
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
    """One tool: `alias` is its name for clients, `name` its canonical name."""

    alias: str
    name: str
    shaped: bool = False
    """Whether it has an output schema."""
    as_object: bool = False
    """Whether that is the schema of an object, which older clients understand."""
    ours: bool = False
    """Whether it has the output schema of all our tools."""
    repeatable: bool = False
    """Whether a second call does no harm."""
    schema: Row = field(default_factory=dict)
    """The schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The tools at one moment. `listed` are MCP tool objects; `table` has hidden ones too, whose
    call says why they are hidden.
    """

    listed: tuple[dict[str, Any], ...] = ()
    table: Mapping[str, KnownTool] = field(default_factory=dict)
    version: str = ""


def alias_of(literal: Collection[str] = ()) -> Callable[[str], str]:
    """Return the encoder of names; tools of a package in `literal` keep their own names."""

    def alias(name: str) -> str:
        package, tool = names.parse(name)
        return tool if package in literal else names.alias(name)

    return alias


def tools_of(
    rows: Iterable[Row], *, alias: Callable[[str], str] = names.alias, version: str = ""
) -> ToolTable:
    """Return list and table, in the order of the canonical names. A tool whose name is invalid or
    taken is left out.
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
                not shape and row.get("source") in _OWN_DATA,
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
    """Return one tool for `tools/list`. Invalid parts of the author's metadata are left out: a
    client would refuse the whole list for one.
    """
    title, icons = row.get("title"), row.get("icons")
    ours = {
        META + key: row[of]
        for of, key in _META_FIELDS.items()
        if row.get(of) not in (None, "", False)
    }
    written = {
        key: value
        for key, value in _mapping(row.get("annotations")).items()
        if isinstance(value, _HINTS.get(key, object))
    }
    tool = {
        "name": alias,
        "title": title if isinstance(title, str) else None,
        "description": row["description"],
        "inputSchema": row.get("inputSchema") or _EMPTY,
        "outputSchema": _output(row),
        "icons": [icon for icon in icons if _is_icon(icon)] if isinstance(icons, list) else None,
        "annotations": {**_annotations(row), **written},
        "_meta": {**_mapping(row.get("_meta")), **ours},
    }
    return {key: value for key, value in tool.items() if value is not None}


def _output(row: Row) -> Mapping[str, Any] | None:
    """Return the author's schema, else ours for a tool of this device, else None."""
    ours = OUTPUT if row.get("source") in _OWN_DATA else None
    return _mapping(row.get("outputSchema")) or ours


def _annotations(row: Row) -> dict[str, bool]:
    """Return hints from our own metadata."""
    writes = row.get("sideEffects") == "writes"
    hints = {"readOnlyHint": not writes, "openWorldHint": row.get("source") not in _OWN_DATA}
    if writes:
        hints["destructiveHint"] = row.get("requiresConfirmation") != "never"
        hints["idempotentHint"] = row.get("idempotent") is True
    return hints


def _is_icon(written: Any) -> bool:
    icon = {"sizes": [], "mimeType": "", "theme": "light", **_mapping(written)}
    sized = isinstance(icon["sizes"], list) and all(isinstance(size, str) for size in icon["sizes"])
    texts = isinstance(icon.get("src"), str) and isinstance(icon["mimeType"], str)
    return texts and sized and icon["theme"] in ("light", "dark")


def _mapping(written: Any) -> Mapping[str, Any]:
    return written if isinstance(written, Mapping) else {}
