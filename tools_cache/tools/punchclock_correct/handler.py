"""Corrects the entries of work. The wearer confirmed the call before it runs."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.naming import name_one
from tools_cache.everyday.punch_clock import PunchClock, project_name
from tools_cache.everyday.work_hours import forgotten, with_forgotten

_NEEDED = {"change": ("entry",), "add": ("start", "end"), "remove": ("entry",)}
_UNUSED = {"change": (), "add": ("entry",), "remove": ("start", "end", "project")}
_CHANGEABLE = ("start", "end", "project")
_DONE = {"change": "Changed", "add": "Added", "remove": "Removed"}


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Change, add or remove an entry; returns once it is on disk."""
    action = args.get("action", "change")
    _check_fields(action, args)
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    given: dict[str, Json] = {
        field: clock.calendar.read(args[field], field)
        for field in ("start", "end")
        if field in args
    }
    if "project" in args:
        given["project"] = project_name(args["project"])
    if action == "add":
        entry = await clock.add(given.get("project", ""), given["start"], given["end"])
    elif action == "remove":
        entry = await clock.remove(args["entry"])
    else:
        entry = await clock.change(args["entry"], given)
    late = [] if action == "remove" else forgotten([entry], clock.now)
    name = f", {entry.project}" if entry.project else ""
    text = f"{_DONE[action]}: {clock.span(entry)}{name} (entry {entry.id})"
    return {
        "data": {
            **clock.to_json(entry),
            "action": action,
            "forgotten": late,
            "text": with_forgotten(text, late),
        }
    }


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the times and the project of the entry that is meant, if no other has the same."""
    if "entry" not in args:
        return {}
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    work = await clock.read()
    meant = work.find(args["entry"])
    others = [clock.words(each) for each in work.entries if each.id != meant.id]
    return name_one("entry", "entry", clock.words(meant), others)


def _check_fields(action: str, args: Mapping[str, Json]) -> None:
    """Raise `ToolFailure` if a field is missing for the action, or does not go with it."""
    problem = fix = ""
    if missing := [field for field in _NEEDED[action] if field not in args]:
        problem, fix = f"/{missing[0]} is missing to {action} an entry", f"Give {missing[0]}"
        if missing[0] == "entry":
            fix = "punchclock:report gives the numbers of the entries"
    elif unused := [field for field in _UNUSED[action] if field in args]:
        problem = f"/{unused[0]} does not go with {action}"
        fix = f"Leave out {unused[0]}, or give another action"
    elif action == "change" and not any(field in args for field in _CHANGEABLE):
        problem = "nothing to change was given"
        fix = f"Give one of {', '.join(_CHANGEABLE)}"
    if problem:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
        )
