"""The messages that a user sent, and what became of each. One that was not delivered is announced.

An answer of the relay may come long after the call that sent a message: one that waited for the
network is answered when it has gone out, and a recipient may refuse what the relay took.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.tool import ToolContext, ToolResponse
from tools_cache.errors import ErrorCode, ToolError, ToolFailure
from tools_cache.everyday.pager.book import CHANGING, PagerBook

MAX_SENT: Final = 200
"""Sent messages that are remembered, so that a repeated call is the same message."""
NEW, WAITS, TAKEN = "", "waits", "taken"
"""`NEW`: the call that sends it has no answer yet. `TAKEN`: the relay has it."""
UNCONFIRMED: Final = "unconfirmed"
WHY: Final[Mapping[str, str]] = {
    "unknown": "nobody has this pager",
    "refused": "it was not accepted there",
    "conflict": "your own pager belongs to another device",
    "full": "too many pages wait there",
    "cancelled": "it was cancelled",
    "failed": "the cloud did not take it",
    UNCONFIRMED: "its time was over before an answer came",
}
"""Why a message was not delivered, by the word that is stored."""
_BY_CODE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INVALID_ARGUMENTS: "unknown",
    ErrorCode.CONFLICT: "conflict",
    ErrorCode.RATE_LIMIT: "full",
    ErrorCode.CANCELLED: "cancelled",
    ErrorCode.DEADLINE_EXPIRED: UNCONFIRMED,
    ErrorCode.TIMEOUT: UNCONFIRMED,
    ErrorCode.INTERRUPTED: UNCONFIRMED,
}
_BY_REPORT: Final[Mapping[str, str]] = {"refused": "refused", "expired": UNCONFIRMED}
SOON_S: Final = 0.001
_SENT: Final = "sent"
_COLUMNS: Final = {"message": "TEXT NOT NULL UNIQUE", "fate": "TEXT", "encrypted__body": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sent'"
_FORGET: Final = (
    "DELETE FROM sent WHERE id <= (SELECT id FROM sent ORDER BY id DESC LIMIT 1 OFFSET ?)"
)


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message as it was signed, and its fate: one of `NEW`, `WAITS`, `TAKEN`, or of `WHY`."""

    message: Mapping[str, Json]
    fate: str


class SentMessages:
    """The sent messages of one user. Reading creates no table, so it works on a full disk."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, message_id: str) -> SentMessage | None:
        found = await self._select({"message": message_id}, 1)
        return found[0] if found else None

    async def newest(self) -> list[SentMessage]:
        """Return messages, the newest first."""
        return await self._select(None, MAX_SENT)

    async def _select(self, where: Mapping[str, Json] | None, limit: int) -> list[SentMessage]:
        if not await self._db.fetch(_THERE):
            return []
        rows = await self._db.select(_SENT, where=where, order="-id", limit=limit)
        return [SentMessage(row["encrypted__body"], row.get("fate") or NEW) for row in rows]

    async def remember(self, message: Mapping[str, Json]) -> None:
        await self._db.create_table(_SENT, _COLUMNS)
        row = {"message": message["id"], "fate": NEW, "encrypted__body": dict(message)}
        await self._db.insert(_SENT, row)
        await self._db.execute(_FORGET, MAX_SENT)

    async def set_fate(self, message_id: str, fate: str) -> None:
        await self._db.create_table(_SENT, _COLUMNS)  # the column, in a table of before
        await self._db.update(_SENT, {"fate": fate}, where={"message": message_id})


# ------------------------------------------------------------------ what comes of it


def reason_of(error: ToolError) -> str:
    """Return the word for why the relay did not take a message."""
    return _BY_CODE.get(error.code, "failed")


async def undelivered(to: str, why: str, db: Database) -> str:
    """Return the sentence for the wearer, with the name that they gave to the recipient."""
    who = await PagerBook(db).name_of(to)
    fate = "may not have arrived" if why == UNCONFIRMED else "was not delivered"
    return f"Your page to {who} {fate}: {WHY[why]}."


async def take_late_answer(answer: ToolResponse, ctx: ToolContext) -> None:
    """Take the relay's answer to a message that waited. After a kill the call that sends it may say
    it as well, when it runs again: twice is better than never.
    """
    message = ctx.call.args.get("message")
    if not isinstance(message, dict):
        return
    sent = SentMessages(ctx.db)
    async with CHANGING:
        found = await sent.find(message["id"])
        if found is not None and found.fate not in (NEW, WAITS):
            return
        if answer.error is None:
            await sent.set_fate(message["id"], TAKEN)
            return
        why = reason_of(answer.error)
        await _tell(message, why, ctx)
        await sent.set_fate(message["id"], why)


async def take_report(report: Mapping[str, Json], ctx: ToolContext) -> dict[str, Json]:
    """Take the relay's word that a message it had taken was not delivered; the same one again is
    answered as before. Raises `ToolFailure`: DENIED if it was not sent from here.
    """
    sent, why = SentMessages(ctx.db), _BY_REPORT[report["reason"]]
    async with CHANGING:
        found = await sent.find(report["id"])
        if found is None or found.message["to"] != report["to"]:
            raise ToolFailure.of(ErrorCode.DENIED, f"No message {report['id']} was sent from here")
        if found.fate != why:
            await _tell(found.message, why, ctx)
            await sent.set_fate(report["id"], why)
    return {"id": report["id"]}


async def _tell(message: Mapping[str, Json], why: str, ctx: ToolContext) -> None:
    """Announce it, once for each message. Without room among the alarms only the list of sent
    messages says it.
    """
    text = await undelivered(message["to"], why, ctx.db)
    try:
        await ctx.alarms.set(SOON_S, text, key=f"sent {ctx.call.user_id} {message['id']}")
    except ToolFailure as e:
        if e.error.code is not ErrorCode.CONFLICT:
            raise
