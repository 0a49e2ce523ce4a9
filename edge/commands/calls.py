"""`glassd calls`: recent calls, pending calls, one in detail. `glassd cancel`: cancel a call."""

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from edge.commands.shared.console import Screen, for_people, json_text, plain
from edge.commands.shared.daemon import ask, delivered
from edge.runtime.durations import duration

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


def calls(args: Namespace, screen: Screen) -> int:
    if args.id:
        call = ask(args, "GET", f"/v1/calls/{quote(args.id, safe='')}")
        if screen.as_json:
            screen.json(call)
        else:
            show(call, screen)
        return 0
    document = ask(args, "GET", f"/v1/calls?limit={args.limit}&pending={int(args.pending)}")
    if screen.as_json or not document["calls"]:
        none = (
            "No calls are pending." if args.pending else "No calls yet. Try: glassd call clock:now"
        )
        return screen.result(document, none)
    row = _waiting if args.pending else _row
    screen.table(_without_empty_columns([row(call) for call in document["calls"]]))
    return 0


def cancel(args: Namespace, screen: Screen) -> int:
    body = {"reason": args.reason or "cancelled on the command line"}
    answer = ask(args, "POST", f"/v1/calls/{quote(args.id, safe='')}/cancel", body, who="either")
    call_id = plain(args.id)
    return screen.result(answer, f"{call_id} is cancelled; show it: glassd calls {call_id}")


def _row(call: dict[str, Any]) -> tuple[str, ...]:
    answer = call.get("code") or ("ok" if call.get("ok") else "")
    reached = delivered(call["delivery"]) if call.get("delivery") else ""
    return (*_head(call), str(call.get("route") or ""), answer, reached)


def _waiting(call: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of a call without an answer: what it waits for, and the time it has left."""
    left = call.get("left_s")
    life = f"{duration(max(0.0, left))} left" if isinstance(left, int | float) else ""
    return (*_head(call), life, f"waits for {waits_for(call)}")


def _head(call: dict[str, Any]) -> tuple[str, ...]:
    call_id, tool, state = (str(call.get(key) or "") for key in ("call_id", "tool", "state"))
    return call_id, _age(call), tool, state


def _without_empty_columns(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    filled = [any(column) for column in zip(*rows, strict=True)]
    return [tuple(cell for cell, shown in zip(row, filled, strict=True) if shown) for row in rows]


def _age(call: dict[str, Any]) -> str:
    return f"{duration(call['age_s'])} ago" if isinstance(call.get("age_s"), int | float) else ""


# ------------------------------------------------------------------ one call in detail


def show(call: dict[str, Any], screen: Screen) -> None:
    """Print a title, the facts, the states with their times, the answer."""
    state = str(call.get("state", ""))
    painted = screen.paint(
        plain(state), "green" if state in _GOOD else "red" if state in _BAD else "yellow"
    )
    screen.line(f"{screen.paint(plain(call.get('tool', '')), 'bold')}  {painted}")
    screen.table([(f"{name:<9}", value) for name, value in _facts(call) if value])
    steps = call.get("steps") or []
    if steps:
        screen.line("states")
        screen.table([_step(step) for step in steps], indent="  ")
    _answer(call, screen)


def waits_for(call: dict[str, Any]) -> str:
    """Return what a call without an answer waits for; for a pending call that follows from its
    route.
    """
    state, route = str(call.get("state")), str(call.get("route"))
    if state == "PENDING":
        return PENDING_FOR.get(route) or f"its result: glassd answer {call.get('call_id')}"
    return WAITS_FOR.get(state, "its answer")


def _facts(call: dict[str, Any]) -> Iterator[tuple[str, str]]:
    request = call.get("request") or {}
    yield "call", str(call.get("call_id", ""))
    yield "asked", _when(call)
    yield "by", _who(call, request)
    yield "arguments", json_text(request["args"]) if request.get("args") else ""
    yield "route", str(call.get("route") or "")
    yield "attempts", str(_attempts(call) or "")
    for number, key in enumerate(call.get("keys") or [request.get("idempotency_key") or ""]):
        yield ("" if number else "key"), str(key)  # the first is the one that decides
    yield "delivery", delivered(call["delivery"]) if call.get("delivery") else _OPEN


def _when(call: dict[str, Any]) -> str:
    wall = call.get("created_wall")
    date = wall and time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))
    return ", ".join(filter(None, (date, _age(call))))


def _who(call: dict[str, Any], request: dict[str, Any]) -> str:
    """Return who made the call: origin, mode, user, session and turn."""
    user = call.get("user_id") or request.get("user_id")
    named = (("user", user), ("session", request.get("session")), ("turn", request.get("turn_id")))
    words = [str(request[key]) for key in ("origin", "mode") if request.get(key)]
    return ", ".join(words + [f"{name} {value}" for name, value in named if value])


def _attempts(call: dict[str, Any]) -> int:
    """Return how often the call was run; an older daemon only lists the attempts as steps."""
    if isinstance(counted := call.get("attempts"), int):
        return counted
    return sum(step.get("state") == "RUNNING" for step in call.get("steps") or [])


def _step(step: dict[str, Any]) -> tuple[str, ...]:
    after = step.get("after_s")
    since = _since(after) if isinstance(after, int | float) else ""
    return since, str(step.get("state", "")), str(step.get("note") or "")


def _since(after_s: float) -> str:
    return f"+{after_s:8.3f} s" if after_s < 1000 else f"+{duration(after_s):>10}"


def _answer(call: dict[str, Any], screen: Screen) -> None:
    response = call.get("response") or {}
    error = response.get("error")
    if not response:
        screen.line(f"answer     {_OPEN}; it waits for {plain(waits_for(call))}")
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
            for line in for_people(response["data"]).splitlines():
                screen.line(f"  {line}")
