"""Searches mail."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday import mail

FIELDS = ("from", "subject", "text", "since")


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the newest messages that meet everything asked for."""
    wanted = {field: args[field].strip() for field in FIELDS if args.get(field, "").strip()}
    if not wanted:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /from nothing to search for",
            suggestion="Give from, subject, text or since; email:unread lists new mail",
            for_wearer="Say what mail to look for.",
        )
    sent = args.get("in") == "sent"
    found = await mail.ask(ctx, "search", **wanted, sent=sent)
    messages = found["messages"]
    await mail.remember(ctx, messages)
    text = f"{len(messages)} found" if messages else "No mail found"
    if not found["complete"]:
        text = f"The {len(messages)} newest" if messages else "No mail found in the newest"
    if messages:
        text += "\n" + mail.listing(messages, ctx.now())
    return {"data": {"messages": messages, "complete": found["complete"], "text": text}}
