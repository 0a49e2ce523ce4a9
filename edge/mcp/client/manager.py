"""The other servers' tools in a running daemon: lists into the registry, calls out, and what a
person should know of each server.

Refuses to know settings, secrets' names and MCP itself: it is handed servers that are ready, and
speaks with the client.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge.core.results import repeatable
from edge.core.tools import mcp_tools
from edge.core.tools.user_tools import ServerDefinition
from edge.mcp.client.cache import CachedList, ListCache
from edge.mcp.client.client import UpstreamClient
from edge.mcp.client.models import McpServer, Outcome, ServerNews, Status
from edge.mcp.client.results import response_of, unsaid
from edge.mcp.client.state import (
    ListingPace,
    ServerState,
    Wanted,
    described,
    digest,
    raw,
    unsaid_news,
)
from edge.ports import Progress
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, ServerChanged
from edge.runtime.first_completed import race
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolResponse
from tools_cache.registry.models import App, Dropped

FIRST_S: Final = 0.25
"""So much earlier than the call's own end is the server's: then the reason is told, and not
only that time is over.
"""
ANSWER: Final = 2 * 1024 * 1024
"""Bytes of one answer: a picture of 1.5 MB. The store of calls keeps 16 MiB of the answered
past.
"""
KEPT: Final = 64
"""Servers whose last list is kept; twice what may be configured."""
SETTLES_S: Final = 45.0
RELIST_S: Final = 3.0
"""A server that is connected lists its tools in milliseconds, and tells nothing where they are
as they were.
"""

log = logging.getLogger(__name__)
UseTools = Callable[[Sequence[App], Mapping[str, str], str], tuple[Dropped, ...]]
"""`ToolRegistry.use_upstream`."""
SignIn = Callable[[str, str, str], Awaitable[None]]
"""(server's id, as people call it, URL): put it where the wearer can read it."""


class McpManager:
    """One per daemon, made with the first server. `note` writes a line of the audit log."""

    def __init__(
        self,
        client: UpstreamClient,
        *,
        use: UseTools,
        shelf: ListCache,
        bus: Bus,
        clock: Clock,
        tokens: Path,
        note: Callable[[Mapping[str, Json]], None] | None = None,
        sign_in: SignIn | None = None,
    ) -> None:
        self._client = client
        self._use = use
        self._shelf = shelf
        self._bus = bus
        self._clock = clock
        self._tokens = tokens
        self._note = note
        self._sign_in = sign_in
        self._known: dict[str, ServerState] = {}
        self._kept: dict[str, CachedList] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        self._refused: tuple[Dropped, ...] = ()
        self._changed = asyncio.Event()
        self._fresh = asyncio.Event()
        self._in_trouble: set[str] = set()
        self._signing: dict[str, str] = {}
        self._unshown: dict[str, str] = {}
        self._asked = asyncio.Event()

    # -------------------------------------------------------------- what the roof asks

    def load(self) -> None:
        """Read the kept lists. Once, before the first `take`; blocking."""
        self._kept = self._shelf.load()

    def take(self, wanted: Iterable[Wanted]) -> None:
        """These are the servers from now on; of those that are asked as before all is kept that
        is known.
        """
        fresh: dict[str, ServerState] = {}
        for one in wanted:
            name, before = one.server.name, self._known.get(one.server.name)
            if before is not None and before.wanted.ready is not None and before.wanted == one:
                fresh[name] = before
            else:
                fresh[name] = self._begun(one, before)
        for gone in self._known.keys() - fresh.keys():
            self._signed_in(gone)
            self._in_trouble.discard(gone)
        self._known = fresh
        self._changed.set()
        self._publish()

    def _begun(self, one: Wanted, before: ServerState | None) -> ServerState:
        """Begin with the list that was kept, where it is of this very server."""
        asked = mcp_tools.fingerprint(one.server)
        away = mcp_tools.unavailable(one.server, one.why) if one.why else ""
        if before is not None and mcp_tools.fingerprint(before.wanted.server) == asked:
            then, now = before.wanted.ready, one.ready
            if (
                then is not None and now is not None and self._spoken(then) == self._spoken(now)
            ):  # its connection stays
                return ServerState(one, before.listed, before.wall, before.news, before.away)
            return ServerState(one, before.listed, before.wall, away=away)
        kept = self._kept.get(one.server.name)
        listed, wall = (
            (kept.tools, kept.wall) if kept is not None and kept.asked == asked else (None, None)
        )
        return ServerState(one, listed, wall, away=away)

    async def run(self) -> None:
        """Keep the client at work and hear its news, until cancelled."""
        self._changed.set()
        await race(
            self._client.run(), self._listen(), self._configure(), self._keep(), self._show()
        )

    async def _configure(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._client.configure(
                [
                    self._spoken(ready)
                    for known in self._known.values()
                    if (ready := known.wanted.ready) is not None
                ]
            )

    def _spoken(self, ready: ServerDefinition) -> McpServer:
        """In the client's words."""
        return McpServer(
            id=ready.name,
            name=ready.title,
            command=ready.command,
            args=ready.args,
            env=dict(ready.env),
            cwd=ready.cwd,
            url=ready.url,
            headers=dict(ready.headers),
            ca_file=ready.ca_file,
            client_id=ready.client_id,
            client_secret=ready.client_secret,
            scope=ready.scope,
            idle_s=ready.idle_s,
            max_answer_bytes=ANSWER,
            tokens_file=str(self._tokens / f"{ready.name}.json") if ready.url else "",
        )

    def describe(self) -> list[dict[str, Json]]:
        """Every server as a person may see it; no secret is in it."""
        taken, wall = {one.name: one.reason for one in self._refused}, self._clock.wall()
        return [
            described(known, self._signing.get(name, ""), wall, refused=taken)
            for name, known in sorted(self._known.items())
        ]

    # -------------------------------------------------------------- calls

    async def call(self, call: ToolCall, tool: ToolDefinition, progress: Progress) -> ToolResponse:
        """Ask the server whose tool it is. Never raises, but for its own cancellation, which
        the server is told.
        """
        found = self._origins.get(call.tool)
        if found is None:
            return ToolResponse.failure(
                ErrorCode.TOOL_NOT_FOUND,
                f"Tool {call.tool} not found: its server does not offer it any more",
            )
        limit_s = min(tool.timeout_s, call.ttl_s)
        if limit_s <= 0:
            return ToolResponse.failure(
                ErrorCode.DEADLINE_EXPIRED, "The time for this call was over before it began"
            )
        wanted = self._known[found[0]].wanted
        pace, outcomes = ListingPace(progress, wanted.secrets), list[Outcome]()

        async def ask() -> None:
            outcomes.append(
                await self._client.call(
                    found[0],
                    found[1],
                    call.args,
                    call_id=call.call_id,
                    timeout_s=max(limit_s / 2, limit_s - FIRST_S),
                    idempotent=repeatable(tool),
                    input=call.input,
                    on_progress=pace.heard,
                )
            )

        try:
            await race(ask(), pace.tell())
            return unsaid(
                response_of(outcomes[0], tool, server=wanted.server.title or wanted.server.name),
                wanted.secrets,
            )
        # what a server brings us to stumble over ends one call, not the service that runs them all
        except Exception:
            log.exception("what %s answers to %s", found[0], call.call_id)
            return ToolResponse.failure(
                ErrorCode.HANDLER_ERROR,
                f"Internal error executing {call.tool}",
                partial_side_effects=not repeatable(tool),
            )

    # -------------------------------------------------------------- what a person asks

    async def refresh(self, server: str) -> bool:
        """Look at its tools anew, until it is settled; False when it is not one that is asked."""
        known = self._known.get(server)
        if known is None or known.wanted.ready is None:
            return False
        known.heard.clear()
        await self._client.refresh(server)
        connected = known.news is not None and known.news.status is Status.CONNECTED
        await self._settled(known, RELIST_S if connected else SETTLES_S)
        return True

    async def authorize(self, server: str, code: str, state: str, iss: str | None = None) -> bool:
        """Finish its authorization, until it is settled; False when none is under way."""
        known = self._known.get(server)
        if known is None or known.news is None or known.news.status is not Status.AUTHORIZING:
            return False
        known.heard.clear()
        await self._client.authorize(server, code, state, iss=iss)
        await self._settled(known, SETTLES_S)
        return True

    async def _settled(self, known: ServerState, patience_s: float) -> None:
        """Wait for news that say how it ended; a list that is as it was brings none."""
        with suppress(TimeoutError):
            async with timeout(patience_s):
                while True:
                    await known.heard.wait()
                    if known.news is not None and known.news.status is not Status.LOADING:
                        return
                    known.heard.clear()

    # -------------------------------------------------------------- news

    async def _listen(self) -> None:
        async for news in self._client.events():
            known = self._known.get(news.server)
            if known is not None and known.wanted.ready is not None:
                self._hear(known, unsaid_news(news, known.wanted.secrets))

    def _hear(self, known: ServerState, news: ServerNews) -> None:
        before, known.news = known.news, news
        if news.available or news.status is Status.AUTHORIZING:
            known.away = ""
        elif news.status is Status.DISCONNECTED and (
            before is None or before.status is not Status.CONNECTED
        ):
            # A connection that was lost is made again by the next call (S1-31); only one that
            # cannot be made takes the tools away.
            known.away = mcp_tools.unavailable(known.wanted.server, news.error)
        if news.tools is not None and (listed := tuple(map(raw, news.tools))) != known.listed:
            known.listed, known.admitted = listed, None
            self._fresh.set()
        if news.status is Status.CONNECTED:
            known.wall = self._clock.wall()
        if before is None or (before.status, before.error, before.authorize_url) != (
            news.status,
            news.error,
            news.authorize_url,
        ):
            self._tell(known.wanted.server, news)
        known.heard.set()
        self._publish()

    def _tell(self, server: ServerDefinition, news: ServerNews) -> None:
        name = server.name
        if news.error and name not in self._in_trouble:
            self._in_trouble.add(name)
            log.warning("server %s is %s: %s", name, news.status.value, news.error)
        elif news.status is Status.CONNECTED and name in self._in_trouble:
            self._in_trouble.discard(name)
            log.info("server %s is connected again", name)
        else:
            log.debug("server %s is %s %s", name, news.status.value, news.error)
        self._bus.publish(ServerChanged(name, news.status.value, len(news.tools or ()), news.error))
        if news.status is not Status.AUTHORIZING:
            if news.status is not Status.LOADING:
                self._signed_in(name)
            return
        if news.authorize_url and self._signing.get(name) != news.authorize_url:
            self._signing[name] = self._unshown[name] = news.authorize_url
            self._asked.set()
            self._bus.publish(
                Alarmed(
                    f"server.{name}",
                    f"{server.title or name} wants you to sign in: glassd servers authorize {name}",
                )
            )

    def _signed_in(self, name: str) -> None:
        self._unshown.pop(name, None)
        if self._signing.pop(name, None) is not None:
            self._bus.publish(Alarmed(f"server.{name}", "the sign-in is over", over=True))

    async def _show(self) -> None:
        """Put each sign-in where the wearer can read it, one after the other."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            while self._unshown and self._sign_in is not None:
                name, url = self._unshown.popitem()
                server = self._known[name].wanted.server
                try:
                    await self._sign_in(name, server.title or name, url)
                except Exception:
                    log.exception("the sign-in of %s cannot be shown", name)

    # -------------------------------------------------------------- into the registry

    def _publish(self) -> None:
        """Put what is known into the registry, and tell what of it is refused when that is news
        (C-17).
        """
        apps: list[App] = []
        away: dict[str, str] = {}
        origins: dict[str, tuple[str, str]] = {}
        for name, known in self._known.items():
            if (found := known.judged()) is None or not found.origins:
                continue
            apps.append(found.app)
            origins |= {ours: (name, theirs) for ours, theirs in found.origins.items()}
            away |= dict.fromkeys(found.origins, known.away) if known.away else {}
        self._origins = origins
        refused = self._use(apps, away, digest(apps))
        if refused == self._refused:
            return
        for one in set(refused) - set(self._refused):
            log.warning("other servers: %s is refused: %s", one.name, one.reason)
            if self._note is not None:
                self._note({"toolId": one.name, "outcome": "refused", "reason": one.reason})
        self._refused = refused

    async def _keep(self) -> None:
        """Keep the lists for a start without a network, each time one of them changed."""
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            self._kept |= {
                name: CachedList(
                    mcp_tools.fingerprint(known.wanted.server),
                    known.wall or self._clock.wall(),
                    known.listed,
                )
                for name, known in self._known.items()
                if known.listed is not None
            }
            newest = sorted(self._kept.items(), key=lambda kept: kept[1].wall, reverse=True)[
                :KEPT
            ]  # of those switched off too
            self._kept = dict(newest)
            await asyncio.to_thread(self._shelf.save, self._kept)
