"""The smallest MCP server there can be, on the bare SDK: one tool that says back what it was
told. `--http PORT`, else stdio.
"""

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def listed(_ctx: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name="echo", description="Says it back.", input_schema=SCHEMA)]
    )


async def called(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = str((params.arguments or {}).get("text", ""))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


server: Server[Any] = Server("echo", version="1", on_list_tools=listed, on_call_tool=called)


async def over_stdio() -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    if sys.argv[1:2] == ["--http"]:
        import uvicorn

        uvicorn.run(
            server.streamable_http_app(host="127.0.0.1"), port=int(sys.argv[2]), log_level="error"
        )
    else:
        asyncio.run(over_stdio())


if __name__ == "__main__":
    main()
