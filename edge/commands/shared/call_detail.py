"""One call in detail, for a person: what, who, when, every state it went through, and how its
answer reached the wearer.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from edge.commands.shared.console import Screen, duration, for_people, json_text, plain
from edge.commands.shared.response_format import delivered

_GOOD: Final = frozenset({"ANSWERED", "DELIVERED"})
_BAD: Final = frozenset({"FAILED", "EXPIRED", "CANCELLED"})
_OPEN: Final = "none yet"
WAITS_FOR: Final = {
    "AWAITING_CONFIRMATION": "a yes: answer on the glasses, or glassd confirm",
    "ADMITTED": "its turn",
    "RUNNING": "its tool",
}
PENDING_FOR: Final = {
    "queue": "the cloud's result",
    "cloud": "the cloud's result",
    "wearer": "the wearer",
}


def show(story: dict[str, Any], screen: Screen) -> None:
    """Print a title, the facts, the states with their times, the answer."""
    state = str(story.get("state", ""))
    painted = screen.paint(
        plain(state), "green" if state in _GOOD else "red" if state in _BAD else "yellow"
    )
    screen.line(f"{screen.paint(plain(story.get('tool', '')), 'bold')}  {painted}")
    screen.table([(f"{name:<9}", value) for name, value in _facts(story) if value])
    steps = story.get("steps") or []
    if steps:
        screen.line("states")
        screen.table([_step(step) for step in steps], indent="  ")
    _answer(story, screen)


def waits_for(call: dict[str, Any]) -> str:
    """Return what a call without an answer waits for; for a pending call that follows from its
    route.
    """
    state, route = str(call.get("state")), str(call.get("route"))
    if state == "PENDING":
        return PENDING_FOR.get(route) or f"its result: glassd answer {call.get('call_id')}"
    return WAITS_FOR.get(state, "its answer")


def _facts(story: dict[str, Any]) -> Iterator[tuple[str, str]]:
    request = story.get("request") or {}
    yield "call", str(story.get("call_id", ""))
    yield "asked", _when(story)
    yield "by", _who(story, request)
    yield "arguments", json_text(request["args"]) if request.get("args") else ""
    yield "route", str(story.get("route") or "")
    yield "attempts", str(_attempts(story) or "")
    for number, key in enumerate(_keys(story, request)):
        yield ("" if number else "key"), key
    yield "delivery", delivered(story["delivery"]) if story.get("delivery") else _OPEN


def _when(story: dict[str, Any]) -> str:
    wall, age = story.get("created_wall"), story.get("age_s")
    parts = (
        [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))]
        if isinstance(wall, int | float)
        else []
    )
    return ", ".join(parts + ([f"{duration(age)} ago"] if isinstance(age, int | float) else []))


def _who(story: dict[str, Any], request: dict[str, Any]) -> str:
    """Return who made the call: origin, mode, user, session and turn."""
    user, session, turn = (
        story.get("user_id") or request.get("user_id"),
        request.get("session"),
        request.get("turn_id"),
    )
    named = [str(request[key]) for key in ("origin", "mode") if request.get(key)]
    named += [
        f"{what} {value}"
        for what, value in (("user", user), ("session", session), ("turn", turn))
        if value
    ]
    return ", ".join(named)


def _attempts(story: dict[str, Any]) -> int:
    """Return how often the call was run; an older daemon only lists the attempts as steps."""
    counted = story.get("attempts")
    return (
        counted
        if isinstance(counted, int)
        else sum(step.get("state") == "RUNNING" for step in story.get("steps") or [])
    )


def _keys(story: dict[str, Any], request: dict[str, Any]) -> Sequence[str]:
    """Return the idempotency keys, the one that decides first."""
    return [
        str(key)
        for key in story.get("keys")
        or ([request["idempotency_key"]] if request.get("idempotency_key") else [])
    ]


def _step(step: dict[str, Any]) -> tuple[str, ...]:
    after = step.get("after_s")
    return (
        _since(after) if isinstance(after, int | float) else "",
        str(step.get("state", "")),
        str(step.get("note") or ""),
    )


def _since(after_s: float) -> str:
    return f"+{after_s:8.3f} s" if after_s < 1000 else f"+{duration(after_s):>10}"


def _answer(story: dict[str, Any], screen: Screen) -> None:
    response = story.get("response") or {}
    error = response.get("error")
    if not response:
        screen.line(f"answer     {_OPEN}; it waits for {plain(waits_for(story))}")
    elif error:
        screen.line(
            screen.paint(f"answer     {plain(error.get('code', ''))}", "red")
            + f": {plain(error.get('message', ''))}"
        )
        for name, key in (("next", "suggestion"), ("details", "details")):
            if error.get(key):
                screen.line(f"{name:<9}  {for_people(error[key])}")
        if error.get("partialSideEffects"):
            screen.line("           it may have taken effect in part")
    else:
        screen.line("answer     ok")
        if response.get("data") is not None:
            screen.line(
                "\n".join(f"  {line}" for line in for_people(response["data"]).splitlines())
            )
