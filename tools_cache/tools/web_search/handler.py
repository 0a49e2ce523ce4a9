"""Searches the web."""

from collections.abc import Mapping, Sequence
from typing import Final

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.web_searches import LastAnswer, LastAnswers

DEADLINE_S: Final = 12.0
AWAY: Final = frozenset({ErrorCode.NETWORK_ERROR, ErrorCode.RATE_LIMIT})
"""Failures after which the last known answer is better than none."""
_AGES: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return what the service finds; while it is away, what it found last, with its age."""
    query, limit = " ".join(args["query"].split()), args.get("limit", 10)
    if not query:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /query holds only blanks",
            suggestion="Give a word",
        )
    last = LastAnswers(ctx.db)
    request = {
        "do": "search",
        "query": query,
        **{key: ctx.config[key] for key in ("search_url", "search_form", "key_file")},
    }
    try:
        found = await ctx.workers.ask("web", request, deadline_s=DEADLINE_S)
    except ToolFailure as failure:
        known = await last.find(query) if failure.error.code in AWAY else None
        if known is None:
            raise
        age_s = max(0.0, ctx.now() - known.at)
        text = f"Found {_roughly(age_s)} ago\n{_lines(query, known.results[:limit])}"
        more = {"age_s": round(age_s), "reason": failure.error.message}
        return _result(query, known.results[:limit], text, more)
    results = found["results"]
    await _store(last, query, LastAnswer(results, ctx.now()), ctx)
    return _result(query, results[:limit], _lines(query, results[:limit]), {})


async def _store(last: LastAnswers, query: str, answer: LastAnswer, ctx: ToolContext) -> None:
    try:
        await last.store(query, answer)
    except Exception as e:  # noqa: BLE001 - an answer that cannot be stored is still an answer
        ctx.log.warning("the answer is not stored: %s", e)


def _result(
    query: str, results: Sequence[Mapping[str, Json]], text: str, more: Mapping[str, Json]
) -> Json:
    return {"data": {"query": query, "results": list(results), **more, "text": text}}


def _lines(query: str, results: Sequence[Mapping[str, Json]]) -> str:
    """Return what the lens shows: the titles, numbered, each with its host."""
    lines = [f"{n}. {one['title']} ({one['host']})" for n, one in enumerate(results, 1)]
    return "\n".join(lines) or f"Nothing found: {query}"


def _roughly(seconds: float) -> str:
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "less than 1 min"
