"""Takes a message from the relay: checked, stored, then announced to the wearer."""

from collections.abc import Mapping
from dataclasses import replace

from tools_cache.api.handed import Json
from tools_cache.api.tool import CallOrigin, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.pager import keys, messages
from tools_cache.everyday.pager.book import CHANGING, PagerBook, Sender
from tools_cache.everyday.pager.inbox import (
    ANNOUNCED,
    NOT_ANNOUNCED,
    SILENT,
    Inbox,
    StoredMessage,
    token_of,
)
from tools_cache.everyday.pager.sent import SOON_S, take_report


async def take(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Json]:
    """Take a message, or the report that one was not delivered; the same one again is answered as
    before. Raises `ToolFailure`: DENIED for what is refused for good.
    """
    if ctx.call.origin is not CallOrigin.CLOUD:
        raise _denied("Only the relay of the cloud delivers messages")
    if "undelivered" in args:
        return await take_report(args["undelivered"], ctx)
    for field in ("message", "signature"):
        if field not in args:
            raise messages.invalid(
                f"/{field} is missing", "Give message and signature, or undelivered"
            )
    message, inbox = args["message"], Inbox(ctx.db)
    if not keys.is_signed(message["key"], args["signature"], messages.signed_bytes(message)):
        raise _denied("The message was changed: its signature does not fit")
    token = token_of(message["from"], message["id"])
    async with CHANGING:
        await inbox.cleanup_expired(ctx.now())
        found = await inbox.find(token)
        if found is None:
            if await inbox.knows(token):
                raise _denied("This message came before, and its time is over")
            found = await _store(message, args.get("age_s", 0.0), inbox, ctx)
        await inbox.know(token)
        await _announce(found, inbox, ctx)
    return {"id": found.message, "conflicted": bool(found.body["conflicted"])}


async def _store(
    message: Mapping[str, Json], age_s: float, inbox: Inbox, ctx: ToolContext
) -> StoredMessage:
    """Store a new message. Raises `ToolFailure` if its recipient or sender is refused."""
    book, now = PagerBook(ctx.db), ctx.now()
    own = {one.id: one for one in await book.pagers()}
    if message["to"] not in own or not own[message["to"]].active:
        raise _denied(f"There is no active pager {message['to']} here")
    expires = now + message["life_s"] - age_s
    if expires <= now:
        raise _denied("The time of this message is over")
    text = messages.readable(message["text"])
    if not text:
        raise _denied("The message has no text that can be read")
    await inbox.make_room()
    sender = await _known_sender(message, book)
    stored = StoredMessage(
        token_of(message["from"], message["id"]),
        message["id"],
        now,
        expires,
        unread=True,
        announced=SILENT if message["priority"] == messages.LOW else NOT_ANNOUNCED,
        body={
            "from": message["from"],
            "name": sender.alias or sender.name,
            "to": message["to"],
            "text": text,
            "original": messages.readable(message["original"], lines=True),
            "distilled": message["distilled"],
            "priority": message["priority"],
            "location": message["location"],
            "conflicted": message["key"] != sender.key,
            "fingerprint": keys.shown_fingerprint(message["key"]),
        },
    )
    await inbox.store(stored)
    return stored


async def _known_sender(message: Mapping[str, Json], book: PagerBook) -> Sender:
    """Return the sender as it is known now: the first key is trusted, another one is kept beside
    it. Raises `ToolFailure` for a sender that the wearer revoked.
    """
    name = messages.readable(message["name"])[: messages.MAX_NAME]
    known = await book.sender(message["from"])
    if known is None:
        new = Sender(message["from"], message["key"], name=name)
        await book.keep(new)
        return new
    if known.revoked:
        raise _denied(f"The wearer takes no messages of {known.pager}")
    changed = known
    if message["key"] == known.key:
        changed = replace(known, name=name)
    elif message["key"] != known.new_key:
        changed = replace(known, new_key=message["key"])
    if changed != known:
        await book.keep(changed)
    return changed


async def _announce(found: StoredMessage, inbox: Inbox, ctx: ToolContext) -> None:
    """Announce it once: an alarm of this key is set once, whenever a kill comes, and is shown until
    it is seen. A message for which there is no room among the alarms is in the inbox alone.
    """
    if found.announced != NOT_ANNOUNCED:
        return
    how = ANNOUNCED
    try:
        key = f"page {ctx.call.user_id} {found.token}"
        await ctx.alarms.set(SOON_S, announcement(found.body), key=key)
    except ToolFailure as e:
        if e.error.code is not ErrorCode.CONFLICT:
            raise
        how = SILENT
    await inbox.set_announced(found.token, how)


def announcement(body: Mapping[str, Json]) -> str:
    """Return what the wearer sees and hears: a changed key is said first."""
    who = f"{body['name']} ({body['from']})" if body["name"] else str(body["from"])
    urgent = "Urgent: " if body["priority"] == messages.URGENT else ""
    warned = f"{messages.CHANGED_KEY.format(pager=body['from'])} " if body["conflicted"] else ""
    return f"{warned}{urgent}From {who}: {body['text']}"


def _denied(text: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.DENIED, text)
