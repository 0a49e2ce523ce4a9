"""Uses of the tools that need nothing beyond this machine: reminder, punchclock, domaindoc,
context, continuum.
"""

import asyncio
import time

from edge.ports import Wait
from tests.scenarios.everyday.three_ways import FIELDS, Scene, Step, Use, both, finds, first, lacks
from tests.scenarios.world import SOON_S
from tools_cache.api.history import HistoryQuery

PAST_DAY = "2025-03-03"
HOURS = {"Vera": "09", "Carl": "12", "Mona": "15"}
"""Who it is about → when that person worked on that day: times of work do not overlap."""
DAY_S = 86_400

REMINDER = (
    Use(
        "reminder:add",
        "Tomorrow 09:00: call {who}",
        say="remind me tomorrow at nine to call {who}",
        args={"text": "tomorrow at nine to call {who}"},
        then=finds("call {who}", "reminder:list", range="tomorrow"),
    ),
    Use(
        "reminder:list",
        "Tomorrow 08:15: feed {who}",
        say="what are my reminders for tomorrow",
        args={"range": "tomorrow"},
        before=first("reminder:add", text="tomorrow at 8:15 to feed {who}"),
    ),
    Use(
        "reminder:complete",
        "Done: visit {who}",
        say="mark the reminder visit {who} as done",
        args={"reminder": "visit {who}"},
        before=first("reminder:add", text="tomorrow at ten to visit {who}"),
        then=lacks("visit {who}", "reminder:list", range="tomorrow"),
    ),
    Use(
        "reminder:update",
        "12:00: paint {who}",
        unspoken=FIELDS,
        args={"reminder": "paint {who}", "when": "tomorrow at noon"},
        before=first("reminder:add", text="tomorrow at ten to paint {who}"),
        then=finds("Tomorrow 12:00: paint {who}", "reminder:list", range="tomorrow"),
    ),
    Use(
        "reminder:remove",
        "Removed: thank {who}",
        say="remove the reminder thank {who}",
        args={"reminder": "thank {who}"},
        asks="Remove this reminder?",
        before=first("reminder:add", text="tomorrow at ten to thank {who}"),
        then=lacks("thank {who}", "reminder:list", range="all"),
    ),
)


# ------------------------------------------------------------------ punchclock


async def worked_yesterday(scene: Scene) -> None:
    if (await scene.do("punchclock:report", period="yesterday"))["total_s"] == 0:
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - DAY_S))
        span = {"start": f"{day}T09:00", "end": f"{day}T10:30"}
        await scene.do("punchclock:correct", action="add", project="Alpha", **span)


async def set_hour(scene: Scene) -> None:
    scene.known["hour"] = HOURS[scene.known["who"]]


PUNCHCLOCK = (
    Use(
        "punchclock:start",
        "Working on {who} since",
        say="start working on {who}",
        args={"project": "{who}"},
        before=first("punchclock:stop"),
        then=finds("Working on {who}", "punchclock:status"),
    ),
    Use(
        "punchclock:pause",
        "Paused since",
        say="I take a break",
        before=first("punchclock:start", project="{who}"),
        then=finds("paused", "punchclock:status"),
    ),
    Use(
        "punchclock:stop",
        "Stopped {who} after",
        say="clock out",
        before=first("punchclock:start", project="{who}"),
        then=finds("Not working", "punchclock:status"),
    ),
    Use(
        "punchclock:status",
        "Working on {who} since",
        say="what am I working on",
        before=first("punchclock:start", project="{who}"),
    ),
    Use(
        "punchclock:report",
        "Yesterday 1 h 30 min: Alpha 1 h 30 min",
        say="how many hours did I work yesterday",
        args={"period": "yesterday"},
        before=worked_yesterday,
    ),
    Use(
        "punchclock:correct",
        "3 Mar 2025, {hour}:00 to {hour}:45, {who}",
        unspoken="It needs two moments, or the number of an entry.",
        args={
            "action": "add",
            "start": f"{PAST_DAY}T{{hour}}:00",
            "end": f"{PAST_DAY}T{{hour}}:45",
            "project": "{who}",
        },
        asks="Correct working times?",
        before=set_hour,
        then=finds("{who}", "punchclock:report", period="day", date=PAST_DAY),
    ),
)


