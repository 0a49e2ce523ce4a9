"""Words ↔ bytes on the pipe between daemon and child: a length, then JSON. Knows no process and no
MCP.

JSON and not pickle: what a hostile server said passes through the child, and must stay data.
"""

import json
import struct
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from edge.mcp.client.models import (
    CallFault,
    McpServer,
    Outcome,
    ServerNews,
    ServerProgress,
    Status,
    UpstreamTool,
)

_LENGTH: Final = struct.Struct("<I")
MAX_FRAME: Final = 32 * 1024 * 1024
"""A list of 512 tools with schemas of 64 KiB each; an answer is bounded far below, by the child."""

Frame = Mapping[str, Any]


class BadFrame(Exception):
    """The other end does not keep the form; nothing more of it can be believed."""


def pack(frame: Frame) -> bytes:
    """Write one frame. Raises `BadFrame` when it is no JSON or too long."""
    try:
        body = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as e:
        raise BadFrame(f"not JSON: {e}") from None
    if len(body) > MAX_FRAME:
        raise BadFrame(f"{len(body)} bytes; at most {MAX_FRAME} are taken")
    return _LENGTH.pack(len(body)) + body


async def read(stream: StreamReader) -> Frame | None:
    """Read one frame; None at the end. Raises `BadFrame`."""
    try:
        (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        if length > MAX_FRAME:
            raise BadFrame(f"{length} bytes; at most {MAX_FRAME} are taken")
        found = json.loads(await stream.readexactly(length))
    except (IncompleteReadError, ConnectionError):
        return None
    except (ValueError, RecursionError) as e:
        raise BadFrame(f"not JSON: {e}") from None
    if not isinstance(found, dict):
        raise BadFrame("not an object")
    return found


# ------------------------------------------------------------------ words


def server_to(server: McpServer) -> dict[str, Any]:
    """Write a configuration; its mappings may be of any kind."""
    return {f.name: _plain(getattr(server, f.name)) for f in fields(server)}


def server_of(frame: Frame) -> McpServer:
    """Read a configuration."""
    return McpServer(**{**frame, "args": tuple(frame["args"])})


def news_to(news: ServerNews) -> dict[str, Any]:
    """Write news; tools that are None stay None."""
    tools = (
        None
        if news.tools is None
        else [{f.name: _plain(getattr(t, f.name)) for f in fields(t)} for t in news.tools]
    )
    return {
        **{f.name: _plain(getattr(news, f.name)) for f in fields(news) if f.name != "tools"},
        "tools": tools,
    }


def news_of(frame: Frame) -> ServerNews:
    """Read news."""
    tools = frame["tools"]
    return ServerNews(
        **{
            **frame,
            "status": Status(frame["status"]),
            "notes": tuple(frame["notes"]),
            "tools": None if tools is None else tools_of(tools),
        }
    )


def tools_of(frame: list[Frame]) -> tuple[UpstreamTool, ...]:
    """Read tools."""
    return tuple(UpstreamTool(**tool) for tool in frame)


def outcome_to(outcome: Outcome) -> dict[str, Any]:
    """Write an outcome."""
    return {f.name: _plain(getattr(outcome, f.name)) for f in fields(outcome)}


def outcome_of(frame: Frame) -> Outcome:
    """Read an outcome."""
    kind = frame["fault"]
    return Outcome(
        **{
            **frame,
            "content": tuple(frame["content"]),
            "fault": None if kind is None else CallFault(kind),
        }
    )


def progress_to(progress: ServerProgress) -> dict[str, Any]:
    """Write progress."""
    return asdict(progress)


def progress_of(frame: Frame) -> ServerProgress:
    """Read progress."""
    return ServerProgress(**frame)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
