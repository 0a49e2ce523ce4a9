"""Deletes entries of the history."""

from collections.abc import Mapping

from tools_cache.api.history import HistoryQuery, invalid, read_range, words_of, zone_of
from tools_cache.api.tool import Json, ToolContext

EVERYTHING = "*"
MAX_WORDS = 32
STAYS = "Notes, and what others have, stay."


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Delete what matches; returns once it is gone from disk."""
    since, until = read_range(args, ctx.now(), zone_of(ctx.config.get("timezone", "")))
    what = str(args.get("what", "")).strip()
    words = words_of(what, MAX_WORDS)
    if not words and what != EVERYTHING:
        raise invalid("/what contains no word", 'Give a word, or "*" for everything')
    gone = await ctx.history.forget(HistoryQuery(words=words, since=since, until=until))
    entries = f"{gone.entries} {'entry' if gone.entries == 1 else 'entries'}"
    calls = f"{gone.calls} {'call' if gone.calls == 1 else 'calls'}"
    text = f"Forgotten: {entries}, {calls}. {STAYS}"
    if not gone.entries and not gone.calls:
        text = "Nothing found to forget"
    return {"data": {"forgotten": gone.entries, "calls": gone.calls, "text": text}}
