"""Lists unread mail."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday import mail


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the newest unread messages, without a network those known last."""
    found, age_s = await mail.unread(ctx)
    messages, total = found["messages"][: args.get("limit", 5)], found["total"]
    await mail.remember(ctx, messages)
    text = f"{total} unread" if total else "No unread mail"
    if age_s:
        text += f" ({mail.ago(age_s)})"
    if messages:
        text += "\n" + mail.listing(messages, ctx.now())
    return {"data": {"messages": messages, "total": total, "age_s": round(age_s), "text": text}}
