"""A user's mail: what was last seen of the inbox, and which messages were sent, encrypted."""

import asyncio
import hashlib
import logging
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.tool import Named, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday import naming

READ_S: Final = 15.0
SEND_S: Final = 40.0
PAGE: Final = 3_000
"""Characters of a message that one answer holds."""
MAX_RECORDS: Final = 500
"""Sent messages that are remembered; the oldest are forgotten."""
SETTINGS: Final = (
    "imap_host imap_port smtp_host smtp_port smtp_security username address password_file"
    " token_file ca_file"
).split()
"""Those that the child process for mail gets."""
_AWAY: Final = frozenset({ErrorCode.NETWORK_ERROR, ErrorCode.OFFLINE, ErrorCode.TIMEOUT})
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_SEEN: Final = {"account": "TEXT NOT NULL UNIQUE", "at": "REAL", "encrypted__listing": "TEXT"}
_SENT: Final = {
    "name": "TEXT NOT NULL UNIQUE",
    "state": "TEXT",
    "at": "REAL",
    "encrypted__about": "TEXT",
}
_OLD: Final = "SELECT id FROM sent ORDER BY id DESC LIMIT 100 OFFSET ?"
_SENDING: Final = asyncio.Lock()
"""Held from looking whether a message was sent until its outcome is stored."""
SENT, FAILED, UNKNOWN = "sent", "failed", "unknown"


def request(ctx: ToolContext, do: str, **more: Json) -> dict[str, Json]:
    """Return a request to the worker, with the account in it. It names the file of the secret,
    which only the worker reads.
    """
    known = {key: ctx.config.get(key, None) for key in SETTINGS}
    settings = {key: value for key, value in known.items() if value is not None}
    return {"do": do, "settings": settings, **more}


async def ask(ctx: ToolContext, do: str, **more: Json) -> dict[str, Any]:
    """Ask the worker for something that changes nothing."""
    return await ctx.workers.ask("mail", request(ctx, do, **more), deadline_s=READ_S)


def sender(message: Mapping[str, Json]) -> str:
    """Return who a message is from, as the lens shows it."""
    return shown(message["from"])


def shown(person: Mapping[str, Json]) -> str:
    """Return a person as the lens shows one. A name that looks like an address is not shown in its
    place.
    """
    name, address = person["name"], person["address"]
    return str(address or "unknown" if not name or "@" in name else name)


def ago(seconds: float) -> str:
    """Return an age in words: `5 min ago`."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {'day' if unit == 'days' and count == 1 else unit} ago"
    return "just now"


def listing(messages: Sequence[Mapping[str, Json]], now: float) -> str:
    """Return messages for the lens: one a line; of those that were sent, to whom."""
    lines = []
    for message in messages:
        age = ""
        if message["date"]:
            age = f"({ago(now - datetime.fromisoformat(message['date']).timestamp())})"
        who = _recipients(message["to"]) if "to" in message else sender(message)
        about = f"{who}: {message['subject'] or 'no subject'}"
        lines.append(f"- {about} {_beside(about, age)}".rstrip())
    return "\n".join(lines)


async def remember(ctx: ToolContext, messages: Sequence[Mapping[str, Json]]) -> None:
    """Keep what the ids of these messages stand for."""
    await naming.remember(ctx, {each["id"]: _words(each) for each in messages if "id" in each})


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the words for the id of a message that was listed or read before."""
    return await naming.name_known(ctx.db, "id", "mail", args["id"])


def _words(message: Mapping[str, Json]) -> str:
    """Return a message in words: sender, subject, time."""
    found = [sender(message), message["subject"] or "no subject"]
    if message["date"]:
        found.append(naming.written(datetime.fromisoformat(message["date"]).astimezone()))
    return ", ".join(map(str, found))


def _recipients(people: Sequence[Mapping[str, Json]]) -> str:
    more = f" and {len(people) - 1} more" if len(people) > 1 else ""
    return f"To {shown(people[0]) if people else 'nobody'}{more}"


def _beside(text: str, words: str) -> str:
    """Return English words that stay whole beside a text which may run from right to left."""
    turns = any(unicodedata.bidirectional(ch) in {"R", "AL"} for ch in text)
    return f"\u2066{words}\u2069" if turns and words else words


# ------------------------------------------------------------------ the inbox, as last seen


async def unread(ctx: ToolContext) -> tuple[dict[str, Any], float]:
    """Return the newest unread messages, with their total, and how old this answer is in seconds:
    without a connection, the last one there was. Raise `ToolFailure` if there was none.
    """
    account = _hash(ctx.config.get("username", ""), ctx.config.get("imap_host", ""))
    try:
        found = await ask(ctx, "unread")
    except ToolFailure as failure:
        seen = await _last_seen(ctx.db, account) if failure.error.code in _AWAY else None
        if seen is None:
            raise
        return seen["encrypted__listing"], max(0.0, ctx.now() - seen["at"])
    try:
        await _remember(ctx.db, account, found, ctx.now())
    except Exception as e:  # noqa: BLE001 - a full disk is no reason not to answer
        logging.getLogger(__name__).warning("unread mail was not stored: %s", type(e).__name__)
    return found, 0.0


async def _last_seen(db: Database, account: str) -> dict[str, Json] | None:
    if not await db.fetch(_THERE, "seen"):
        return None
    return next(iter(await db.select("seen", where={"account": account}, limit=1)), None)


