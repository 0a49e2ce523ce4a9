"""Returns the newest entries of the history."""

from collections.abc import Mapping

from tools_cache.api.history import OFF, HistoryQuery, listing, to_json, zone_of
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return what was called, shown and said in the last minutes."""
    zone, history, now = zone_of(ctx.config.get("timezone", "")), ctx.history, ctx.now()
    minutes = args.get("minutes", 60)
    query = HistoryQuery(
        since=now - 60 * minutes, kind=args.get("kind", ""), limit=args.get("limit", 5)
    )
    found = await history.search(query)
    text = listing(found.entries, now, zone)
    if not text:
        text = f"Nothing in the last {_span(minutes)}" if history.recording else OFF
    entries = [to_json(entry, zone) for entry in found.entries]
    return {"data": {"entries": entries, "total": found.total, "text": text}}


def _span(minutes: int) -> str:
    """Return "hour", "2 hours" or "90 minutes", as it stands after "the last"."""
    count, unit = (minutes // 60, "hour") if minutes % 60 == 0 else (minutes, "minute")
    return unit if count == 1 else f"{count} {unit}s"
