"""The resources of the MCP server: the registry, each tool's documentation, the lens as a picture,
the status. An alias is looked up, never parsed.
"""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from edge.runtime.control_api import ToolPages
from tools_cache.names import alias

Get = Callable[[str], Awaitable[Any]]
"""Requests a path (`/v1/…`) of the control API → the JSON of the answer."""
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
    """It exists and cannot be read now: the text says why, and what would help."""


def list_resources() -> list[dict[str, Any]]:
    """Return those with a fixed address, in MCP's form."""
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
            "title": "The current tools",
            "mimeType": "application/json",
            "description": (
                "Every tool that can be called now: its name here and its "
                "canonical one, what it does, how it is guarded."
            ),
        },
    ]


def list_templates() -> list[dict[str, Any]]:
    """Return those with a variable in the address, in MCP's form."""
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
    """Return the address of a tool's documentation, by its canonical name."""
    return DOC.replace("{alias}", quote(alias(name), safe=""))


async def read_resource(uri: str, get: Get) -> dict[str, Any]:
    """Return MCP's contents, `{uri, mimeType, text | blob}`. Raises `NoResource`, `CannotRead`, and
    what `get` raises.
    """
    if uri in {REGISTRY, STATUS}:
        document = await (_registry if uri == REGISTRY else _status)(get)
        text = json.dumps(document, ensure_ascii=False, indent=1)
        return {"uri": uri, "mimeType": "application/json", "text": text}
    if uri == LENS:
        blob = base64.b64encode(await _lens(get)).decode()
        return {"uri": uri, "mimeType": "image/png", "blob": blob}
    if (found := _DOC_URI.fullmatch(uri)) is not None:
        text = await _documentation(unquote(found.group(1)), get)
        return {"uri": uri, "mimeType": "text/markdown", "text": text}
    raise NoResource(f"Unknown resource: {uri[:200]}")


async def list_tools(get: Get, **query: str) -> dict[str, Any]:
    """Return `GET /v1/tools` with the tools of all pages."""
    pages = ToolPages(query)
    while not pages.take(await get(pages.path)):
        pass
    return pages.document


async def complete(value: str, get: Get) -> list[str]:
    """Return the aliases that begin so."""
    names = sorted(alias(tool["name"]) for tool in _callable(await list_tools(get)))
    return [name for name in names if name.startswith(value)][:MAX_COMPLETIONS]


# ------------------------------------------------------------------ the registry


def _callable(answer: Any) -> Iterable[Mapping[str, Any]]:
    """Return the tools that can be called: not the hidden ones."""
    return (tool for tool in answer["tools"] if not tool.get("hidden"))


async def _registry(get: Get) -> dict[str, Any]:
    answer = await list_tools(get)
    same = ("category", "source", "sideEffects", "requiresConfirmation", "allowedModes", "state")
    tools = [
        {
            "name": alias(tool["name"]),
            "canonical": tool["name"],
            "summary": tool.get("summary") or tool["description"],
            **{key: tool[key] for key in same},
            "doc": doc_uri(tool["name"]),
        }
        for tool in _callable(answer)
    ]
    return {"version": answer["version"], "tools": tools}


async def _documentation(tool: str, get: Get) -> str:
    """Return the documentation of a tool by alias or canonical name, also of a hidden one: it says
    why it is hidden.
    """
    names = [tool["name"] for tool in (await list_tools(get, all="1"))["tools"]]
    name = tool if tool in names else {alias(name): name for name in names}.get(tool)
    if name is None:
        raise NoResource(f"Unknown tool: {tool[:100]}")
    one = await get(f"/v1/tools/one?tool={quote(name, safe='')}")
    return one.get("documentation") or f"# {name}\n\n{one.get('summary') or one['description']}\n"


# ------------------------------------------------------------------ the glasses


async def _status(get: Get) -> dict[str, Any]:
    """Return what concerns an agent, without addresses. `next_action` is for people, as in `glassd
    status`, and may name a file of theirs.
    """
    status = await get("/v1/status")
    glasses, link, uplink = status["glasses"], status["link"], status["uplink"]
    capabilities = {
        key: value.get("value") if isinstance(value, Mapping) else value
        for key, value in glasses["capabilities"].items()
    }
    shown = ("state", "model", "firmware", "battery", "worn", "stale")
    return {
        "version": status["version"],
        "glasses": {**{key: glasses[key] for key in shown}, "capabilities": capabilities},
        "link": {key: link[key] for key in ("state", "reason", "issue", "hint")},
        "network": {"state": uplink["state"], "reason": uplink["reason"]},
        "next_action": status["next_action"],
    }


async def _lens(get: Get) -> bytes:
    lens, status = await asyncio.gather(get("/v1/lens?exact=true"), get("/v1/status"))
    return await asyncio.to_thread(_draw, lens, status["glasses"]["capabilities"])


def _draw(lens: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bytes:
    try:
        from firmware_bridge.sim.lens import draw_png  # noqa: PLC0415 - Pillow comes with the extra, at the first look
    except ImportError as e:
        raise CannotRead(
            f"The lens cannot be drawn: {e.name} is not installed (pip install 'glassd[sim]')"
        ) from None
    return draw_png(lens, capabilities)
