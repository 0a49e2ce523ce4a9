"""Other MCP servers: which are configured, their secrets, and their manager.

Nothing of it is loaded for a daemon without servers. Implements `ServersPort`.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from edge.config.model import MAX_SERVERS, McpServerConfig, Settings, read_secret
from edge.config.validators import BadSettings
from edge.control.dependencies import NoServer
from edge.core.tools.user_tools import Own, Secret, ServerDefinition
from edge.ports import AskPort, Progress
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.paths import Env
from edge.tools.registry import ToolRegistry
from tools_cache.api.tool import Json, ToolCall, ToolDefinition, ToolResponse
from tools_cache.frozen import FrozenDict
from tools_cache.registry.models import Dropped

if TYPE_CHECKING:
    from edge.mcp.client.manager import McpManager
    from edge.mcp.client.state import Wanted

SWITCHED_OFF: Final = "all tools are switched off (policy.tools_enabled)"

log = logging.getLogger(__name__)
Present = Callable[[str, ToolResponse], Awaitable[object]]
"""`RenderPort.present`: (scene, what)."""
Draw = Callable[[str], Awaitable[str]]
"""`Pictures.code`."""


@dataclass(eq=False, repr=False)
class McpServers:
    """`use` after each read of the configuration; `run` is the service; `call` runs their tools."""

    registry: ToolRegistry
    _: KW_ONLY
    state: Path
    env: Env
    bus: Bus
    clock: Clock
    hide: Callable[[str], None]
    present: Present
    draw: Draw
    ask: AskPort
    ready: Callable[[], bool]
    """Whether the glasses are there."""
    note: Callable[[Mapping[str, Json]], None] | None = None
    _off: tuple[ServerDefinition, ...] = field(default=(), init=False)
    _manager: "McpManager | None" = field(default=None, init=False)
    _opened: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def use(self, own: Own, settings: Settings, secret: Secret) -> tuple[Dropped, ...]:
        """Use these servers; return those whose name is taken. `secret` returns secrets by name; a
        server's `secret_files` come first.
        """
        wanted, taken = joined(settings, own)
        on = [server for server in wanted if server.enabled and settings.policy.tools_enabled]
        self._off = tuple(server for server in wanted if server not in on)
        if on and self._manager is None:
            self._manager = self._create_manager()
            self._opened.set()
        if self._manager is not None:
            self._manager.take([self._prepare(server, secret) for server in on])
        return taken

    def _create_manager(self) -> "McpManager":
        from edge.mcp.client.cache import ListCache  # noqa: PLC0415 - as above
        from edge.mcp.client.client import UpstreamClient  # noqa: PLC0415 - a daemon without servers never loads it
        from edge.mcp.client.manager import McpManager  # noqa: PLC0415 - as above
        from edge.mcp.client.wearer_questions import WearerQuestions  # noqa: PLC0415 - as above

        tokens = self.state / "upstream"
        tokens.mkdir(mode=0o700, exist_ok=True)
        client = UpstreamClient(chance=random.random, now=self.clock.boot, environment=self.env)
        manager = McpManager(
            client,
            use=self.registry.use_upstream,
            shelf=ListCache(self.state / "upstream.json"),
            bus=self.bus,
            clock=self.clock,
            tokens=tokens,
            note=self.note,
            sign_in=self._sign_in,
            wearer=WearerQuestions(self.ask, self.ready),
        )
        manager.load()
        return manager

    def _prepare(self, server: ServerDefinition, secret: Secret) -> "Wanted":
        from edge.core.tools.user_tools import ready_server  # noqa: PLC0415 - as above
        from edge.mcp.client.state import Wanted  # noqa: PLC0415 - as above

        try:
            ready, secrets = ready_server(server, _from_files(server, secret))
        except (ValueError, BadSettings) as e:
            log.warning("server %s waits: %s", server.name, e)
            return Wanted(server, None, str(e))
        for value in secrets:
            self.hide(value)
        return Wanted(server, ready, secrets=secrets)

    async def _sign_in(self, server: str, title: str, url: str) -> None:
        """Show a sign-in on the lens, as a code to type and as a QR code."""
        from edge.display.sign_in import code_of, sign_in  # noqa: PLC0415 - few servers want one

        code = code_of(url)
        shown = await sign_in(title, url, typed=f"glassd servers authorize {code}", draw=self.draw)
        # The code makes a new address another scene: the same scene would not be drawn again.
        await self.present(f"sign-in/{server}/{code}", shown)

    async def run(self) -> None:
        """Run the manager once there is a server."""
        await self._opened.wait()
        assert self._manager is not None
        await self._manager.run()

    async def call(self, call: ToolCall, tool: ToolDefinition, progress: Progress) -> ToolResponse:
        """See `RunTool`."""
        assert self._manager is not None, "the registry has their tools from it"
        return await self._manager.call(call, tool, progress)

    # -------------------------------------------------------------- what a person asks

    def describe(self) -> Sequence[Mapping[str, Json]]:
        """See `ServersPort`."""
        on = self._manager.describe() if self._manager is not None else ()
        return sorted([*map(_coded, on), *map(_off, self._off)], key=lambda one: str(one["id"]))

    async def refresh(self, server: str) -> None:
        """See `ServersPort`."""
        if self._manager is None or not await self._manager.refresh(server):
            raise self._none(server)

    async def authorize(self, server: str, code: str, state: str, iss: str | None) -> None:
        """See `ServersPort`."""
        if self._manager is None or not await self._manager.authorize(server, code, state, iss):
            known = any(one["id"] == server for one in self.describe())
            raise NoServer(f"{server} needs no sign-in now") if known else self._none(server)

    def _none(self, server: str) -> NoServer:
        found = next((one for one in self.describe() if one["id"] == server), None)
        if found is None:
            return NoServer(f"there is no server {server[:63]}")
        return NoServer(
            f"{server} is not asked: {found['error']}", "change that, then: systemctl reload glassd"
        )


def joined(
    settings: Settings, own: Own
) -> tuple[tuple[ServerDefinition, ...], tuple[Dropped, ...]]:
    """Return the servers of the configuration and of `tools.d`, and those that are refused: their
    name is taken, or there are too many.
    """
    configured = tuple(map(_of_settings, settings.mcp.servers))
    names = {server.name for server in configured}
    others = [server for server in own.servers if server.name not in names]
    room = MAX_SERVERS - len(configured)
    why = "a server of the configuration has that name; it stands"
    taken = [Dropped(server.name, why) for server in own.servers if server.name in names]
    why = f"there are {MAX_SERVERS} servers already"
    crowd = [Dropped(server.name, why) for server in others[room:]]
    return (*configured, *others[:room]), (*taken, *crowd)


def _of_settings(server: McpServerConfig) -> ServerDefinition:
    given: dict[str, Any] = asdict(server)
    given = {key: FrozenDict(v) if isinstance(v, dict) else v for key, v in given.items()}
    given |= {"name": given.pop("id"), "title": given["name"]}
    return ServerDefinition(**{**given, "allowed_tools": frozenset(server.allowed_tools)})


def _from_files(server: ServerDefinition, secret: Secret) -> Secret:
    """Return secrets from the files that the server names, else from `secret`. It raises
    `BadSettings` for a file that cannot be read.
    """

    def found(name: str) -> str | None:
        if name in server.secret_files:
            return read_secret(server.secret_files[name], name, {})
        return secret(name)

    return found


def _coded(one: dict[str, Json]) -> dict[str, Json]:
    """Add the code that the lens shows to a server that waits for a sign-in."""
    if "authorize_url" not in one:
        return one
    from edge.display.sign_in import code_of  # noqa: PLC0415 - few servers want one

    return {**one, "sign_in_code": code_of(one["authorize_url"])}


def _off(server: ServerDefinition) -> dict[str, Json]:
    """Return a server that is switched off, for people."""
    why = SWITCHED_OFF if server.enabled else "switched off (enabled = false)"
    return {
        "id": server.name,
        "name": server.title or server.name,
        "enabled": server.enabled,
        "status": "disconnected",
        "error": why,
        "tools": [],
        "available": False,
    }
