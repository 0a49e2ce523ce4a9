"""Has the glasses show a notification in their own way. Knows what it says, not how glasses are
told.
"""

from collections.abc import Mapping

from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Notify; nothing more is shown or said, it would cover the notification."""
    await ctx.glasses_do(
        "notify", {"title": args["title"], "text": args["text"], "app": args.get("app", "glassd")}
    )
    return {"data": {}, "render": {"audio": {"suppressVoiceResponse": True}}}
