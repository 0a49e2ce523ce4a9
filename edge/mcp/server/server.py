"""`glassd mcp`: our tools, resources and prompts as an MCP server of both revisions, in front of
the daemon's control socket.

Refuses to know transports and the daemon's insides. A daemon that is away costs the calls, not the
list: that is read from disk.
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
from edge.mcp.server import content, elicitation, notifications, prompts as mcp_prompts, results
from edge.mcp.server.calls import Calls, LacksCapability, QuestionAsked
from edge.mcp.server.client import Context, McpCaller, connection_of, is_modern, levels, meta_of
from edge.mcp.server.content import CannotRead, Content, McpContent, NoPrompt, NoResource
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.pending import PENDING, pending
from edge.mcp.server.tools import KnownTool, Row, ToolTable, tools_of
from edge.runtime.errors import UserError
from firmware_bridge.deadlines import timeout
from tools_cache import names
from tools_cache.api.tool import RateLimit
from tools_cache.nearest import did_you_mean

log: Final = logging.getLogger(__name__)
NAME: Final = "glassd"
LIST_S: Final = 10.0
STATE_S: Final = 300.0
"""A question's life; the daemon's own is five minutes too."""
NOTIFY_S: Final = 5.0
INSTRUCTIONS: Final = (
    "A pair of smart glasses. Show short texts; "
    "speak only what must be heard; ask before you act on the wearer's behalf. "
    f"The prompt {mcp_prompts.AGENT} tells more."
)
TTL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Ways:
    """What differs from one server to the next. `cold` reads the tools from disk; `alias` gives
    a tool its name outside.
    """

    cold: Callable[[], Iterable[Row]]
    rate: RateLimit
    chance: Callable[[], float]
    new_id: Callable[[], str]
    alias: Callable[[str], str] = names.alias
    shelf: Content | None = None
    owner: DaemonClient | None = None
    """The daemon as its owner reaches it, where a yes of the client's user is to count."""


