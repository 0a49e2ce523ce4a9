"""`glassd calls`: recent calls, pending calls, one call in detail."""

from argparse import Namespace
from typing import Any
from urllib.parse import quote

from edge.commands.shared import call_detail
from edge.commands.shared.call_detail import waits_for
from edge.commands.shared.console import Screen, duration
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.response_format import delivered


def run(args: Namespace, screen: Screen) -> int:
    if args.id:
        call = ask(args, "GET", f"/v1/calls/{quote(args.id, safe='')}")
        if screen.as_json:
            screen.json(call)
        else:
            call_detail.show(call, screen)
        return 0
    document = ask(args, "GET", f"/v1/calls?limit={args.limit}&pending={int(args.pending)}")
    if screen.as_json:
        screen.json(document)
    elif document["calls"]:
        screen.table(
            _full([(_waiting if args.pending else _row)(call) for call in document["calls"]])
        )
    else:
        screen.line(
            "No calls are pending." if args.pending else "No calls yet. Try: glassd call clock:now"
        )
    return 0


def _row(call: dict[str, Any]) -> tuple[str, ...]:
    answer = call.get("code") or ("ok" if call.get("ok") else "")
    reached = delivered(call["delivery"]) if call.get("delivery") else ""
    return _text(
        call.get("call_id"),
        _age(call),
        call.get("tool"),
        call.get("state"),
        call.get("route"),
        answer,
        reached,
    )


def _waiting(call: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of a call without an answer: what it waits for, and the time it has left."""
    left = call.get("left_s")
    life = f"{duration(max(0.0, left))} left" if isinstance(left, int | float) else ""
    return _text(
        call.get("call_id"),
        _age(call),
        call.get("tool"),
        call.get("state"),
        life,
        f"waits for {waits_for(call)}",
    )


def _full(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out the columns that are empty in every row."""
    said = [any(column) for column in zip(*rows, strict=True)]
    return [tuple(cell for cell, kept in zip(row, said, strict=True) if kept) for row in rows]


def _age(call: dict[str, Any]) -> str:
    return f"{duration(call['age_s'])} ago" if isinstance(call.get("age_s"), int | float) else ""


def _text(*cells: Any) -> tuple[str, ...]:
    return tuple(str(cell or "") for cell in cells)
