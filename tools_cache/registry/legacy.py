"""Converts older registry forms: MentraOS tool schemas, and the flat list of `GET /api/tools`."""

from collections.abc import Mapping, Sequence

from tools_cache.api.tool import Json
from tools_cache.errors import BadDefinition


def migrate(document: Mapping[str, Json]) -> dict[str, Json]:
    """Convert a legacy ToolSchema (`id`, `parameters` by name); others are returned unchanged."""
    if "id" not in document or "name" in document or "inputSchema" in document:
        return dict(document)
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, dict) or not all(
        isinstance(p, dict) for p in parameters.values()
    ):
        raise BadDefinition("parameters: must map names to {type, description}")
    fields = ("type", "description", "enum")
    kept = {k: {f: p[f] for f in fields if f in p} for k, p in parameters.items()}
    schema: dict[str, Json] = {"type": "object", "properties": kept}
    required = [name for name, p in parameters.items() if p.get("required") is True]
    out: dict[str, Json] = {"name": document["id"], "description": document.get("description")}
    out["inputSchema"] = {**schema, "required": required} if required else schema
    if document.get("activationPhrases"):
        out["mentraExtensions"] = {"activationPhrases": document["activationPhrases"]}
    return out


def apps_of_list(tools: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """Group `{name: "package:tool", …}` by package; return (apps by name, other tools)."""
    packages: dict[str, list[Json]] = {}
    nameless = []
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        package, colon, local = name.partition(":") if isinstance(name, str) else ("", "", "")
        if colon and package and local:
            packages.setdefault(package, []).append({**tool, "name": local})
        else:
            nameless.append(tool)
    apps = [
        {"packageName": p, "name": p, "hardwareRequirements": [], "tools": t}
        for p, t in sorted(packages.items())
    ]
    return apps, nameless
