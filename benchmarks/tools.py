"""Tools of a cloud, as many as wanted."""

import json
from typing import Any

from tools_cache.registry import manifest

CLOUD = "http://127.0.0.1:9"
"""The discard port: a cloud that is away, so that what is listed is what was cached."""


def document(apps: int, tools_each: int, *, displays: bool = True) -> bytes:
    """Return the registry as a cloud serves it. `displays`: every second app needs one."""
    listed = [
        {
            "packageName": f"com.example.app{a:03}",
            "name": f"App {a}",
            "hardwareRequirements": [{"type": "DISPLAY", "level": "REQUIRED"}]
            if displays and a % 2
            else [],
            "tools": [_tool(f"look_{t:02}") for t in range(tools_each)],
        }
        for a in range(apps)
    ]
    sha256 = manifest.digest(listed)
    return json.dumps({"version": f"1.0.{sha256[:8]}", "sha256": sha256, "apps": listed}).encode()


def _tool(name: str) -> dict[str, Any]:
    words = {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "What to look for, in the wearer's own words.",
    }
    limit = {
        "type": "integer",
        "minimum": 1,
        "maximum": 20,
        "default": 3,
        "description": "How many to give at most.",
    }
    return {
        "name": name,
        "description": (
            f"Finds things in the collection that {name} keeps, "
            "best match first, each with its place and age."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {"query": words, "top_k": limit},
            "required": ["query"],
            "additionalProperties": False,
        },
        "sideEffects": "read_only",
        "idempotent": True,
        "category": "retrieval",
        "mentraExtensions": {"activationPhrases": [f"find {name}"]},
    }
