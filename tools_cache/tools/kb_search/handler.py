"""Searches the knowledge base."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from tools_cache.api.knowledge import FIELDS, Evidence, Question, ranked, terms
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Give up to `top_k` pieces of evidence, best first."""
    question = _question(args)
    found = ranked(await ctx.knowledge.search(question), question.limit)
    fields = [
        f
        for f in args.get("return_fields", FIELDS)
        if f != "snippet" or args.get("include_snippets", True)
    ]
    text = "\n".join(map(_line, found)) or f"Nothing found: {args['query']}"
    return {
        "data": {
            "results": [one.to_json(fields) for one in found],
            "total": len(found),
            "text": text,
        }
    }


def _question(args: Mapping[str, Json]) -> Question:
    words = terms(args["query"])
    if not words:
        raise _invalid("/query contains no word", "Give a word")
    filters = args.get("filters", {})
    days = filters.get("date_range", {})
    since, until = _midnight(days.get("from")), _midnight(days.get("to"), after=True)
    if since is not None and until is not None and since >= until:
        raise _invalid("/filters/date_range ends before it begins", "Swap from and to")
    return Question(
        terms=words,
        namespace=args.get("namespace", "studio"),
        limit=args.get("top_k", 5),
        type=filters.get("type", ""),
        tags=tuple(filters.get("tags", ())),
        since=since,
        until=until,
    )


def _midnight(day: str | None, *, after: bool = False) -> float | None:
    """Return the moment a day begins, or the one after it ends, in UTC. Raises `ToolFailure`."""
    if day is None:
        return None
    try:
        begins = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    except ValueError:  # the format "date" has a year 0, which no clock shows
        raise _invalid(
            f"/filters/date_range {day} is not a date", "Give dates like 2026-11-23"
        ) from None
    return begins.timestamp() + (timedelta(days=1).total_seconds() if after else 0)


def _line(one: Evidence) -> str:
    if one.snippet and one.snippet != one.title:
        return f"- {one.title}: {one.snippet}"
    return f"- {one.title}"


def _invalid(problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
    )
