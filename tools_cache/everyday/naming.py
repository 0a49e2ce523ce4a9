"""Words for things that tools know by ids or numbers, which a question shows in their place.

What belongs to another machine, such as a mail, is kept here with its words when it is listed.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from tools_cache.api.handed import Database
from tools_cache.api.tool import Named, ToolContext

MOST: Final = 200
"""Things that are kept, the latest."""
MAX_WORDS: Final = 300
"""Characters of one."""
_TABLE: Final = "named"
_COLUMNS: Final = {"name": "TEXT NOT NULL UNIQUE", "encrypted__words": "TEXT"}
_ROW: Final = "things"
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'named'"
_CHANGING: Final = asyncio.Lock()
log = logging.getLogger(__name__)


def written(moment: datetime) -> str:
    """Return "Sat 28 Nov 2026, 09:12": the same on every day."""
    return f"{moment:%a} {moment.day} {moment:%b} {moment.year}, {moment:%H:%M}"


def name_one(argument: str, label: str, words: str, others: Iterable[str]) -> dict[str, Named]:
    """Return the words for an argument; nothing if another thing has the same, because then they
    would not say which one is meant.
    """
    return {} if words in others else {argument: Named(label, words)}


async def remember(ctx: ToolContext, things: Mapping[str, str]) -> None:
    """Keep the words for ids that were listed. Where they cannot be kept, as on a full disk, a
    question shows the id.
    """
    if not things:
        return
    try:
        db = ctx.db
        async with _CHANGING:
            await db.create_table(_TABLE, _COLUMNS)
            before = await _known(db)
            cut = {thing: words[:MAX_WORDS] for thing, words in things.items()}
            if all(before.get(thing) == words for thing, words in cut.items()):
                return
            kept = {thing: words for thing, words in before.items() if thing not in cut} | cut
            row = {"encrypted__words": dict(list(kept.items())[-MOST:])}
            if not await db.update(_TABLE, row, where={"name": _ROW}):
                await db.insert(_TABLE, {"name": _ROW, **row})
    except Exception as e:  # noqa: BLE001 - that is no reason not to answer
        log.warning("the names of listed things were not stored: %s", type(e).__name__)


async def name_known(db: Database, argument: str, label: str, thing: str) -> dict[str, Named]:
    """Return the words for an id that was listed before, nothing for another."""
    known = await _known(db) if await db.fetch(_THERE) else {}
    if thing not in known:
        return {}
    others = (words for other, words in known.items() if other != thing)
    return name_one(argument, label, known[thing], others)


async def _known(db: Database) -> dict[str, str]:
    rows = await db.select(_TABLE, where={"name": _ROW}, limit=1)
    return dict(rows[0]["encrypted__words"]) if rows else {}
