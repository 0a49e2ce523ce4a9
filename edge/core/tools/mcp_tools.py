"""Converts the tool list of another MCP server: which tools, their names, and what is believed.

A server is not trusted about itself: what it says of its tools' effects is a hint until the owner
trusts it, its texts never replace ours, and tools that the owner did not allow are left out.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from edge.core.tools.scope import SERVER_KEY
from edge.core.tools.user_tools import EXECUTION_KEY, ServerDefinition
from tools_cache.api.tool import Json, SideEffects, Source, ToolDefinition
from tools_cache.frozen import Packed
from tools_cache.names import MAX_NAME
from tools_cache.registry.models import App, Dropped

EVERY: Final = "*"
"""In an allow-list: everything the server offers, now and later. Never assumed."""
MAX_TOOLS: Final = 500
"""Tools accepted of one server; models get lost in far fewer."""
MAX_DESCRIPTION: Final = 8000
SHOWN: Final = "card"
_TAIL: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class Admitted:
    """What was accepted of one server's list. `origins` maps our names to the server's; names are
    never parsed.
    """

    app: App
    origins: Mapping[str, str] = field(default_factory=dict)
    not_allowed: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def admitted(
    server: ServerDefinition,
    listed: Iterable[Mapping[str, Json]],
    *,
    problems: Mapping[str, str] | None = None,
) -> Admitted:
    """Accept what the owner allowed. `problems`: why tools (by the server's name) are unusable."""
    tools: list[ToolDefinition] = []
    origins: dict[str, str] = {}
    out: list[str] = []
    dropped: list[Dropped] = []
    for raw in listed:
        name = str(raw.get("name") or "")
        if EVERY not in server.allowed_tools and name not in server.allowed_tools:
            out.append(name)
            continue
        ours = canonical(server.name, name)
        why = (problems or {}).get(name) or _unusable(raw, ours, origins, len(tools))
        if why:
            dropped.append(Dropped(f"{server.name}:{name}"[:MAX_NAME], why))
            continue
        origins[ours] = name
        tools.append(definition(server, ours, raw))
    return Admitted(
        App(package=server.name, name=server.title or server.name, tools=tuple(tools)),
        origins,
        tuple(out),
        tuple(dropped),
    )


def _unusable(raw: Mapping[str, Json], ours: str, taken: Mapping[str, str], count: int) -> str:
    if count >= MAX_TOOLS:
        return f"more than {MAX_TOOLS} tools of this server: name those you use in allowed_tools"
    if ours in taken:
        return "the server offers two tools of this name; the first one stands"
    if not raw.get("name"):
        return "it has no name"
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its inputSchema describes no object"
    return ""


def canonical(server: str, tool: str) -> str:
    """Return our name of a tool, `server:tool`. If it has characters that names do not allow, or is
    too long, they are replaced and a hash of the name is added.
    """
    plain = f"{server}:{tool}"
    if (
        tool.isprintable()
        and not any(ch.isspace() or ch == ":" for ch in tool)
        and len(plain) <= MAX_NAME
    ):
        return plain
    tail = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_TAIL]
    room = MAX_NAME - len(server) - _TAIL - 2
    return f"{server}:{_ODD.sub('_', tool)[:room]}_{tail}"


def definition(server: ServerDefinition, name: str, raw: Mapping[str, Json]) -> ToolDefinition:
    """Convert one tool, with its author's texts, or a description that the owner wrote."""
    origin = str(raw["name"])
    described = _description(server, origin, raw)
    said = raw.get("_meta")
    meta: Mapping[str, Json] = said if isinstance(said, dict) else {}
    provenance = {"id": server.name, "name": server.title or server.name, "tool": origin}
    kept = Packed.of(
        {
            **raw,
            "name": name.partition(":")[2],
            "description": described,
            "_meta": {**meta, SERVER_KEY: provenance},
            EXECUTION_KEY: fingerprint(server),
        }
    )
    effects, idempotent = believed(raw.get("annotations"), trusted=server.trusted)
    return ToolDefinition(
        name=name,
        description=described,
        input_schema=kept.part("inputSchema"),
        source=Source.UPSTREAM,
        version=_version(raw),
        side_effects=effects,
        idempotent=idempotent,
        requires_confirmation=server.confirm,
        timeout_s=server.timeout_s,
        visible=server.visible,
        custom_ui=SHOWN,
        raw=kept,
    )


def _description(server: ServerDefinition, origin: str, raw: Mapping[str, Json]) -> str:
    """Return the owner's description, else the author's, after the owner's text for the server."""
    own = server.tool_prompts.get(origin, "")
    text = own or str(raw.get("description") or raw.get("title") or origin)
    return "\n".join(filter(None, (server.prompt, text)))[:MAX_DESCRIPTION]


def believed(annotations: Json, *, trusted: bool) -> tuple[SideEffects, bool]:
    """Return side effects and idempotency. An untrusted server's hints are ignored: the tool then
    writes, needs confirmation by policy, and is never run twice.
    """
    hints: Mapping[str, Any] = annotations if trusted and isinstance(annotations, Mapping) else {}
    if hints.get("readOnlyHint") is True:
        return SideEffects.READ_ONLY, True
    return SideEffects.WRITES, hints.get("idempotentHint") is True


def _version(raw: Mapping[str, Json]) -> str:
    """Return a version for the meta of answers: other servers' tools have none."""
    text = repr((raw.get("description"), raw.get("inputSchema"), raw.get("outputSchema")))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


# ------------------------------------------------------------------ the server


def fingerprint(server: ServerDefinition) -> str:
    """Return a hash of who is asked, without secrets, to tell whether a stored list is of the
    server that is configured now.
    """
    asked = (server.url, server.transport, server.command, server.args)
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:16]


def unavailable(server: ServerDefinition, why: str) -> str:
    """Return why a stored tool cannot be called now."""
    return f"its server {server.title or server.name} is away{why and f': {why}'}"
