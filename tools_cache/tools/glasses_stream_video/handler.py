"""Lets the glasses stream a video."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from tools_cache.api.tool import Json, Named, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Begin it."""
    data = await ctx.glasses_ask("stream_video", {"url": args["url"]})
    return {"data": {**data, "text": "Streaming a video"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:  # noqa: ARG001 - as above
    """Return the host, so that the wearer knows who will see it; the rest often holds a key."""
    try:
        host = urlsplit(str(args["url"])).hostname
    except ValueError:
        host = None
    return {"url": Named("to", host or "an address that cannot be read")}
