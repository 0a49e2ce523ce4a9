"""What is known of one other server: as it is wanted, as it was listed, as it fares; and how that
is told without a secret.

Refuses to ask anybody and to decide anything.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from edge.core.tools import mcp_tools, templates
from edge.core.tools.mcp_tools import Admitted
from edge.core.tools.user_tools import ServerDefinition
from edge.mcp.client.models import NOTHING, ServerNews, ServerProgress as Said, Status, UpstreamTool
from edge.ports import Progress
from tools_cache.api.tool import Json
from tools_cache.registry.models import App

NAMED: Final = 100
"""Tools named in a description of a server."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One server as it is configured (`server`, its templates unfilled), and ready to be asked,
    or why it is not.
    """

    server: ServerDefinition
    ready: ServerDefinition | None = field(default=None, repr=False)
    why: str = ""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(slots=True, eq=False)
class ServerState:
    """`listed` is its last list as it came, `wall` when it was seen; `away` says why its tools
    cannot be called now.
    """

    wanted: Wanted
    listed: tuple[Mapping[str, Json], ...] | None = None
    wall: float | None = None
    news: ServerNews | None = None
    away: str = ""
    admitted: Admitted | None = None
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def judged(self) -> Admitted | None:
        """What of its list comes in; None before there was a list."""
        if self.admitted is None and self.listed is not None:
            self.admitted = mcp_tools.admitted(self.wanted.server, self.listed)
        return self.admitted


def raw(tool: UpstreamTool) -> dict[str, Json]:
    """A tool as MCP writes it."""
    optional: dict[str, Any] = {
        "title": tool.title,
        "outputSchema": tool.output_schema,
        "annotations": dict(tool.annotations),
        "_meta": dict(tool.meta),
    }
    told = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
    }
    return {**told, **{key: value for key, value in optional.items() if value}}


def unsaid_news(news: ServerNews, secrets: frozenset[str]) -> ServerNews:
    """Take the owner's secrets out of what a server says of itself: it is shown, logged, and
    told to models.
    """
    if not secrets:
        return news

    def bare(text: str) -> str:
        return str(templates.without_secrets(text, secrets))

    tools = (
        None
        if news.tools is None
        else tuple(
            replace(tool, description=bare(tool.description), title=bare(tool.title))
            for tool in news.tools
        )
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
    """Name what the servers offer, for the registry's version; "" when that is nothing."""
    told = [(tool.name, tool.version, tool.description) for app in apps for tool in app.tools]
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest() if told else ""


# ------------------------------------------------------------------ telling it


def described(
    known: ServerState, sign_in: str, wall: float, *, refused: Mapping[str, str] = NOTHING
) -> dict[str, Json]:
    """A server as a person may see it (S1-38): how it is asked with its secrets' names, not their
    values. `refused`: tools whose name is taken, and why.
    """
    server, news, found = known.wanted.server, known.news, known.judged()
    error = known.wanted.why or (news.error if news is not None else "")
    told: dict[str, Json] = {
        "id": server.name,
        "name": server.title or server.name,
        "enabled": server.enabled,
        "status": (
            news.status if news is not None and not known.wanted.why else Status.DISCONNECTED
        ).value,
        "error": error,
        "config": _config(server),
        "allowed": sorted(server.allowed_tools),
        "tools": sorted(found.origins.keys() - refused.keys())[:NAMED] if found else [],
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
        "available": bool(found and found.origins.keys() - refused.keys()) and not known.away,
        "listed_ago_s": None if known.wall is None else round(max(0.0, wall - known.wall), 1),
    }
    if sign_in:
        told["authorize_url"] = sign_in
    if news is not None and news.title:
        told["server"] = {"title": news.title, "version": news.version, "protocol": news.protocol}
    return told


def _config(server: ServerDefinition) -> dict[str, Json]:
    """Texts that hold a secret hold its name only; of all others that could be one, the name is
    enough.
    """
    if server.command:
        args = [arg if not templates.secrets(arg) else "***" for arg in server.args]
        return {
            "command": server.command,
            "args": args,
            "env": sorted(server.env),
            "cwd": server.cwd,
        }
    return {
        "url": templates.origin(server.url) + "/…"
        if "?" in server.url or templates.secrets(server.url)
        else server.url,
        "headers": sorted(server.headers),
    }


class ListingPace:
    """Hands progress on: `heard` is called in the middle of things, `tell` waits for whoever
    takes it. Only the last counts.
    """

    def __init__(self, progress: Progress, secrets: frozenset[str] = frozenset()) -> None:
        self._progress = progress
        self._secrets = secrets
        self._text = ""
        self._news = asyncio.Event()

    def heard(self, said: Said) -> None:
        of = f" of {said.total:g}" if said.total is not None else ""
        self._text = said.message or f"{said.progress:g}{of}"
        self._news.set()

    async def tell(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._progress(str(templates.without_secrets(self._text, self._secrets)))
