"""Makes a message, signs it, and hands it to the relay: at once, or when the network is back."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.handed import Json
from tools_cache.api.tool import ToolContext, ToolResponse
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.pager import keys, messages
from tools_cache.everyday.pager.book import CHANGING, OwnPager, PagerBook
from tools_cache.everyday.pager.sent import (
    NEW,
    TAKEN,
    WAITS,
    WHY,
    SentMessage,
    SentMessages,
    reason_of,
    undelivered,
)

CONDENSE_S: Final = 10.0
"""Seconds that another tool may take to condense a text; then it is cut."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A signed message, and whether it waits for the network."""

    message: Mapping[str, Json]
    waits: bool


_TO: Final = re.compile(r"\A(?:to|an)\s+", re.IGNORECASE)
"""What may be left of a spoken "a page to Anna" before the name."""


async def send(args: Mapping[str, Json], ctx: ToolContext) -> Sent:
    """Send a message; the same call sends the same one. Raises `ToolFailure`."""
    book = PagerBook(ctx.db)
    sender = await book.active(args.get("from"))
    recipient, text = await _addressed(args, book)
    message_id = messages.message_id(
        ctx.call.user_id, sender.id, ctx.call.idempotency_key or ctx.call.call_id
    )
    wanted = {"to": recipient, "original": text, "priority": args.get("priority", 1)}
    sent = SentMessages(ctx.db)
    before = await _sent_before(sent, message_id, wanted)
    if before is None:
        new = await _new_message(message_id, sender, wanted, args, ctx)
        async with CHANGING:  # not while it is condensed, which takes its time
            before = await _sent_before(sent, message_id, wanted)
            if before is None:
                before = SentMessage(new, NEW)
                await sent.remember(new)
    message = before.message
    if before.fate != NEW:
        await sent.set_fate(message_id, NEW)  # from now on this call says what the relay answers
    signature = keys.sign(sender.private_key, messages.signed_bytes(message))
    answer = await ctx.call_tool(
        str(ctx.config["relay"]), {"message": message, "signature": signature}
    )
    return Sent(message, waits=await _note_answer(message, answer, ctx))


async def register(pager: OwnPager, ctx: ToolContext) -> bool:
    """Tell the relay where this pager is; return False if that waits for the network, or there is
    no relay now: sending does it again. Raises `ToolFailure` if somebody else has this id.
    """
    package = str(ctx.config["relay"]).partition(":")[0]
    answer = await ctx.call_tool(f"{package}:register", {"pager": pager.id})
    if answer.error is not None and answer.error.code is ErrorCode.CONFLICT:
        raise ToolFailure(answer.error)
    return answer.ok and not _pending(answer)


async def _addressed(args: Mapping[str, Json], book: PagerBook) -> tuple[str, str]:
    """Return the recipient's id and the text."""
    text = messages.readable(args["text"], lines=True)
    if args.get("to"):
        recipient = await book.resolve(args["to"])
    else:
        recipient, text = await book.recipient_within(_TO.sub("", text, count=1))
    if not text:
        raise messages.invalid("/text there is nothing in it that can be read", "Give some words")
    return recipient, text


async def _new_message(
    message_id: str,
    sender: OwnPager,
    wanted: Mapping[str, Json],
    args: Mapping[str, Json],
    ctx: ToolContext,
) -> dict[str, Json]:
    original, location = wanted["original"], args.get("location")
    text, distilled = await condensed(original, ctx)
    pin = None if location is None else {key: float(location[key]) for key in ("lat", "lon")}
    return {
        "v": messages.VERSION,
        "id": message_id,
        "from": sender.id,
        "name": sender.name,
        "to": wanted["to"],
        "text": text,
        "original": "" if text == original else original,
        "distilled": distilled,
        "priority": wanted["priority"],
        "location": pin,
        "life_s": int(ctx.config["expiry_h"]) * 3600,
        "key": keys.public_key(sender.private_key),
    }


async def condensed(text: str, ctx: ToolContext) -> tuple[str, bool]:
    """Return a text of at most `max_chars` characters in one line, and whether another tool
    condensed it.
    """
    line, most = messages.readable(text), int(ctx.config["max_chars"])
    if len(line) <= most:
        return line, False
    tool = str(ctx.config["distill_with"])
    if ctx.config["distill"] and tool:
        short = await _condensed_by(tool, line, most, ctx)
        if 0 < len(short) <= most:
            return short, True
    return messages.shortened(line, most), False


async def _condensed_by(tool: str, text: str, most: int, ctx: ToolContext) -> str:
    """Return what the tool makes of a text; "" if it does not answer in time with a text."""
    asking = asyncio.ensure_future(ctx.call_tool(tool, {"text": text, "max_chars": most}))
    try:
        await asyncio.wait({asking}, timeout=CONDENSE_S)
    finally:
        if not asking.done():
            asking.cancel()
    if asking.cancelled() or not asking.done() or asking.exception() is not None:
        return ""
    answer = asking.result()
    if not answer.ok or _pending(answer):
        return ""
    said = answer.data.get("text") if isinstance(answer.data, dict) else answer.data
    return messages.readable(said) if isinstance(said, str) else ""


async def _sent_before(
    sent: SentMessages, message_id: str, wanted: Mapping[str, Json]
) -> SentMessage | None:
    """Return the message that this call sent before. Raises `ToolFailure` if it was another."""
    found = await sent.find(message_id)
    if found is None:
        return None
    message = found.message
    before = {**message, "original": message["original"] or message["text"]}
    same = {**wanted, "original": messages.readable(wanted["original"])}
    if any(messages.readable(str(before[key])) != str(same[key]) for key in wanted):
        raise ToolFailure.of(
            ErrorCode.CONFLICT,
            "This idempotency key sent another message",
            suggestion="Use a new key for each message",
        )
    return found


def _pending(answer: ToolResponse) -> bool:
    return isinstance(answer.data, dict) and answer.data.get("status") == "pending"


async def _note_answer(message: Mapping[str, Json], answer: ToolResponse, ctx: ToolContext) -> bool:
    """Store what the relay says; return whether the message waits for the network. Raises
    `ToolFailure` if it was refused, also by an answer that came meanwhile.
    """
    sent = SentMessages(ctx.db)
    if answer.error is not None:
        await sent.set_fate(message["id"], reason_of(answer.error))
        raise ToolFailure(answer.error)
    fate = WAITS if _pending(answer) else TAKEN
    async with CHANGING:
        found = await sent.find(message["id"])
        if found is None or found.fate == NEW:
            await sent.set_fate(message["id"], fate)
            return fate == WAITS
    if fate == WAITS and found.fate in WHY:
        text = await undelivered(message["to"], found.fate, ctx.db)
        raise ToolFailure.of(ErrorCode.CONFLICT, text, for_wearer=text)
    return found.fate == WAITS
