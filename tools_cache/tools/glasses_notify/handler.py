"""Shows a notification in the glasses' own style."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Notify; nothing else is shown or spoken, as it would cover the notification."""
    await ctx.glasses_do(
        "notify", {"title": args["title"], "text": args["text"], "app": args.get("app", "glassd")}
    )
    return {"data": {}, "render": {"audio": {"suppressVoiceResponse": True}}}