# ------------------------------------------------------------------ domaindoc


def written(title: str) -> Step:
    return first("domaindoc:create", title=title, text="# Beds\nPeas for {who}")


DOMAINDOC = (
    Use(
        "domaindoc:create",
        "Created: Plan of {who}",
        say="create a document called Plan of {who}",
        args={"title": "Plan of {who}", "text": "# Beds\nPeas"},
        then=finds("Plan of {who}", "domaindoc:list"),
    ),
    Use(
        "domaindoc:list",
        "About {who}",
        say="list my documents",
        before=written("About {who}"),
    ),
    Use(
        "domaindoc:read",
        "Peas for {who}",
        say="open the document garden of {who}",
        args={"document": "garden of {who}"},
        before=written("Garden of {who}"),
    ),
    Use(
        "domaindoc:search",
        "Yard of {who}, Beds",
        say="search my documents for larkspur{who}",
        args={"query": "larkspur{who}"},
        before=first("domaindoc:create", title="Yard of {who}", text="# Beds\nlarkspur{who}"),
    ),
    Use(
        "domaindoc:edit",
        "Field of {who}, Beds: changed",
        unspoken="It needs a section, and a text for it.",
        args={
            "document": "Field of {who}",
            "section": "Beds",
            "action": "append",
            "text": "Beans",
        },
        before=written("Field of {who}"),
        then=finds("Beans", "domaindoc:read", document="Field of {who}", section="Beds"),
    ),
    Use(
        "domaindoc:restore",
        "Grove of {who}: version 1 is back",
        unspoken="It needs the number of a version.",
        args={"document": "Grove of {who}", "version": 1},
        before=both(
            written("Grove of {who}"),
            first("domaindoc:edit", document="Grove of {who}", section="Beds", text="Weeds"),
        ),
        then=lacks("Weeds", "domaindoc:read", document="Grove of {who}", section="Beds"),
    ),
    Use(
        "domaindoc:remove",
        "Removed: Pond of {who}",
        say="remove the document pond of {who}",
        args={"document": "pond of {who}"},
        asks="Remove this document?",
        before=written("Pond of {who}"),
        then=lacks("Pond of {who}", "domaindoc:list"),
    ),
)


# ------------------------------------------------------------------ the history


def was_shown(text: str) -> Step:
    """Let the wearer have seen this text, and wait until that is stored."""

    async def step(scene: Scene) -> None:
        shown = scene.fill(text)
        answer = await scene.place.call("glasses:show_text", {"text": shown}, wait=Wait.DELIVERY)
        assert answer.ok, answer
        await _until_kept(scene, shown, 1, "called")

    return step


def is_forgotten(text: str) -> Step:
    async def step(scene: Scene) -> None:
        await _until_kept(scene, scene.fill(text), 0)

    return step


async def _until_kept(scene: Scene, text: str, times: int, kind: str = "") -> None:
    """Wait until the recorder, which follows the answers, has a text so many times."""
    history = scene.place.daemon.tool_services.history("local")
    wanted = HistoryQuery(words=tuple(text.split()), kind=kind)
    async with asyncio.timeout(SOON_S):
        while (await history.search(wanted)).total != times:
            await asyncio.sleep(0.01)


HISTORY = (
    Use(
        "context:recent",
        "Gate of {who}",
        say="what was on the lens",
        before=was_shown("Gate of {who}"),
    ),
    Use(
        "continuum:search",
        "Dentist{who} at noon",
        say="search my history for dentist{who}",
        args={"query": "dentist{who}"},
        before=was_shown("Dentist{who} at noon"),
    ),
    Use(
        "continuum:forget",
        "Forgotten: ",
        say="forget everything about strike{who}",
        args={"what": "strike{who}"},
        asks="Delete this from the history?",
        before=was_shown("Strike{who} of the trains"),
        then=is_forgotten("Strike{who} of the trains"),
    ),
)

AT_HOME = (*REMINDER, *PUNCHCLOCK, *DOMAINDOC, *HISTORY)
