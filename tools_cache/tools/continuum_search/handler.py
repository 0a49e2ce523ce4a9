"""Searches the history."""

from collections.abc import Mapping

from tools_cache.api.history import (
    OFF,
    HistoryQuery,
    invalid,
    listing,
    read_range,
    to_json,
    words_of,
    zone_of,
)
from tools_cache.api.tool import Json, ToolContext

ANY = "*"
MAX_WORDS = 32


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the newest entries that match, ten at most."""
    zone, history, now = zone_of(ctx.config.get("timezone", "")), ctx.history, ctx.now()
    since, until = read_range(args, now, zone)
    person, kind, query = (
        args.get("person", ""),
        args.get("kind", ""),
        str(args.get("query", "")).strip(),
    )
    words = words_of(query, MAX_WORDS)
    names = words_of(person, MAX_WORDS)
    if person and not names:
        raise invalid("/person contains no name", "Give a name")
    others = since is not None or until is not None or names or kind
    if not words and not (query == ANY and others):
        raise invalid("/query contains no word", 'Give a word; or "*" and a day, person or kind')
    wanted = HistoryQuery(words=(*words, *names), since=since, until=until, kind=kind)
    found = await history.search(wanted)
    text = listing(found.entries, now, zone)
    if not text:
        text = f"Nothing found: {query if words else person or args.get('since', kind)}"
        text = text if history.recording else f"{text}\n{OFF}"
    entries = [to_json(entry, zone) for entry in found.entries]
    return {"data": {"entries": entries, "total": found.total, "text": text}}
