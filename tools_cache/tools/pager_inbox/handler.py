"""Reads the messages that came."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.pager import messages
from tools_cache.everyday.pager.book import PagerBook
from tools_cache.everyday.pager.inbox import Inbox, StoredMessage
from tools_cache.everyday.pager.receiving import announcement
from tools_cache.everyday.pager.sent import (
    TAKEN,
    UNCONFIRMED,
    WAITS,
    WHY,
    SentMessage,
    SentMessages,
)

SHOWN: Final = 20


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return messages, the newest first, or one with its original; they count as read then. With
    `sent` return those that were sent, each with what became of it.
    """
    if args.get("sent"):
        return {"data": _sent(await SentMessages(ctx.db).newest())}
    inbox, now = Inbox(ctx.db), ctx.now()
    await inbox.cleanup_expired(now)
    found = await inbox.newest()
    wanted, unread = args.get("message"), args.get("unread", False)
    if wanted:
        found = [one for one in found if one.message == wanted]
        if not found:
            raise messages.invalid(
                f"/message there is no message {wanted}, or its time is over",
                "pager:inbox without it lists those that there are",
            )
    elif unread:
        found = [one for one in found if one.unread]
    listed = found[:SHOWN]
    own = [pager.to_json() for pager in await PagerBook(ctx.db).pagers()]
    data = {
        "messages": [_told(one, now, original=bool(wanted)) for one in listed],
        "total": len(found),
        "pagers": own,
        "text": _text(listed, len(found), unread=unread, original=bool(wanted)),
    }
    await inbox.mark_read([one.token for one in listed if one.unread])
    return {"data": data}


def _sent(found: list[SentMessage]) -> dict[str, Json]:
    listed = [
        {
            "id": one.message["id"],
            "from": one.message["from"],
            "to": one.message["to"],
            "message": one.message["text"],
            "priority": one.message["priority"],
            "state": _state(one.fate),
            "reason": WHY.get(one.fate, ""),
        }
        for one in found[:SHOWN]
    ]
    lines = [f"- To {one['to']}: {one['message']} ({_words(one)})" for one in listed]
    head = f"{_count(len(found))} sent" if found else "No pages sent"
    return {"messages": listed, "total": len(found), "text": "\n".join([head, *lines])}


def _state(fate: str) -> str:
    if fate in WHY:
        return UNCONFIRMED if fate == UNCONFIRMED else "failed"
    return fate or WAITS


def _words(one: Mapping[str, Json]) -> str:
    """Return what became of a message, for the wearer."""
    words = {WAITS: "waits for the network", TAKEN: "sent", UNCONFIRMED: "may not have arrived"}
    said = words.get(one["state"], "not delivered")
    return f"{said}: {one['reason']}" if one["reason"] else said


def _count(total: int) -> str:
    return "1 page" if total == 1 else f"{total} pages"


def _told(one: StoredMessage, now: float, *, original: bool) -> dict[str, Json]:
    body = one.body
    told = {
        "id": one.message,
        "from": body["from"],
        "name": body["name"],
        "to": body["to"],
        "message": body["text"],
        "priority": body["priority"],
        "ai_distilled": body["distilled"],
        "shortened": bool(body["original"]),
        "conflicted": body["conflicted"],
        "fingerprint": body["fingerprint"],
        "unread": one.unread,
        "age_s": round(max(0.0, now - one.arrived)),
    }
    if body["location"] is not None:
        told["location"] = body["location"]
    if original:
        told["original"] = body["original"] or body["text"]
    return told


def _text(listed: list[StoredMessage], total: int, *, unread: bool, original: bool) -> str:
    if not listed:
        return "No unread pages" if unread else "No pages"
    lines = [announcement(one.body) for one in listed]
    if original and listed[0].body["original"]:
        lines.append(str(listed[0].body["original"]))
    if original and listed[0].body["location"] is not None:
        lines.append(messages.place(listed[0].body["location"]))
    if original:
        return "\n".join(lines)
    return "\n".join([_count(total), *(f"- {line}" for line in lines)])
