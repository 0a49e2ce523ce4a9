"""Deletes entries of the history."""

from collections.abc import Mapping

from tools_cache.api.history import HistoryQuery, invalid, read_range, words_of, zone_of
from tools_cache.api.tool import Json, ToolContext

EVERYTHING = "*"
MAX_WORDS = 32


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Delete what matches; returns once it is gone from disk."""
    since, until = read_range(args, ctx.now(), zone_of(ctx.config.get("timezone", "")))
    what = str(args.get("what", "")).strip()
    words = words_of(what, MAX_WORDS)
    if not words and what != EVERYTHING:
        raise invalid("/what contains no word", 'Give a word, or "*" for everything')
    gone = await ctx.history.forget(HistoryQuery(words=words, since=since, until=until))
    text = f"Forgotten: {gone} {'entry' if gone == 1 else 'entries'}"
    return {"data": {"forgotten": gone, "text": text}}
