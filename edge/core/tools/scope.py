"""Which tools of other servers a caller may use: those it mentions, else those it is allowed.

An empty list means different things on purpose: mentions add (none: everything), an allow-list
restricts (none: nothing); a scope with neither allows nothing. Tools of this device and of the
cloud are not filtered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.tool import Json, Source, ToolDefinition
from tools_cache.frozen import FrozenDict

SERVER_KEY: Final = "io.glassd/server"
"""Key in a tool's `_meta`: its server, `{id, name, tool}`; `tool` is its name there."""
MAX_MENTIONS: Final = 256
_KEYS: Final = ("mentions", "allowedMcpServers")
_SERVER: Final = "mcpServer"
_TOOL: Final = "mcpTool"


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention; of kinds other than servers and tools only the number counts."""

    kind: str
    server: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What one caller requested; None: not given."""

    mentions: tuple[Mention, ...] | None = None
    allowed: Mapping[str, frozenset[str]] | None = None

    @classmethod
    def of(cls, value: Json) -> "Scope":
        """Read `{mentions?: [{type, serverId?, name?}], allowedMcpServers?: {ID: {tools?:
        [NAME]}}}`. Raises ValueError with field, problem and fix.
        """
        if not isinstance(value, Mapping):
            raise ValueError("scope: must be an object")
        if unknown := next((key for key in value if key not in _KEYS), None):
            raise ValueError(f"scope.{str(unknown)[:40]}: unknown key; known: {', '.join(_KEYS)}")
        mentions, allowed = value.get(_KEYS[0]), value.get(_KEYS[1])
        return cls(
            None
            if mentions is None
            else tuple(_mention(number, one) for number, one in enumerate(_listed(mentions))),
            None if allowed is None else _allowed(allowed),
        )


def _listed(mentions: Json) -> list[Json]:
    if not isinstance(mentions, list) or len(mentions) > MAX_MENTIONS:
        raise ValueError(f"scope.mentions: must be a list of at most {MAX_MENTIONS}")
    return mentions


def _mention(number: int, one: Json) -> Mention:
    where = f"scope.mentions.{number}"
    if not isinstance(one, Mapping) or not isinstance(one.get("type"), str):
        raise ValueError(
            f"{where}: must be an object with a type, "
            f'for example {{"type": "{_SERVER}", "serverId": "files"}}'
        )
    kind = str(one["type"])
    for key in {_SERVER: ("serverId",), _TOOL: ("serverId", "name")}.get(kind, ()):
        if not isinstance(one.get(key), str) or not one[key]:
            raise ValueError(f"{where}.{key}: must be text; a mention of type {kind} needs it")
    return Mention(kind, str(one.get("serverId") or ""), str(one.get("name") or ""))


def _allowed(allowed: Json) -> Mapping[str, frozenset[str]]:
    if not isinstance(allowed, Mapping) or not all(
        isinstance(one, Mapping) for one in allowed.values()
    ):
        raise ValueError(
            "scope.allowedMcpServers: must be an object, "
            'for example {"files": {"tools": ["read_file"]}}'
        )
    found = {}
    for server, one in allowed.items():
        tools = one.get("tools", [])
        if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools):
            raise ValueError(
                f"scope.allowedMcpServers.{str(server)[:63]}.tools: must be a list of tool names"
            )
        found[str(server)] = frozenset(tools)
    return FrozenDict(found)


# ------------------------------------------------------------------ the filters


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """The server of a tool, and its name there; the server's display name does not matter."""

    server: str
    tool: str


def origin(tool: ToolDefinition) -> ToolOrigin | None:
    """Return where a tool of another server is from; None for ours and the cloud's."""
    if tool.source is not Source.UPSTREAM:
        return None
    server = (tool.raw.get("_meta") or {}).get(SERVER_KEY) or {}
    return ToolOrigin(str(server.get("id", "")), str(server.get("tool", "")))


def by_mentions(
    origins: Iterable[ToolOrigin], mentions: Iterable[Mention]
) -> tuple[ToolOrigin, ...]:
    """Keep what is mentioned: servers with all their tools, and single tools. Without mentions
    everything is kept; mentions of other kinds alone keep nothing.
    """
    given = tuple(mentions)
    if not given:
        return tuple(origins)
    whole = {one.server for one in given if one.kind == _SERVER}
    single = {(one.server, one.name) for one in given if one.kind == _TOOL}
    return tuple(one for one in origins if one.server in whole or (one.server, one.tool) in single)


def by_allowed(
    origins: Iterable[ToolOrigin], allowed: Mapping[str, frozenset[str]] | None
) -> tuple[ToolOrigin, ...]:
    """Keep what is named, server and tool; an empty list keeps nothing."""
    named = allowed or {}
    return tuple(one for one in origins if one.tool in named.get(one.server, frozenset()))


def within(scope: Scope, origins: Iterable[ToolOrigin]) -> tuple[ToolOrigin, ...]:
    """Filter by the mentions if there are any, else by the allow-list."""
    if scope.mentions is None:
        return by_allowed(origins, scope.allowed)
    return by_mentions(origins, scope.mentions)


def admits(scope: Scope | None, tool: ToolDefinition) -> bool:
    """Return whether a caller of this scope may use this tool; None: a caller without a scope."""
    found = origin(tool)
    return scope is None or found is None or bool(within(scope, (found,)))
