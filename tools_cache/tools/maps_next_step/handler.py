"""Goes through the steps of a route."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.maps import OLD_S, CurrentRoute

SCENE = "maps-step"
"""A step takes the place of the one before on the lens."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Go one step on or back; returns once the step is on disk."""
    route = await CurrentRoute(ctx.db).move(-1 if args.get("back", False) else 1)
    sentence = route.sentence(route.step, str(ctx.config.get("units", "metric")))
    age_s, of = max(0.0, ctx.now() - route.asked), len(route.steps)
    lines = [sentence, f"Step {route.step + 1} of {of}"]
    if age_s > max(OLD_S, route.route["duration_s"]):
        lines.append(route.age(ctx.now()))
    text = "\n".join(lines)
    data = {
        "step": route.step + 1,
        "of": of,
        "instruction": sentence,
        "distance_m": route.steps[route.step]["distance_m"],
        "age_s": round(age_s),
        "text": text,
    }
    display = {"layout": "text_wall", "text": text, "scene": SCENE}
    return {"data": data, "render": {"display": display, "audio": {"text": sentence}}}