class Facade:
    """One per process; `server` is served by a transport while `running()`."""

    def __init__(self, daemon: DaemonClient, ways: Ways) -> None:
        self._daemon = daemon
        self._ways = ways
        self._shelf: Content = ways.shelf or McpContent(self._get)
        self._tools = ToolTable()
        self._changes = 0
        """How often the daemon said that they are others now."""
        self._rates = RateLimits()
        self._bus = InMemorySubscriptionBus()
        self._older: WeakSet[Connection] = WeakSet()
        self._wanted = levels()
        self._watching: WeakSet[Connection] = WeakSet()
        self._tasks: asyncio.TaskGroup | None = None
        self._calls = Calls(daemon, new_id=ways.new_id, tasks=self._group, owner=ways.owner)
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
        """Follow the daemon's news while the server is served; calls nobody waits for any more
        are called off before the end.
        """
        retry = Backoff(self._ways.chance, first_s=0.5, most_s=5.0, stable_s=5.0)
        news = notifications.Notifications(self._daemon, self.heard, retry=retry)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                following = tasks.create_task(news.run(), name="mcp.news")
                try:
                    yield
                finally:
                    self.listen.close()
                    following.cancel()
                    await self._calls.ended()
        finally:
            self._daemon.close()
            if self._ways.owner is not None:
                self._ways.owner.close()

    def _group(self) -> asyncio.TaskGroup:
        assert self._tasks is not None
        return self._tasks

    async def _get(self, path: str) -> Any:
        return await self._daemon.ask("GET", path, timeout_s=LIST_S)

    # -------------------------------------------------------------- tools

    async def _refreshed(self) -> ToolTable:
        """The tools as they are now; those on disk when nobody can say."""
        changes = self._changes
        try:
            told = await self._get("/v1/tools?all=1")
            rows, version = told["tools"], str(told.get("version", ""))
        except UserError as e:
            log.info("the tools are listed from disk: %s", e.message)
            rows, version = await asyncio.to_thread(lambda: list(self._ways.cold())), "cold"
        self._tools = tools_of(rows, alias=self._ways.alias, version=version)
        if changes == self._changes:
            self.server.get_tool_input_schema = self._schema
        return self._tools

    def _schema(self, name: str) -> Row | None:
        """What the SDK checks a call's headers against: without it, it lists all tools at each
        call.
        """
        known = self._tools.find(name)
        return known.schema if known else None

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        tools, modern = await self._refreshed(), is_modern(ctx)
        listed = [tool if modern else _older_form(tool) for tool in (*tools.listed, PENDING)]
        return {"tools": listed, **_cached(0)}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        left_s = self._rates.take("", "", self._ways.rate, asyncio.get_running_loop().time())
        if left_s:
            return results.result(_too_often(left_s))
        if elicitation.CONFIRMED in meta_of(ctx):
            return results.result(_no_token())
        try:
            if params.name == PENDING["name"]:
                return await pending(self._calls, params.arguments or {}, modern=is_modern(ctx))
            known = await self._known(params.name)
            asked = QuestionAsked(
                known, params.arguments or {}, meta_of(ctx), _brought(ctx, params)
            )
            return await self._calls.run(asked, McpCaller(ctx, self._wanted, known.alias))
        except MCPError:
            raise
        except LacksCapability as e:
            raise MCPError(
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                str(e),
                {"requiredCapabilities": e.required},
            ) from None
        except Exception:
            log.exception("the call of %.80r was a mistake of ours", params.name)
            return results.result(
                results.refused("INTERNAL", "INTERNAL", "glassd mcp made a mistake", "see its log")
            )

    async def _known(self, name: str) -> KnownTool:
        """Look a tool up; a name that is new since the last look gets a second one. Raises
        MCPError.
        """
        known = self._tools.find(name) or (await self._refreshed()).find(name)
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
        return {"resources": self._shelf.resources(), **_cached(TTL_MS)}

    async def _list_templates(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        return {"resourceTemplates": self._shelf.templates(), **_cached(TTL_MS)}

    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        uri = str(params.uri)
        try:
            contents = await self._shelf.read(uri)
        except NoResource as e:
            code = types.INVALID_PARAMS if is_modern(ctx) else -32002
            raise MCPError(code, str(e), {"uri": uri[:200]}) from None
        except (CannotRead, UserError) as e:
            raise MCPError(types.INTERNAL_ERROR, _said(e)) from None
        return {"contents": [contents], **_cached(0)}

    async def _list_prompts(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> dict[str, Any]:
        _first_page(params)
        return {"prompts": self._shelf.prompts(), **_cached(TTL_MS)}

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> dict[str, Any]:
        try:
            return {"resultType": "complete"} | await self._shelf.prompt(
                params.name, params.arguments or {}, _responses(ctx) or {}
            )
        except NoPrompt as e:
            raise MCPError(types.INVALID_PARAMS, str(e)) from None
        except (CannotRead, UserError) as e:
            raise MCPError(types.INTERNAL_ERROR, _said(e)) from None

    async def _complete(self, _ctx: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        of = params.ref.model_dump(by_alias=True, exclude_none=True)
        try:
            values = await self._shelf.complete(of, params.argument.name, params.argument.value)
        except UserError:
            values = []
        return {
            "resultType": "complete",
            "completion": {
                "values": values[:100],
                "total": len(values),
                "hasMore": len(values) > 100,
            },
        }

    # -------------------------------------------------------------- news

    async def heard(self, what: str) -> None:
        """Tell every client that wants to know: newer ones on their streams, older ones on
        their connections.
        """
        if what == notifications.TOOLS:
            self._changes += 1
            self.server.get_tool_input_schema = (
                None  # the SDK lists the tools again at the next call
            )
            await self._bus.publish(ToolsListChanged())
            await _told(list(self._older), lambda client: client.send_tool_list_changed())
        else:
            await self._bus.publish(ResourceUpdated(uri=content.LENS))
            await _told(
                list(self._watching), lambda client: client.send_resource_updated(content.LENS)
            )

    async def _initialized(self, ctx: Context, _params: types.NotificationParams) -> None:
        self._older.add(connection_of(ctx))

    async def _subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        if str(params.uri) == content.LENS:
            self._watching.add(connection_of(ctx))
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        if str(params.uri) == content.LENS:
            self._watching.discard(connection_of(ctx))
        return types.EmptyResult()

    async def _set_level(
        self, ctx: Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        self._wanted[connection_of(ctx)] = params.level
        return types.EmptyResult()


class _Server(Server[Any]):
    """The SDK's server, which tells older clients over HTTP too that its list of tools changes, and
    promises of the other lists, which never change, no word to anybody.
    """

    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        told = super().get_capabilities(*args, **kwargs)
        prompts, resources = told.prompts, told.resources
        return told.model_copy(
            update={
                "prompts": prompts and prompts.model_copy(update={"list_changed": False}),
                "resources": resources and resources.model_copy(update={"list_changed": False}),
            }
        )

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True), *args, **kwargs
        )


async def _told(
    clients: Iterable[Connection], tell: Callable[[Connection], Awaitable[None]]
) -> None:
    """Tell each; one that does not listen costs the others nothing."""
    for client in clients:
        try:
            async with timeout(NOTIFY_S):
                await tell(client)
        except Exception as e:  # noqa: BLE001 - whatever a transport raises about a client that has gone
            log.debug("a client of %s was not told: %s", client.protocol_version, e)


def _responses(ctx: Context) -> Mapping[str, Any] | None:
    """The answers a client brings, as they came."""
    found = (ctx.params or {}).get("inputResponses")
    return found if isinstance(found, Mapping) else None


def _brought(ctx: Context, params: types.CallToolRequestParams) -> elicitation.Answered | None:
    """What the client brought back from a question. Raises MCPError for a state that is none of
    ours.
    """
    try:
        return elicitation.answered(_responses(ctx), params.request_state)
    except ValueError:
        raise MCPError(
            types.INVALID_PARAMS,
            "Invalid or expired requestState",
            {"reason": "invalid_request_state"},
        ) from None


def _older_form(tool: dict[str, Any]) -> dict[str, Any]:
    """Before 2026-07-28 an output schema is of an object, or there is none."""
    schema = tool.get("outputSchema")
    return (
        tool
        if schema is None or schema.get("type") == "object"
        else {k: v for k, v in tool.items() if k != "outputSchema"}
    )


def _first_page(params: types.PaginatedRequestParams | None) -> None:
    """Everything is on one page, so no cursor is ours."""
    if params is not None and params.cursor is not None:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor")


def _cached(ttl_ms: int) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}


def _too_often(left_s: float) -> dict[str, Any]:
    wait_ms = max(1, round(left_s * 1000))
    refused = results.refused(
        "RATE_LIMIT", "RATE_LIMIT", "Too many calls", f"Wait {wait_ms} ms", retryable=True
    )
    return {**refused, "error": {**refused["error"], "retryAfterMs": wait_ms}}


def _no_token() -> dict[str, Any]:
    text = (
        f"{elicitation.CONFIRMED} is not taken: the program that asks for a "
        "call does not answer the question about it"
    )
    return results.refused("DENIED", "PERMANENT", text, elicitation.HOW)


def _said(e: Exception) -> str:
    return f"{e.message}: {e.fix}" if isinstance(e, UserError) and e.fix else str(e)
