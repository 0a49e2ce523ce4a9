"""Messages between daemon and child, as bytes on the pipe: a length, then JSON.

JSON and not pickle: what a hostile server said passes through the child, and must stay data.
"""

import json
import struct
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Mapping
from dataclasses import fields
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
"""A list of 512 tools with schemas of 64 KiB each; the child bounds an answer far below."""

Frame = Mapping[str, Any]


class BadFrame(Exception):
    """A frame is not JSON, is too long, or has another form; the stream cannot be read on."""


def pack(frame: Frame) -> bytes:
    """Return one frame as bytes. Raises `BadFrame` if it is not JSON or too long."""
    try:
        body = json.dumps(frame, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as e:
        raise BadFrame(f"not JSON: {e}") from None
    if len(body) > MAX_FRAME:
        raise BadFrame(f"{len(body)} bytes; at most {MAX_FRAME} are allowed")
    return _LENGTH.pack(len(body)) + body


async def read(stream: StreamReader) -> Frame | None:
    """Read one frame; return None at the end. Raises `BadFrame`."""
    try:
        (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        if length > MAX_FRAME:
            raise BadFrame(f"{length} bytes; at most {MAX_FRAME} are allowed")
        found = json.loads(await stream.readexactly(length))
    except (IncompleteReadError, ConnectionError):
        return None
    except (ValueError, RecursionError) as e:
        raise BadFrame(f"not JSON: {e}") from None
    if not isinstance(found, dict):
        raise BadFrame("not an object")
    return found


def plain(value: Any) -> Any:
    """Return a model, or any part of one, as JSON writes it."""
    if isinstance(value, McpServer | ServerNews | ServerProgress | Outcome | UpstreamTool):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def server_of(frame: Frame) -> McpServer:
    return McpServer(**{**frame, "args": tuple(frame["args"])})


def news_of(frame: Frame) -> ServerNews:
    return ServerNews(
        **{
            **frame,
            "status": Status(frame["status"]),
            "notes": tuple(frame["notes"]),
            "tools": tools_of(frame["tools"]),
        }
    )


def tools_of(frame: list[Frame] | None) -> tuple[UpstreamTool, ...] | None:
    return None if frame is None else tuple(UpstreamTool(**tool) for tool in frame)


def outcome_of(frame: Frame) -> Outcome:
    kind = frame["fault"]
    fault = None if kind is None else CallFault(kind)
    return Outcome(**{**frame, "content": tuple(frame["content"]), "fault": fault})
