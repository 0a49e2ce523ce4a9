"""The other servers' tools in a running daemon: it puts their lists into the registry, sends calls,
and describes each server to people.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from edge.core.results import repeatable
from edge.core.tools import mcp_tools
from edge.core.tools.user_tools import ServerDefinition
from edge.mcp.client.cache import CachedList, ListCache
from edge.mcp.client.client import UpstreamClient
from edge.mcp.client.models import McpServer, Outcome, ServerNews, Status
from edge.mcp.client.results import remove_secrets, response_of
from edge.mcp.client.state import (
    ProgressRelay,
    ServerState,
    Wanted,
    describe,
    digest,
    hide_secrets,
    raw,
)
from edge.mcp.client.wearer_questions import WearerQuestions, converse
from edge.ports import Progress
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, ServerChanged
from edge.runtime.first_completed import race
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolResponse
from tools_cache.registry.models import App, Dropped

FIRST_S: Final = 0.25
"""The server's deadline is so much before the call's own, so that the reason is reported."""
ANSWER: Final = 2 * 1024 * 1024
"""Bytes of one answer: a picture of 1.5 MB. The calls' table holds 16 MiB of answers."""
MAX_CACHED: Final = 64
"""Servers whose last list is stored; twice as many as may be configured."""
SETTLES_S: Final = 45.0
RELIST_S: Final = 3.0
"""A connected server lists its tools in milliseconds; an unchanged list is no news."""

