"""`glassd confirm`: say yes or no to a call that waits for confirmation, by its token, or by
typing an answer for each one that waits; `glassd call` waits for its own here. `glassd grants`:
list, add and revoke the tools that are always or never allowed.
"""

import os
import time
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, exit_code, how_to_confirm, tell, token_of
from edge.commands.shared.spinner import Spinner
from edge.commands.shared.terminal import Terminal, particulars, rows
from edge.core.words.visible_text import for_terminal
from edge.runtime.errors import UserError

PATIENCE_S: Final = 120.0
"""A confirmed call runs (40 s at most), and its answer may be spoken (40 s at most)."""
SLICE_S: Final = 20.0
"""One question to the daemon waits this long."""
DAY_S: Final = 86400.0
"""The daemon ends every question in time; after this long we stop waiting for it."""
MEANS: Final = {"always": "runs without asking", "never": "is refused without asking"}


def confirm(args: Namespace, screen: Screen) -> int:
    if args.deny and args.always:
        raise UserError(
            "USAGE",
            "--deny and --always exclude each other",
            "to deny the tool permanently: --never",
        )
    grant = "always" if args.always else "never" if args.never else "once"
    if args.token:
        allow = not (args.deny or args.never)
        return _decide(args, screen, {"token": args.token}, allow=allow, grant=grant)
    if args.deny or grant != "once":
        raise UserError(
            "USAGE",
            "without a token, the answer is typed at the terminal",
            "glassd confirm, then type no, always or never",
        )
    return _all(args, screen)


def _decide(
    args: Namespace, screen: Screen, which: Mapping[str, str], *, allow: bool, grant: str
) -> int:
    """Answer one question and show the response of its call."""
    body = {**which, "allow": allow, "grant": grant}
    envelope = ask(args, "POST", "/v1/confirm", body, timeout_s=PATIENCE_S, who="owner")
    if allow or exit_code(envelope) == 0 or (envelope.get("error") or {}).get("code") != "DENIED":
        return tell(envelope, screen)
    tool = plain((envelope.get("meta") or {}).get("tool", "the tool"))
    revoke = f"Denied; {tool} is forbidden from now on (glassd grants --revoke {tool})"
    return screen.result(envelope, revoke if grant == "never" else "Denied.")


def _all(args: Namespace, screen: Screen) -> int:
    """Show every open question and read an answer to each from the terminal."""
    if screen.as_json:
        return screen.result(ask(args, "GET", "/v1/confirm"))
    questions = _questions(args)
    if not questions:
        return screen.result({}, "No call waits for confirmation.")
    terminal = Terminal.open() if os.isatty(0) else None
    if terminal is None:
        for question in questions:
            screen.line("\n".join((*particulars(question), "")))
        fix = "run glassd confirm in a terminal, or answer on the glasses"
        raise UserError("NO_TERMINAL", "an answer can be typed only at a terminal", fix)
    code = 0
    with terminal:
        for question in questions:
            which = {"call_id": question["call_id"]}
            answer = terminal.ask(question, partial(_is_over, args, **which))
            if answer is not None:
                allow, grant = answer
                code = max(code, _decide(args, screen, which, allow=allow, grant=grant))
                screen.flush()
    return code


def _questions(args: Namespace) -> list[dict[str, Any]]:
    return list(ask(args, "GET", "/v1/confirm", who="owner")["questions"])


def _is_over(args: Namespace, call_id: str) -> bool:
    return all(question["call_id"] != call_id for question in _questions(args))


# ------------------------------------------------------------------ a call that waits


def show(envelope: dict[str, Any], screen: Screen) -> None:
    """Show a question to a caller that does not wait for its answer."""
    screen.result(envelope, f"waits for a yes: {plain(_particulars(envelope, screen))}")
    if not screen.as_json:
        token = token_of(envelope)
        facts = (("call", _call_id(envelope)), ("token", token), ("next", how_to_confirm(token)))
        screen.table([fact for fact in facts if fact[1]])


def wait(
    args: Namespace, screen: Screen, envelope: dict[str, Any], *, patience_s: float
) -> dict[str, Any]:
    """Wait until the call has its response and return it, showing what it waits for. Return
    `envelope` if no call waits for confirmation.
    """
    try:
        record = _record(args, _call_id(envelope), wait="")
    except UserError as e:
        if e.code == "NOT_FOUND":
            return envelope
        raise
    if not record.get("response"):
        if (typed := _ask_here(args, screen, envelope)) is not None:
            return typed
        screen.note(
            f"waits for a yes: {_particulars(envelope, screen)}\n"
            f"{how_to_confirm(token_of(envelope))}"
        )
        with Spinner(screen, _tool(envelope)) as spinner:
            spinner.say("waits for a yes")
            record = _waited(args, _call_id(envelope), patience_s)
    response: dict[str, Any] = record.get("response") or _pending(record)
    return response


