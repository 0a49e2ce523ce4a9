"""A call that waits for confirmation, on the command line: shows the question, how to answer it,
and then the response.

Users who may decide are asked at the terminal; others wait for the glasses or `glassd confirm`.
"""

import os
from argparse import Namespace
from typing import Any, Final
from urllib.parse import quote

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.response_format import how_to_confirm, token_of
from edge.commands.shared.terminal import Terminal, rows

SLICE_S: Final = 20.0
"""One question to the daemon waits this long."""
DAY_S: Final = 86400.0
"""The daemon ends every question in time; after this long we stop waiting for it."""
DECIDED_S: Final = 120.0
"""A confirmed call runs 40 s at most, and its answer may be spoken."""


def show(envelope: dict[str, Any], screen: Screen) -> None:
    """Show a question to a caller that does not wait for its answer."""
    if screen.as_json:
        screen.json(envelope)
        return
    screen.line(f"waits for a yes: {plain(_particulars(envelope, screen))}")
    rows = (
        ("call", _call_id(envelope)),
        ("token", token_of(envelope)),
        ("next", how_to_confirm(token_of(envelope))),
    )
    screen.table([row for row in rows if row[1]])


def decided(
    args: Namespace, screen: Screen, envelope: dict[str, Any], *, patience_s: float
) -> dict[str, Any]:
    """Wait until the call has its response and return it, showing what it waits for. Returns
    `envelope` if no call waits for confirmation.
    """
    try:
        story = _story(args, _call_id(envelope), wait="")
    except CliError as e:
        if e.code == "NOT_FOUND":
            return envelope
        raise
    if not story.get("response"):
        if (typed := _typed(args, screen, envelope)) is not None:
            return typed
        screen.note(
            f"waits for a yes: {_particulars(envelope, screen)}\n"
            f"{how_to_confirm(token_of(envelope))}"
        )
        story = _waited(args, _call_id(envelope), patience_s)
    response: dict[str, Any] = story.get("response") or _pending(story)
    return response


def _typed(args: Namespace, screen: Screen, envelope: dict[str, Any]) -> dict[str, Any] | None:
    """Ask at this terminal, if its user may answer; None if nothing was typed, or if the answer
    came from elsewhere.
    """
    terminal = (
        Terminal.open() if token_of(envelope) and not screen.as_json and os.isatty(0) else None
    )
    if terminal is None:
        return None
    call_id = _call_id(envelope)

    def find() -> dict[str, Any] | None:
        questions = ask(args, "GET", "/v1/confirm", who="owner")["questions"]
        return next((question for question in questions if question["call_id"] == call_id), None)

    with terminal:
        question = find()
        answer = None if question is None else terminal.ask(question, lambda: find() is None)
    if answer is None:
        return None
    body = {"call_id": call_id, "allow": answer[0], "grant": answer[1]}
    return dict(ask(args, "POST", "/v1/confirm", body, timeout_s=DECIDED_S, who="owner"))


def _waited(args: Namespace, call_id: str, patience_s: float) -> dict[str, Any]:
    """Wait until the question is over, as long as the daemon keeps it open, and then `patience_s`
    seconds for the answer.
    """
    try:
        for _ in range(int(DAY_S / SLICE_S)):
            story = _story(args, call_id, wait=f"?wait={SLICE_S:g}&until=answer")
            if story is not None:
                return dict(story)
            if patience_s <= 0:
                break
            if _story(args, call_id, wait="").get("state") != "AWAITING_CONFIRMATION":
                patience_s -= SLICE_S
    except CliError as e:
        raise CliError(e.code, e.message, _see(call_id), exit_code=e.exit_code) from None
    raise CliError("TIMEOUT", "there was no answer in time", _see(call_id), exit_code=5)


def _see(call_id: str) -> str:
    return f"show the call: glassd calls {call_id}"


def _story(args: Namespace, call_id: str, *, wait: str) -> Any:
    return ask(
        args, "GET", f"/v1/calls/{quote(call_id, safe='') or '-'}{wait}", timeout_s=SLICE_S + 10.0
    )


def _call_id(envelope: dict[str, Any]) -> str:
    return str((envelope.get("meta") or {}).get("callId", ""))


def _particulars(envelope: dict[str, Any], screen: Screen) -> str:
    """Return the lines of the call that the wearer is shown; all but the first are indented."""
    error = envelope.get("error") or {}
    request = error.get("confirmation_request") or {}
    first, *more = [
        plain(line)
        for line in request.get("particulars")
        or [request.get("preview") or error.get("message", "")]
    ]
    return "\n".join([first, *(row for line in more for row in rows(line, screen.width))])


def _pending(story: dict[str, Any]) -> dict[str, Any]:
    data = {"status": "pending", "pendingToolCallId": story.get("call_id")}
    return {
        "ok": True,
        "data": data,
        "meta": {"tool": story.get("tool"), "callId": story.get("call_id"), "delivery": "queued"},
    }
