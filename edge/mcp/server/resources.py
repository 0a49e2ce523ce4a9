"""What an MCP client can read beside calling tools: the registry, each tool's documentation, the
lens as a picture, the status.

Refuses to know MCP's messages and the socket: plain dicts in MCP's words, and a `get` that is
handed in. An alias is looked up, never parsed (C-05).
"""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from tools_cache.names import alias

Get = Callable[[str], Awaitable[Any]]
"""Asks the control socket: path (`/v1/…`) → the JSON of its answer. Raises what its owner
raises; that is passed on.
"""
REGISTRY: Final = "registry://tools"
LENS: Final = "glasses://lens"
STATUS: Final = "glasses://status"
DOC: Final = "registry://tools/{alias}/doc"
_DOC_URI: Final = re.compile(r"registry://tools/([^/?#]{1,255})/doc")
MAX_COMPLETIONS: Final = 100
"""MCP's own bound on `completion/complete`."""


class NoResource(Exception):
    """There is no such resource; MCP's answer is -32602 (2026-07-28) or -32002 (2025-11-25)."""


class CannotRead(Exception):
    """It is there and cannot be read now: the text says why, and what would help."""


def list_resources() -> list[dict[str, Any]]:
    """Those with a fixed address, in MCP's form."""
    return [
        {
            "uri": LENS,
            "name": "lens",
            "title": "The lens",
            "mimeType": "image/png",
            "description": (
                "What the glasses show now, drawn from what they "
                "acknowledged. A dark picture is a dark lens."
            ),
        },
        {
            "uri": STATUS,
            "name": "status",
            "title": "The glasses",
            "mimeType": "application/json",
            "description": (
                "Link, model, battery, worn or not, what they can do, "
                "the network, and what a person should do next."
            ),
        },
        {
            "uri": REGISTRY,
            "name": "tools",
            "title": "The tools in force",
            "mimeType": "application/json",
            "description": (
                "Every tool that can be called now: its name here and its "
                "canonical one, what it does, how it is guarded."
            ),
        },
    ]


def list_templates() -> list[dict[str, Any]]:
    """Those with a place to fill in, in MCP's form."""
    return [
        {
            "uriTemplate": DOC,
            "name": "tool documentation",
            "title": "One tool's documentation",
            "mimeType": "text/markdown",
            "description": (
                "All that is written of one tool: preconditions, failure modes, "
                "examples. `alias` is its name in tools/list."
            ),
        }
    ]


def doc_uri(name: str) -> str:
    """Where the documentation of a canonical tool name is read, for a `resource_link`."""
    return DOC.replace("{alias}", quote(alias(name), safe=""))


async def read_resource(uri: str, get: Get) -> dict[str, Any]:
    """Give MCP's contents, `{uri, mimeType, text | blob}`. Raises `NoResource`, `CannotRead`,
    and what `get` raises.
    """
    if uri == REGISTRY:
        return _json(uri, _registry(await get("/v1/tools")))
    if uri == STATUS:
        return _json(uri, _status(await get("/v1/status")))
    if uri == LENS:
        return {
            "uri": uri,
            "mimeType": "image/png",
            "blob": base64.b64encode(await _lens(get)).decode(),
        }
    if (found := _DOC_URI.fullmatch(uri)) is not None:
        return {
            "uri": uri,
            "mimeType": "text/markdown",
            "text": await _documentation(unquote(found.group(1)), get),
        }
    raise NoResource(f"Unknown resource: {uri[:200]}")


async def complete(value: str, get: Get) -> list[str]:
    """The aliases that begin so, for `completion/complete` of the template's `alias`."""
    names = sorted(alias(tool["name"]) for tool in _tools(await get("/v1/tools")))
    return [name for name in names if name.startswith(value)][:MAX_COMPLETIONS]


def _json(uri: str, document: Any) -> dict[str, Any]:
    return {
        "uri": uri,
        "mimeType": "application/json",
        "text": json.dumps(document, ensure_ascii=False, indent=1),
    }


# ------------------------------------------------------------------ the registry


def _tools(told: Any) -> Iterable[Mapping[str, Any]]:
    """The tools in force of `GET /v1/tools`; what is hidden cannot be called."""
    return (tool for tool in told["tools"] if not tool.get("hidden"))


def _registry(told: Any) -> dict[str, Any]:
    return {
        "version": told["version"],
        "tools": [
            {
                "name": alias(tool["name"]),
                "canonical": tool["name"],
                "summary": tool.get("summary") or tool["description"],
                "category": tool["category"],
                "source": tool["source"],
                "sideEffects": tool["sideEffects"],
                "requiresConfirmation": tool["requiresConfirmation"],
                "allowedModes": tool["allowedModes"],
                "state": tool["state"],
                "doc": doc_uri(tool["name"]),
            }
            for tool in _tools(told)
        ],
    }


async def _documentation(told: str, get: Get) -> str:
    """The alias or the canonical name of any tool of the registry, hidden ones too: why it is
    hidden is worth reading.
    """
    names = [tool["name"] for tool in (await get("/v1/tools?all=true"))["tools"]]
    name = {**{alias(name): name for name in names}, **{name: name for name in names}}.get(told)
    if name is None:
        raise NoResource(f"Unknown tool: {told[:100]}")
    one = await get(f"/v1/tools/one?tool={quote(name, safe='')}")
    return one.get("documentation") or f"# {name}\n\n{one.get('summary') or one['description']}\n"


# ------------------------------------------------------------------ the glasses


def _status(told: Mapping[str, Any]) -> dict[str, Any]:
    """What concerns an agent: no address. What to do next is a word for people, as `glassd
    status` has it, and may name a file of theirs.
    """
    glasses, link, uplink = told["glasses"], told["link"], told["uplink"]
    able = {
        key: value.get("value") if isinstance(value, Mapping) else value
        for key, value in glasses["capabilities"].items()
    }
    kept = ("state", "model", "firmware", "battery", "worn", "stale")
    return {
        "version": told["version"],
        "glasses": {**{key: glasses[key] for key in kept}, "capabilities": able},
        "link": {key: link[key] for key in ("state", "reason", "issue", "hint")},
        "network": {"state": uplink["state"], "reason": uplink["reason"]},
        "next_action": told["next_action"],
    }


async def _lens(get: Get) -> bytes:
    lens, status = await asyncio.gather(get("/v1/lens?exact=true"), get("/v1/status"))
    return await asyncio.to_thread(_drawn, lens, status["glasses"]["capabilities"])


def _drawn(lens: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bytes:
    try:
        from firmware_bridge.sim.lens import draw_png  # noqa: PLC0415 - Pillow comes with the extra, at the first look
    except ImportError as e:
        raise CannotRead(
            f"The lens cannot be drawn: {e.name} is not installed (pip install 'glassd[sim]')"
        ) from None
    return draw_png(lens, capabilities)
