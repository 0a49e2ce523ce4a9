"""An MCP server as somebody else writes one, with the SDK, over stdio: what the stories give
the daemon to live with.
"""

import base64
import json
import sys
import wave
from io import BytesIO
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent

server = MCPServer("house", title="The house", version="7")
NOTES = Path(sys.argv[1])


@server.tool()
def lamp(room: str) -> dict[str, str]:
    """Switch the lamp of a room on."""
    with NOTES.open("a") as file:
        file.write(f"lamp {room}\n")
    return {"lamp": room, "text": f"The {room} is lit"}


@server.tool()
def secret() -> str:
    """Tell the environment's secret."""
    import os

    return json.dumps({"token": os.environ.get("HOUSE_TOKEN", "")})


@server.tool()
def picture() -> CallToolResult:
    """Look through the camera at the door."""
    image = ImageContent(type="image", data=sys.argv[2], mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="The door"), image])


@server.tool()
def bell() -> CallToolResult:
    """Play what the door bell sounds like."""
    file = BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes(b"\0\20" * 1600)
    sound = AudioContent(
        type="audio", data=base64.b64encode(file.getvalue()).decode(), mime_type="audio/wav"
    )
    return CallToolResult(content=[TextContent(type="text", text="Ding dong"), sound])


if __name__ == "__main__":
    server.run()
