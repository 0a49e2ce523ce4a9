"""The suite's tools as an MCP server of their own, over stdio: for a daemon that has it as an
upstream server.

It knows nothing of glassd: it is written against the SDK alone, of the newer revision, and is as
strict as any stranger's.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from tests.conformance.fixture_tools import NOTHING, TOOLS, TRIGGER, Asked, Failed, More

COMING_AND_GOING = "test_dynamic_tool"


class Fixtures:
    """One server; whether the tool that comes and goes is there is all it remembers."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._extra = False
        self.server: Server[Any] = Server(
            "fixtures",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def _list(self, _ctx: Any, _params: Any) -> types.ListToolsResult:
        tools = [_tool(name, one.description, one.schema) for name, one in TOOLS.items()]
        tools.append(_tool(TRIGGER, "Makes one tool come or go.", NOTHING))
        if self._extra:
            tools.append(_tool(COMING_AND_GOING, "Comes and goes.", NOTHING))
        return types.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def _call(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name == TRIGGER:
            self._extra = not self._extra
            await self._bus.publish(ToolsListChanged())
            return _result([{"type": "text", "text": "changed"}])
        tool = TOOLS.get(params.name)
        if tool is None:
            return _result([{"type": "text", "text": f"no tool {params.name}"}], failed=True)

        async def tell(done: float, of: float, words: str) -> None:
            token = (ctx.meta or {}).get("progress_token")
            if token is not None:
                await ctx.session.send_progress_notification(
                    token, done, of, words, related_request_id=str(ctx.request_id)
                )

        answers = {
            key: value.model_dump(by_alias=True, mode="json")
            for key, value in (params.input_responses or {}).items()
        }
        done = await tool.deed(
            Asked(params.arguments or {}, answers, params.request_state or "", tell)
        )
        if isinstance(done, More):
            wanted = {"resultType": "input_required", "inputRequests": dict(done.requests)} | (
                {"requestState": done.state} if done.state else {}
            )
            return types.InputRequiredResult.model_validate(wanted)
        if isinstance(done, Failed):
            return _result([{"type": "text", "text": done.text}], failed=True)
        return _result(done)


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> types.Tool:
    return types.Tool.model_validate(
        {"name": name, "description": description, "inputSchema": dict(schema)}
    )


def _result(blocks: list[dict[str, Any]], *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": blocks, "isError": failed})


async def main() -> None:
    server = Fixtures().server
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
