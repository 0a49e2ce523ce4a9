"""Sends a message to another pager."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.pager.book import PagerBook
from tools_cache.everyday.pager.inbox import Inbox
from tools_cache.everyday.pager.sending import send
from tools_cache.everyday.pager.sent import take_late_answer

__all__ = ["execute", "take_late_answer"]


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Sign a message and hand it to the relay; one call is one message, however often it runs."""
    await Inbox(ctx.db).cleanup_expired(ctx.now())
    sent = await send(args, ctx)
    message = sent.message
    who = await PagerBook(ctx.db).name_of(message["to"])
    text = f"Sent to {who}"
    if sent.waits:
        text = f"Saved for {who}. It goes out when we are online."
    return {
        "data": {
            "id": message["id"],
            "from": message["from"],
            "to": message["to"],
            "sent": message["text"],
            "ai_distilled": message["distilled"],
            "shortened": bool(message["original"]),
            "waits": sent.waits,
            "text": text,
        }
    }