async def _remember(db: Database, account: str, found: Mapping[str, Json], now: float) -> None:
    """Keep this listing only; that of another account is dropped."""
    await db.create_table("seen", _SEEN)
    row = {"at": now, "encrypted__listing": dict(found)}
    if not await db.update("seen", row, where={"account": account}):
        await db.delete("seen", where={})
        await db.insert("seen", {"account": account, **row})


# ------------------------------------------------------------------ sending


async def send(ctx: ToolContext, args: Mapping[str, Json]) -> dict[str, Json]:
    """Send a message once, however often this is called with one key. Return `{message_id, stored,
    repeated}`. Raise `ToolFailure`; with `partial_side_effects` if nobody knows whether it was
    sent.
    """
    name = _hash(ctx.call.user_id, ctx.call.idempotency_key or ctx.call.call_id)
    domain = str(ctx.config.get("address", "")).rpartition("@")[2]
    mail = {
        "to": list(dict.fromkeys(args["to"])),
        "subject": args["subject"],
        "text": args["text"],
        "message_id": f"<glassd.{name}@{domain}>",
        **({"id": args["id"]} if "id" in args else {}),
    }
    async with _SENDING:
        return await _send_once(ctx, name, mail)


async def _send_once(ctx: ToolContext, name: str, mail: Mapping[str, Json]) -> dict[str, Json]:
    content = _hash(*mail["to"], mail["subject"], mail["text"], mail.get("id", ""))
    before = await _record(ctx.db, name)
    if before and before["encrypted__about"]["content"] != content:
        raise ToolFailure.of(
            ErrorCode.CONFLICT,
            "Another message was sent with this idempotency key",
            suggestion="Send it with a key of its own",
        )
    if before and before["state"] == SENT:
        return {"message_id": mail["message_id"], "repeated": True}
    if before and before["state"] == UNKNOWN:
        return await _look_for(ctx, name, mail)
    await _intend(ctx, name, content, mail)
    try:
        done = await ctx.workers.ask(
            "mail", request(ctx, "send", **mail), deadline_s=SEND_S, writes=True
        )
    except ToolFailure as failure:
        if failure.error.partial_side_effects:
            raise _unknown(failure.error.message) from None
        await _settle(ctx, name, FAILED)
        raise _nothing_sent(failure) from None
    await _settle(ctx, name, SENT)
    return {"message_id": mail["message_id"], "stored": done["stored"], "repeated": False}


async def _look_for(ctx: ToolContext, name: str, mail: Mapping[str, Json]) -> dict[str, Json]:
    """Look whether a message is in the folder of sent ones. Raise `ToolFailure` if it is not: a
    server need not put it there, so nobody knows.
    """
    try:
        found = await ask(ctx, "find_sent", message_id=mail["message_id"])
    except ToolFailure as failure:
        raise _unknown(failure.error.message) from None
    if not found["there"]:
        raise _unknown("It is not in the folder of sent messages")
    await _settle(ctx, name, SENT)
    return {"message_id": mail["message_id"], "stored": True, "repeated": True}


def _unknown(reason: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.NETWORK_ERROR,
        f"Nobody knows whether the message was sent; it is not sent again by itself. {reason}",
        suggestion="Look for it with email:search, in: sent",
        retryable=False,
        partial_side_effects=True,
        for_wearer="Nobody knows whether the mail was sent.",
    )


def _nothing_sent(failure: ToolFailure) -> ToolFailure:
    """Return the failure with a sentence for the wearer that says so."""
    error = failure.error
    if error.code is not ErrorCode.NETWORK_ERROR:
        return failure
    said = "The mail server cannot be reached. Nothing was sent."
    text = error.message if "othing was sent" in error.message else f"{error.message}. {said[-17:]}"
    return ToolFailure.of(
        error.code,
        text,
        suggestion=error.suggestion,
        retry_after_ms=error.retry_after_ms,
        for_wearer=error.for_wearer if "othing was sent" in error.for_wearer else said,
    )


async def _record(db: Database, name: str) -> dict[str, Json] | None:
    if not await db.fetch(_THERE, "sent"):
        return None
    return next(iter(await db.select("sent", where={"name": name}, limit=1)), None)


async def _intend(ctx: ToolContext, name: str, content: str, mail: Mapping[str, Json]) -> None:
    """Store that a message is about to be sent: until its outcome is known, it is unknown."""
    db = ctx.db
    await db.create_table("sent", _SENT)
    row = {"state": UNKNOWN, "at": ctx.now()}
    if not await db.update("sent", row, where={"name": name}):
        about = {key: mail[key] for key in ("to", "subject", "message_id")} | {"content": content}
        await db.insert("sent", {"name": name, **row, "encrypted__about": about})
        if old := [each["id"] for each in await db.fetch(_OLD, MAX_RECORDS)]:
            await db.delete("sent", where={"id": old})


async def _settle(ctx: ToolContext, name: str, state: str) -> None:
    """Store an outcome. If it cannot be stored, it stays unknown: a repeat then looks for it."""
    try:
        await ctx.db.update("sent", {"state": state}, where={"name": name})
    except Exception as e:  # noqa: BLE001 - what was done is told all the same
        logging.getLogger(__name__).warning("an outcome was not stored: %s", type(e).__name__)


def _hash(*words: Json) -> str:
    text = "\0".join(map(str, words))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
