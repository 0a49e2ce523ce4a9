"""A well-behaved MCP server written with the SDK; as a program it speaks over stdio."""

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

ANY = {"type": "object"}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


class Polite:
    """Adds numbers; adds a tool to subtract on request, and notifies clients of both eras."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._more = False
        self._sessions: list[Any] = []
        self.server: Server[Any] = Server(
            "polite",
            version="2",
            title="Polite",
            instructions="Ask nicely.",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        names = ["add", "learn", "wait", *(["subtract"] if self._more else [])]
        marks = types.ToolAnnotations(read_only_hint=True)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=n,
                    title=n.title(),
                    input_schema=ANY,
                    output_schema=SUM if n == "add" else None,
                    annotations=marks,
                    _meta={"x.y/n": n},
                )
                for n in names
            ]
        )

    async def _call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "learn":
            self._more = True
            await self._bus.publish(ToolsListChanged())
            await ctx.session.send_tool_list_changed()
        if params.name == "wait":
            await asyncio.sleep(600)
        total = sum((params.arguments or {}).get("numbers", []))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=str(total))],
            structured_content={"sum": total},
        )


async def main() -> None:
    polite = Polite()
    async with stdio_server() as (read, write):
        await polite.server.run(
            read,
            write,
            polite.server.create_initialization_options(NotificationOptions(tools_changed=True)),
        )


if __name__ == "__main__":
    asyncio.run(main())
