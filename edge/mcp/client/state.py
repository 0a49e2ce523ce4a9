"""What is known of one other server: its configuration, its last list, its state; and how that is
shown without secrets.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from edge.core.tools import mcp_tools, templates
from edge.core.tools.mcp_tools import Admitted
from edge.core.tools.user_tools import ServerDefinition
from edge.mcp.client.models import NOTHING, ServerNews, ServerProgress, Status, UpstreamTool
from edge.ports import Progress
from tools_cache.api.tool import Json
from tools_cache.registry.models import App

NAMED: Final = 100
"""Tools listed in the description of a server."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One server as configured (`server`, with its templates), and with secrets filled in
    (`ready`), or why that is not possible.
    """

    server: ServerDefinition
    ready: ServerDefinition | None = field(default=None, repr=False)
    why: str = ""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(slots=True, eq=False)
class ServerState:
    """`listed` is its last list as it came, `wall` its time; `away` is why its tools cannot be
    called now.
    """

    wanted: Wanted
    listed: tuple[Mapping[str, Json], ...] | None = None
    wall: float | None = None
    news: ServerNews | None = None
    away: str = ""
    admitted: Admitted | None = None
    updated: asyncio.Event = field(default_factory=asyncio.Event)

    def admit(self) -> Admitted | None:
        """Return what of its list is allowed in; None before there was a list."""
        if self.admitted is None and self.listed is not None:
            self.admitted = mcp_tools.admitted(self.wanted.server, self.listed)
        return self.admitted


def raw(tool: UpstreamTool) -> dict[str, Json]:
    """Return a tool in MCP's form."""
    optional: dict[str, Any] = {
        "title": tool.title,
        "outputSchema": tool.output_schema,
        "annotations": dict(tool.annotations),
        "_meta": dict(tool.meta),
    }
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        **{key: value for key, value in optional.items() if value},
    }


def hide_secrets(news: ServerNews, secrets: frozenset[str]) -> ServerNews:
    """Remove the owner's secrets from what a server reports: it is shown, logged, and sent to
    models.
    """
    if not secrets:
        return news

    def bare(text: str) -> str:
        return str(templates.without_secrets(text, secrets))

    tools = news.tools and tuple(
        replace(tool, description=bare(tool.description), title=bare(tool.title))
        for tool in news.tools
    )
    return replace(
        news,
        error=bare(news.error),
        notes=tuple(map(bare, news.notes)),
        title=bare(news.title),
        version=bare(news.version),
        instructions=bare(news.instructions),
        tools=tools,
    )


def digest(apps: Iterable[App]) -> str:
    """Return a hash of what the servers offer, for the registry's version; "" for nothing."""
    tools = [(tool.name, tool.version, tool.description) for app in apps for tool in app.tools]
    return hashlib.sha256(repr(tools).encode("utf-8", "surrogatepass")).hexdigest() if tools else ""


# ------------------------------------------------------------------ description


def describe(
    known: ServerState, sign_in: str, wall: float, *, refused: Mapping[str, str] = NOTHING
) -> dict[str, Json]:
    """Return a server for people: its configuration holds names of secrets, not their values.
    `refused`: tools whose name is taken, and why.
    """
    server, news, found = known.wanted.server, known.news, known.admit()
    error = known.wanted.why or (news.error if news is not None else "")
    status = news.status if news is not None and not known.wanted.why else Status.DISCONNECTED
    offered = found.origins.keys() - refused.keys() if found else set[str]()
    description: dict[str, Json] = {
        "id": server.name,
        "name": server.title or server.name,
        "enabled": server.enabled,
        "status": status.value,
        "error": error,
        "config": _config(server),
        "allowed": sorted(server.allowed_tools),
        "tools": sorted(offered)[:NAMED],
        "not_allowed": sorted(found.not_allowed)[:NAMED] if found else [],
        "left_out": [
            *(f"{one.name}: {one.reason}" for one in (found.dropped if found else ())),
            *(
                f"{name}: {why}"
                for name, why in sorted(refused.items())
                if found and name in found.origins
            ),
            *(news.notes if news is not None else ()),
        ],
        "available": bool(offered) and not known.away,
        "listed_ago_s": None if known.wall is None else round(max(0.0, wall - known.wall), 1),
    }
    if sign_in:
        description["authorize_url"] = sign_in
    if news is not None and news.title:
        about = {"title": news.title, "version": news.version, "protocol": news.protocol}
        description["server"] = about
    return description


def _config(server: ServerDefinition) -> dict[str, Json]:
    """Arguments and addresses with a secret are masked; of `env` and `headers` only the names."""
    if server.command:
        args = [arg if not templates.secrets(arg) else "***" for arg in server.args]
        env = sorted(server.env)
        return {"command": server.command, "args": args, "env": env, "cwd": server.cwd}
    masked = "?" in server.url or templates.secrets(server.url)
    url = templates.origin(server.url) + "/…" if masked else server.url
    return {"url": url, "headers": sorted(server.headers)}


class ProgressRelay:
    """Passes progress from `put`, which does not wait, to `run`, which does; the latest wins."""

    def __init__(self, progress: Progress, secrets: frozenset[str] = frozenset()) -> None:
        self._progress = progress
        self._secrets = secrets
        self._text = ""
        self._changed = asyncio.Event()

    def put(self, step: ServerProgress) -> None:
        of = f" of {step.total:g}" if step.total is not None else ""
        self._text = step.message or f"{step.progress:g}{of}"
        self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._progress(str(templates.without_secrets(self._text, self._secrets)))
