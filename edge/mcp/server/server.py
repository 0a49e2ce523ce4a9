"""`glassd mcp`: our tools, resources and prompts as an MCP server of both revisions, in front of
the daemon's control socket. While the daemon is away, tools are listed from disk and calls fail.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakSet

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from edge import __version__
from edge.core.backoff import Backoff
from edge.core.rate_limit import RateLimits
from edge.mcp.server import elicitation, notifications, prompts as mcp_prompts, results
from edge.mcp.server.calls import CallRequest, Calls, LacksCapability
from edge.mcp.server.client import Context, McpCaller, connection_of, is_modern, levels, meta_of
from edge.mcp.server.content import McpContent
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.pending import PENDING, pending
from edge.mcp.server.prompts import NoPrompt
from edge.mcp.server.resources import LENS, CannotRead, NoResource
from edge.mcp.server.tools import KnownTool, Row, ToolTable, tools_of
from edge.runtime.control_api import ToolPages
from edge.runtime.errors import UserError
from firmware_bridge.deadlines import timeout
from tools_cache import names
from tools_cache.api.tool import RateLimit
from tools_cache.nearest import did_you_mean

log: Final = logging.getLogger(__name__)
NAME: Final = "glassd"
LIST_S: Final = 10.0
STATE_S: Final = 300.0
"""How long a question may be answered, as in the daemon."""
NOTIFY_S: Final = 5.0
INSTRUCTIONS: Final = (
    "A pair of smart glasses. Show short texts; "
    "speak only what must be heard; ask before you act on the wearer's behalf. "
    f"The prompt {mcp_prompts.AGENT} tells more."
)
TTL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Options:
    """What differs between servers. `offline` reads the tools from disk; `alias` returns a tool's
    name for clients.
    """

    offline: Callable[[], Iterable[Row]]
    rate: RateLimit
    chance: Callable[[], float]
    new_id: Callable[[], str]
    alias: Callable[[str], str] = names.alias
    content: McpContent | None = None
    owner: DaemonClient | None = None
    """A client with the owner's rights, if a confirmation by the client's user shall count."""


class Facade:
    """One per process; a transport serves `server` while `running()`."""

    def __init__(self, daemon: DaemonClient, options: Options) -> None:
        self._daemon = daemon
        self._options = options
        self._content = options.content or McpContent(self._get)
        self._tools = ToolTable()
        self._tag = ""
        """The ETag of `_tools`; "" if they are to be listed again."""
        self._changes = 0
        """How often the daemon reported that the tools changed."""
        self._rates = RateLimits()
        self._bus = InMemorySubscriptionBus()
        self._older: WeakSet[Connection] = WeakSet()
        self._levels = levels()
        self._watching: WeakSet[Connection] = WeakSet()
        self._tasks: asyncio.TaskGroup | None = None
        self._calls = Calls(daemon, new_id=options.new_id, tasks=self._group, owner=options.owner)
        self.listen = ListenHandler(self._bus, max_subscriptions=64)
        self.server: Server[Any] = _Server(
            NAME,
            version=__version__,
            title="Glasses",
            instructions=INSTRUCTIONS,
            on_subscriptions_listen=self.listen,
        )
        for method, params, handler in self._handlers():
            self.server.add_request_handler(method, params, handler)
        self.server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._initialized
        )
        self.server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=STATE_S), default_audience=NAME)
        )

    def _handlers(self) -> tuple[tuple[str, type[Any], Any], ...]:
        return (
            ("tools/list", types.PaginatedRequestParams, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("resources/list", types.PaginatedRequestParams, self._list_resources),
            ("resources/templates/list", types.PaginatedRequestParams, self._list_templates),
            ("resources/read", types.ReadResourceRequestParams, self._read),
            ("resources/subscribe", types.SubscribeRequestParams, self._subscribe),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe),
            ("prompts/list", types.PaginatedRequestParams, self._list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self._get_prompt),
            ("completion/complete", types.CompleteRequestParams, self._complete),
            ("logging/setLevel", types.SetLevelRequestParams, self._set_level),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the daemon's events while the server is served; cancel abandoned calls before the
        end.
        """
        retry = Backoff(self._options.chance, first_s=0.5, most_s=5.0, stable_s=5.0)
        events = notifications.Notifications(self._daemon, self.notify, retry=retry)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                following = tasks.create_task(events.run(), name="mcp.news")
                try:
                    yield
                finally:
                    self.listen.close()
                    following.cancel()
                    await self._calls.finish()
        finally:
            self._daemon.close()
            if self._options.owner is not None:
                self._options.owner.close()

    def _group(self) -> asyncio.TaskGroup:
        assert self._tasks is not None
        return self._tasks

    async def _get(self, path: str) -> Any:
        return await self._daemon.ask("GET", path, timeout_s=LIST_S)

    # -------------------------------------------------------------- tools

    async def _refresh(self) -> ToolTable:
        """Return the current tools; those on disk if the daemon is away."""
        changes, tools = self._changes, self._tools
        try:
            tag, found = await self._look()
            if found is not None:
                tools = self._use(found["tools"], str(found.get("version", "")), tag)
        except UserError as e:
            log.info("the tools are listed from disk: %s", e.message)
            rows = await asyncio.to_thread(lambda: list(self._options.offline()))
            tools = self._use(rows, "cold")
        if changes == self._changes:
            self.server.get_tool_input_schema = self._schema
        return tools

    async def _look(self) -> tuple[str, Row | None]:
        """Ask the daemon for all tools; None if they are those of the last time. The ETag of the
        first page changes with every tool.
        """
        pages, tag = ToolPages({"all": "1"}), self._tag
        first = await self._daemon.look(pages.path, tag, timeout_s=LIST_S)
        if first is None:
            return tag, None
        tag, answer = first
        while not pages.take(answer):
            answer = await self._get(pages.path)
        return tag, pages.document

    def _use(self, rows: Iterable[Row], version: str, tag: str = "") -> ToolTable:
        self._tools = tools_of(rows, alias=self._options.alias, version=version)
        self._tag = tag
        return self._tools

    def _schema(self, name: str) -> Row | None:
        """Return what the SDK checks a call's headers against; without it, it would list all tools
        at each call.
        """
        known = self._tools.table.get(name)
        return known.schema if known else None

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        tools, modern = await self._refresh(), is_modern(ctx)
        listed = [tool if modern else _older_form(tool) for tool in (*tools.listed, PENDING)]
        return {"tools": listed, **_cached(0)}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        left_s = self._rates.take("", "", self._options.rate, asyncio.get_running_loop().time())
        if left_s:
            return results.result(_too_often(left_s))
        meta, args = meta_of(ctx), params.arguments or {}
        if elicitation.CONFIRMED in meta:
            return results.result(_no_token())
        try:
            if params.name == PENDING["name"]:
                return await pending(self._calls, args, modern=is_modern(ctx))
            tool = await self._find(params.name)
            request = CallRequest(tool, args, meta, _parse_answer(ctx, params))
            return await self._calls.run(request, McpCaller(ctx, self._levels, tool.alias))
        except MCPError:
            raise
        except LacksCapability as e:
            required = {"requiredCapabilities": e.required}
            code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
            raise MCPError(code, str(e), required) from None
        except Exception:
            log.exception("unexpected error in a call of %.80r", params.name)
            return results.result(
                results.refused("INTERNAL", "INTERNAL", "glassd mcp made a mistake", "see its log")
            )

    async def _find(self, name: str) -> KnownTool:
        """Return the tool of this name, reading the list again for a new name. Raises MCPError."""
        known = self._tools.table.get(name) or (await self._refresh()).table.get(name)
        if known is None:
            near = did_you_mean(name, [str(tool["name"]) for tool in self._tools.listed])
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {name[:100]}" + (f"; {near}" if near else "")
            )
        return known

    # -------------------------------------------------------------- resources and prompts

    async def _list_resources(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        return {"resources": self._content.resources(), **_cached(TTL_MS)}

    async def _list_templates(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        return {"resourceTemplates": self._content.templates(), **_cached(TTL_MS)}

    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        uri = str(params.uri)
        try:
            contents = await self._content.read(uri)
        except NoResource as e:
            code = types.INVALID_PARAMS if is_modern(ctx) else -32002
            raise MCPError(code, str(e), {"uri": uri[:200]}) from None
        except (CannotRead, UserError) as e:
            raise MCPError(types.INTERNAL_ERROR, _describe(e)) from None
        return {"contents": [contents], **_cached(0)}

    async def _list_prompts(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        return {"prompts": self._content.prompts(), **_cached(TTL_MS)}

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> dict[str, Any]:
        try:
            prompt = await self._content.prompt(
                params.name, params.arguments or {}, _responses(ctx) or {}
            )
            return {"resultType": "complete"} | prompt
        except NoPrompt as e:
            raise MCPError(types.INVALID_PARAMS, str(e)) from None
        except (CannotRead, UserError) as e:
            raise MCPError(types.INTERNAL_ERROR, _describe(e)) from None

    async def _complete(self, _ctx: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        of = params.ref.model_dump(by_alias=True, exclude_none=True)
        try:
            values = await self._content.complete(of, params.argument.name, params.argument.value)
        except UserError:
            values = []
        completion = {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}
        return {"resultType": "complete", "completion": completion}

    # -------------------------------------------------------------- notifications

    async def notify(self, what: str) -> None:
        """Notify the clients that subscribed: newer ones on their streams, older ones on their
        connections.
        """
        if what == notifications.TOOLS:
            self._changes += 1
            self.server.get_tool_input_schema = None  # the SDK lists the tools at the next call
            await self._bus.publish(ToolsListChanged())
            await _send(list(self._older), lambda client: client.send_tool_list_changed())
        else:
            await self._bus.publish(ResourceUpdated(uri=LENS))
            await _send(list(self._watching), lambda client: client.send_resource_updated(LENS))

    async def _initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        self._older.add(connection_of(ctx))

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        if str(params.uri) == LENS:
            self._watching.add(connection_of(ctx))
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        if str(params.uri) == LENS:
            self._watching.discard(connection_of(ctx))
        return types.EmptyResult()

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._levels[connection_of(ctx)] = params.level
        return types.EmptyResult()


class _Server(Server[Any]):
    """The SDK's server, with notifications of changed tools for older clients over HTTP too, and
    without those of the other lists, which never change.
    """

    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        found = super().get_capabilities(*args, **kwargs)
        constant = {"list_changed": False}
        return found.model_copy(
            update={
                "prompts": found.prompts and found.prompts.model_copy(update=constant),
                "resources": found.resources and found.resources.model_copy(update=constant),
            }
        )

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True), *args, **kwargs
        )


async def _send(
    clients: Iterable[Connection], send: Callable[[Connection], Awaitable[None]]
) -> None:
    """Send to each; one that does not listen must not affect the others."""
    for client in clients:
        try:
            async with timeout(NOTIFY_S):
                await send(client)
        except Exception as e:  # noqa: BLE001 - whatever a transport raises about a client that has gone
            log.debug("a client of %s was not notified: %s", client.protocol_version, e)


def _responses(ctx: Context) -> Mapping[str, Any] | None:
    found = (ctx.params or {}).get("inputResponses")
    return found if isinstance(found, Mapping) else None


def _parse_answer(ctx: Context, params: types.CallToolRequestParams) -> elicitation.Answered | None:
    """Return the client's answers to an earlier question. Raises MCPError for an unknown state."""
    try:
        return elicitation.parse_answer(_responses(ctx), params.request_state)
    except ValueError:
        reason = {"reason": "invalid_request_state"}
        raise MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", reason) from None


def _older_form(tool: dict[str, Any]) -> dict[str, Any]:
    """Before 2026-07-28 an output schema is the schema of an object."""
    schema = tool.get("outputSchema")
    if schema is None or schema.get("type") == "object":
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def _first_page(params: types.PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor: there is only one page."""
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor")


def _cached(ttl_ms: int) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}


def _too_often(left_s: float) -> dict[str, Any]:
    wait_ms = max(1, round(left_s * 1000))
    envelope = results.too_often("Too many calls", f"Wait {wait_ms} ms")
    envelope["error"]["retryAfterMs"] = wait_ms
    return envelope


def _no_token() -> dict[str, Any]:
    text = (
        f"{elicitation.CONFIRMED} is not taken: the program that asks for a "
        "call does not answer the question about it"
    )
    return results.refused("DENIED", "PERMANENT", text, elicitation.HOW)


def _describe(e: Exception) -> str:
    return f"{e.message}: {e.fix}" if isinstance(e, UserError) and e.fix else str(e)
