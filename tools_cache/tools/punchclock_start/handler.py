"""Starts work."""

from collections.abc import Mapping

from tools_cache.api.tool import CallOrigin, Json, ToolContext
from tools_cache.everyday.punch_clock import PunchClock, project_name

_SMALL_TALK = frozenset("now please again jetzt bitte wieder ahora maintenant adesso".split())
"""Last words of a sentence that are no part of a project's name."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Begin work, end a pause or switch the project; returns once it is on disk."""
    project = project_name(args.get("project", ""))
    if ctx.call.origin is CallOrigin.VOICE:
        project = _without_small_talk(project)
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    work, new = await clock.start(project)
    return {"data": {**clock.answer(work, day=False), "started": new}}


def _without_small_talk(project: str) -> str:
    words = project.split()
    if len(words) > 1 and words[0].casefold() == "an":
        words = words[1:]  # "ich arbeite jetzt an Alpha": read as an English article, it stays
    while words and words[-1].casefold().strip(".,!?") in _SMALL_TALK:
        words.pop()
    return " ".join(words)
