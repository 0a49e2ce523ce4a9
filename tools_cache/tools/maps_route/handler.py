"""Finds the way to a place."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext, ToolFailure
from tools_cache.everyday.geography import length, minutes
from tools_cache.everyday.maps import (
    AWAY,
    BY,
    MOST_SHOWN,
    CurrentRoute,
    Route,
    ask,
    spoken_target,
    wanted,
)


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the way, and keep it; without the network the kept one if it is the same."""
    to, by = spoken_target(args["to"], args.get("by", ""))
    start, routes = " ".join(args.get("from", "").split()), CurrentRoute(ctx.db)
    what = wanted(to, start, by)
    try:
        answer = await ask(ctx, ask="route", **{"to": to, "from": start, "by": by})
    except ToolFailure as failure:
        kept = await routes.find() if failure.error.code in AWAY else None
        if kept is None or kept.wanted != what:
            raise
        age_s = round(max(0.0, ctx.now() - kept.asked))
        old = {"age_s": age_s, "warning": failure.error.message}
        return _result(kept, ctx, kept.age(ctx.now()), old)
    route = Route(what, answer["route"], ctx.now())
    await routes.keep(route)
    return _result(route, ctx)


def _result(
    route: Route, ctx: ToolContext, note: str = "", old: Mapping[str, Json] | None = None
) -> Json:
    """Return the route. On the lens a page begins with each step; the first one has the summary
    too, and is spoken.
    """
    found, units = route.route, str(ctx.config.get("units", "metric"))
    sentences = [route.sentence(number, units) for number in range(len(route.steps))]
    how = f"{minutes(found['duration_s'])} {BY[found['by']]}"
    summary = f"{found['to']['name']}: {length(found['distance_m'], units)}, {how}"
    head = [summary, *filter(None, [note])]
    steps = [f"{number}. {line}" for number, line in enumerate(sentences[:MOST_SHOWN], 1)]
    if len(sentences) > MOST_SHOWN:
        steps.append(f"… {len(sentences) - MOST_SHOWN} more steps")
    data = {
        "from": found["from"],
        "to": found["to"],
        "by": found["by"],
        "distance_m": found["distance_m"],
        "duration_s": found["duration_s"],
        "steps": sentences,
        "step": route.step + 1,
        "text": "\n".join([*head, *steps]),
        **(old or {}),
    }
    pages = ["\n".join([*head, steps[0]]), *steps[1:]]
    display = {"layout": "text_wall", "pages": pages}
    return {
        "data": data,
        "render": {"display": display, "audio": {"text": "\n".join([*head, sentences[0]])}},
    }
