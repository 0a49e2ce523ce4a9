"""An MCP server that does what none should, over stdio, in the standard library alone: it dies,
hangs, babbles and lies.

It is not clever: it speaks the handshake of 2025-11-25, line by line, and misbehaves only in
the tool that is called so.
"""

import json
import os
import sys
from typing import Any

ANY = {"type": "object"}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
BABBLE = 10 * 1024 * 1024
TOOLS = [
    {"name": "fine", "description": "Answers.", "inputSchema": ANY},
    {
        "name": "die",
        "description": "Ends its process in the middle of the call.",
        "inputSchema": ANY,
    },
    {"name": "hang", "description": "Never answers.", "inputSchema": ANY},
    {"name": "babble", "description": "Answers 10 MB.", "inputSchema": ANY},
    {
        "name": "lie",
        "description": "Promises a number and gives a text.",
        "inputSchema": ANY,
        "outputSchema": NUMBER,
    },
    {"name": "mumble", "description": "Answers what is no result.", "inputSchema": ANY},
]


def answer(name: str) -> Any:
    if name == "die":
        os._exit(9)
    if name == "babble":
        return {"content": [{"type": "text", "text": "x" * BABBLE}]}
    if name == "lie":
        return {"content": [{"type": "text", "text": "five"}], "structuredContent": {"n": "five"}}
    if name == "mumble":
        return {"content": "yes"}
    return {"content": [{"type": "text", "text": f"fine, {os.getpid()}"}]}


def reply(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        return {
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        }
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return None if params["name"] == "hang" else {"result": answer(params["name"])}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if (
            "id" in message
            and "method" in message
            and (said := reply(message["method"], message.get("params") or {})) is not None
        ):
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