def _ask_here(args: Namespace, screen: Screen, envelope: dict[str, Any]) -> dict[str, Any] | None:
    """Ask at this terminal, if its user may answer; None if nothing was typed, or if the answer
    came from elsewhere.
    """
    terminal = (
        Terminal.open() if token_of(envelope) and not screen.as_json and os.isatty(0) else None
    )
    if terminal is None:
        return None
    call_id = _call_id(envelope)
    with terminal:
        question = next((each for each in _questions(args) if each["call_id"] == call_id), None)
        answer = question and terminal.ask(question, partial(_is_over, args, call_id))
    if not answer:
        return None
    body = {"call_id": call_id, "allow": answer[0], "grant": answer[1]}
    with Spinner(screen, _tool(envelope)):
        return dict(ask(args, "POST", "/v1/confirm", body, timeout_s=PATIENCE_S, who="owner"))


def _waited(args: Namespace, call_id: str, patience_s: float) -> dict[str, Any]:
    """Wait until the question is over, as long as the daemon keeps it open, and then `patience_s`
    seconds for the answer.
    """
    try:
        for _ in range(int(DAY_S / SLICE_S)):
            record = _record(args, call_id, wait=f"?wait={SLICE_S:g}&until=answer")
            if record is not None:
                return dict(record)
            if patience_s <= 0:
                break
            if _record(args, call_id, wait="").get("state") != "AWAITING_CONFIRMATION":
                patience_s -= SLICE_S
    except UserError as e:
        raise UserError(e.code, e.message, _see(call_id), exit_code=e.exit_code) from None
    raise UserError("TIMEOUT", "there was no answer in time", _see(call_id))


def _see(call_id: str) -> str:
    return f"show the call: glassd calls {call_id}"


def _record(args: Namespace, call_id: str, *, wait: str) -> Any:
    path = f"/v1/calls/{quote(call_id, safe='') or '-'}{wait}"
    return ask(args, "GET", path, timeout_s=SLICE_S + 10.0)


def _call_id(envelope: dict[str, Any]) -> str:
    return str((envelope.get("meta") or {}).get("callId", ""))


def _tool(envelope: dict[str, Any]) -> str:
    return str((envelope.get("meta") or {}).get("tool", ""))


def _particulars(envelope: dict[str, Any], screen: Screen) -> str:
    """Return the lines of the call that the wearer is shown; all but the first are indented."""
    error = envelope.get("error") or {}
    request = error.get("confirmation_request") or {}
    short = [request.get("preview") or error.get("message", "")]
    first, *more = (plain(for_terminal(str(line))) for line in request.get("particulars") or short)
    return "\n".join([first, *(row for line in more for row in rows(line, screen.width))])


def _pending(record: dict[str, Any]) -> dict[str, Any]:
    data = {"status": "pending", "pendingToolCallId": record.get("call_id")}
    return {
        "ok": True,
        "data": data,
        "meta": {"tool": record.get("tool"), "callId": record.get("call_id"), "delivery": "queued"},
    }


# ------------------------------------------------------------------ grants


def grants(args: Namespace, screen: Screen) -> int:
    if args.revoke:
        path = f"/v1/grants?{urlencode({'tool': args.revoke})}"
        done = ask(args, "DELETE", path, who="owner")
        return screen.result(done, f"{plain(done['tool'])} asks for confirmation again")
    if tool := args.always or args.never:
        grant = "always" if args.always else "never"
        done = ask(args, "PUT", "/v1/grants", {"tool": tool, "grant": grant}, who="owner")
        return screen.result(done, f"{plain(done['tool'])} {MEANS[grant]}")
    document = ask(args, "GET", "/v1/grants")
    if screen.as_json or not document["grants"]:
        none = "No tool is always or never allowed: tools that need confirmation ask every time."
        return screen.result(document, none)
    screen.table([_row(grant) for grant in document["grants"]])
    return 0


def _row(grant: dict[str, Any]) -> tuple[str, ...]:
    since = grant.get("since_wall")
    day = time.strftime("since %Y-%m-%d", time.localtime(since)) if since else ""
    word = str(grant.get("grant", ""))
    ended = str(grant.get("ended") or "")
    means = f"ended: {ended}; it asks again" if ended else MEANS.get(word, "")
    return str(grant.get("tool", "")), word, means, _bound(grant), day


def _bound(grant: dict[str, Any]) -> str:
    """Return what an “always” is bound to: the tool's origin and the definition it had. A “never”
    is bound to the name only.
    """
    if grant.get("grant") != "always" or not grant.get("definition"):
        return ""
    return f"from {grant.get('origin')}, definition {str(grant['definition'])[:12]}"