log = logging.getLogger(__name__)
UseTools = Callable[[Sequence[App], Mapping[str, str], str], tuple[Dropped, ...]]
"""`ToolRegistry.use_upstream`."""
SignIn = Callable[[str, str, str], Awaitable[None]]
"""(server id, title, URL): show it to the wearer."""


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
        wearer: WearerQuestions | None = None,
    ) -> None:
        self._client = client
        self._use = use
        self._shelf = shelf
        self._bus = bus
        self._clock = clock
        self._tokens = tokens
        self._note = note
        self._sign_in = sign_in
        self._wearer = wearer
        self._known: dict[str, ServerState] = {}
        self._cached: dict[str, CachedList] = {}
        self._origins: dict[str, tuple[str, str]] = {}
        self._refused: tuple[Dropped, ...] = ()
        self._changed = asyncio.Event()
        self._has_new_list = asyncio.Event()
        self._in_trouble: set[str] = set()
        self._sign_ins: dict[str, str] = {}
        """Server → address to sign in at; `_unshown`: those that were not shown yet."""
        self._unshown: dict[str, str] = {}
        self._has_unshown = asyncio.Event()

    # -------------------------------------------------------------- for the daemon

    def load(self) -> None:
        """Read the stored lists. Call it once, before the first `take`; blocking."""
        self._cached = self._shelf.load()

    def take(self, wanted: Iterable[Wanted]) -> None:
        """Use these servers from now on; what is known of unchanged ones stays."""
        fresh: dict[str, ServerState] = {}
        for one in wanted:
            name, before = one.server.name, self._known.get(one.server.name)
            if before is not None and before.wanted.ready is not None and before.wanted == one:
                fresh[name] = before
            else:
                fresh[name] = self._new_state(one, before)
        for gone in self._known.keys() - fresh.keys():
            self._end_sign_in(gone)
            self._in_trouble.discard(gone)
        self._known = fresh
        self._changed.set()
        self._publish()

    def _new_state(self, one: Wanted, before: ServerState | None) -> ServerState:
        """Begin with the known or stored list, if it is of the same server."""
        asked = mcp_tools.fingerprint(one.server)
        away = mcp_tools.unavailable(one.server, one.why) if one.why else ""
        if before is not None and mcp_tools.fingerprint(before.wanted.server) == asked:
            old, new = before.wanted.ready, one.ready
            if old is not None and new is not None and self._config(old) == self._config(new):
                # its connection stays
                return ServerState(one, before.listed, before.wall, before.news, before.away)
            return ServerState(one, before.listed, before.wall, away=away)
        cached = self._cached.get(one.server.name)
        if cached is None or cached.asked != asked:
            return ServerState(one, away=away)
        return ServerState(one, cached.tools, cached.wall, away=away)

    async def run(self) -> None:
        """Run the client and follow its news, until cancelled."""
        self._changed.set()
        await race(
            self._client.run(), self._listen(), self._configure(), self._store(), self._show()
        )

    async def _configure(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            ready = [known.wanted.ready for known in self._known.values()]
            await self._client.configure([self._config(one) for one in ready if one is not None])

    def _config(self, ready: ServerDefinition) -> McpServer:
        return McpServer(
            id=ready.name,
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
        """Return every server for people, without secrets."""
        taken, wall = {one.name: one.reason for one in self._refused}, self._clock.wall()
        return [
            describe(known, self._sign_ins.get(name, ""), wall, refused=taken)
            for name, known in sorted(self._known.items())
        ]

    # -------------------------------------------------------------- calls

    async def call(self, call: ToolCall, tool: ToolDefinition, progress: Progress) -> ToolResponse:
        """Call the tool at its server. Raises nothing but cancellation, which is passed on."""
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
        relay, outcomes = ProgressRelay(progress, wanted.secrets), list[Outcome]()
        title = wanted.server.title or wanted.server.name

        send = partial(
            self._client.call,
            *found,
            call.args,
            call_id=call.call_id,
            idempotent=repeatable(tool),
            on_progress=relay.put,
        )

        async def ask() -> None:
            life_s = max(limit_s / 2, limit_s - FIRST_S)
            outcomes.append(
                await converse(send, self._wearer, call=call, server=title, life_s=life_s)
            )

        try:
            await race(ask(), relay.run())
            return remove_secrets(response_of(outcomes[0], tool, server=title), wanted.secrets)
        except Exception:  # a server's answer must not end the service that runs all calls
            log.exception("unexpected error in the answer of %s to %s", found[0], call.call_id)
            return ToolResponse.failure(
                ErrorCode.HANDLER_ERROR,
                f"Internal error executing {call.tool}",
                partial_side_effects=not repeatable(tool),
            )

    # -------------------------------------------------------------- for people

    async def refresh(self, server: str) -> bool:
        """List its tools again and wait for the result; False if it is not in use."""
        known = self._known.get(server)
        if known is None or known.wanted.ready is None:
            return False
        known.updated.clear()
        await self._client.refresh(server)
        connected = known.news is not None and known.news.status is Status.CONNECTED
        await self._wait(known, RELIST_S if connected else SETTLES_S)
        return True

    async def authorize(self, server: str, code: str, state: str, iss: str | None = None) -> bool:
        """Finish its authorization and wait for the result; False if none is under way."""
        known = self._known.get(server)
        if known is None or known.news is None or known.news.status is not Status.AUTHORIZING:
            return False
        known.updated.clear()
        await self._client.authorize(server, code, state, iss=iss)
        await self._wait(known, SETTLES_S)
        return True

    async def _wait(self, known: ServerState, most_s: float) -> None:
        """Wait for news of the result; there are none of an unchanged list."""
        with suppress(TimeoutError):
            async with timeout(most_s):
                while True:
                    await known.updated.wait()
                    if known.news is not None and known.news.status is not Status.LOADING:
                        return
                    known.updated.clear()

    # -------------------------------------------------------------- news

    async def _listen(self) -> None:
        async for news in self._client.events():
            known = self._known.get(news.server)
            if known is not None and known.wanted.ready is not None:
                self._update(known, hide_secrets(news, known.wanted.secrets))

    def _update(self, known: ServerState, news: ServerNews) -> None:
        before, known.news = known.news, news
        if news.available or news.status is Status.AUTHORIZING:
            known.away = ""
        elif news.status is Status.DISCONNECTED and (
            before is None or before.status is not Status.CONNECTED
        ):
            # The next call replaces a lost connection; only one that cannot be made takes the
            # tools away.
            known.away = mcp_tools.unavailable(known.wanted.server, news.error)
        if news.tools is not None and (listed := tuple(map(raw, news.tools))) != known.listed:
            known.listed, known.admitted = listed, None
            self._has_new_list.set()
        if news.status is Status.CONNECTED:
            known.wall = self._clock.wall()
        announced = attrgetter("status", "error", "authorize_url")
        if before is None or announced(before) != announced(news):
            self._announce(known.wanted.server, news)
        known.updated.set()
        self._publish()

    def _announce(self, server: ServerDefinition, news: ServerNews) -> None:
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
        if news.status not in {Status.AUTHORIZING, Status.LOADING}:
            self._end_sign_in(name)
        elif news.authorize_url and self._sign_ins.get(name) != news.authorize_url:
            self._sign_ins[name] = self._unshown[name] = news.authorize_url
            self._has_unshown.set()
            text = f"{server.title or name} wants you to sign in: glassd servers authorize {name}"
            self._bus.publish(Alarmed(f"server.{name}", text))

    def _end_sign_in(self, name: str) -> None:
        self._unshown.pop(name, None)
        if self._sign_ins.pop(name, None) is not None:
            self._bus.publish(Alarmed(f"server.{name}", "the sign-in is over", over=True))

    async def _show(self) -> None:
        """Show each sign-in to the wearer, one after the other."""
        while True:
            await self._has_unshown.wait()
            self._has_unshown.clear()
            while self._unshown and self._sign_in is not None:
                name, url = self._unshown.popitem()
                server = self._known[name].wanted.server
                try:
                    await self._sign_in(name, server.title or name, url)
                except Exception:
                    log.exception("the sign-in of %s cannot be shown", name)

    # -------------------------------------------------------------- the registry

    def _publish(self) -> None:
        """Put the lists into the registry; log and audit the tools that it newly refuses."""
        apps: list[App] = []
        away: dict[str, str] = {}
        origins: dict[str, tuple[str, str]] = {}
        for name, known in self._known.items():
            if (found := known.admit()) is None or not found.origins:
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

    async def _store(self) -> None:
        """Store the lists for a start without a network, each time one of them changed."""
        while True:
            await self._has_new_list.wait()
            self._has_new_list.clear()
            self._cached |= {
                name: CachedList(
                    mcp_tools.fingerprint(known.wanted.server),
                    known.wall or self._clock.wall(),
                    known.listed,
                )
                for name, known in self._known.items()
                if known.listed is not None
            }
            newest = sorted(self._cached.items(), key=lambda item: item[1].wall, reverse=True)
            self._cached = dict(newest[:MAX_CACHED])  # those of disabled servers too
            await asyncio.to_thread(self._shelf.save, self._cached)
