"""`glassd scan`: the glasses that are near. `glassd pair`: pair with glasses, or repair a bond that
was lost on either side. `glassd unpair`: forget paired glasses on this side.

`glassd up` scans and pairs with the same functions. Answers are read from stdin, so that a script
can pipe them in.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, client
from edge.commands.shared.terminal import typed
from edge.runtime.errors import UserError

TRIES: Final = 3
"""Wrong codes that a person may type; the glasses allow as many."""
SIX_DIGITS: Final = re.compile("[0-9]{6}")
ANSWER_S: Final = 45.0
"""The glasses and the daemon give up after 30 s."""
SLACK_S: Final = 30.0
"""The daemon ends a window or a scan itself; after this much longer we stop waiting for it."""
UNPAIR_S: Final = 45.0
"""bluetoothd takes 2 s to forget connected glasses, and the link is closed first."""
HOW: Final = {
    "passkey": "a code was typed",
    "compared": "numbers were compared",
    "just_works": "encrypted; without a code, these glasses have none",
    "none": "these glasses know no pairing",
}


def scan(args: Namespace, screen: Screen) -> int:
    found: dict[str, dict[str, Any]] = {}
    for glasses in search(args, args.seconds):
        name = str(glasses.get("id"))
        if name not in found or (found[name].get("missing") and not glasses.get("missing")):
            cells = zip(row_of(glasses), (34, 10, 18, 8, 0), strict=True)
            screen.progress("  ".join(f"{cell:<{width}}" for cell, width in cells).rstrip())
        found[name] = glasses
    if not found:
        raise UserError(
            "NOT_FOUND",
            f"no glasses were found in {args.seconds:g} s",
            "switch them on and bring them near; "
            "glasses that are connected to a phone cannot be found",
        )
    rows = [{k: v for k, v in glasses.items() if k != "event"} for glasses in found.values()]
    return screen.result({"glasses": rows})


def pair(args: Namespace, screen: Screen) -> int:
    if args.cancel:
        if not ask(args, "DELETE", "/v1/pairing", who="owner").get("closed"):
            raise UserError("NOT_FOUND", "no pairing window is open")
        return screen.result({"closed": True}, "The pairing window is closed.")
    step = pair_with(args, screen, args.address, seconds=args.seconds)
    glasses, how = step.get("glasses") or {}, str(step.get("how", ""))
    return screen.result(
        {"paired": glasses, "how": step.get("how")},
        f"Paired with {plain(glasses.get('id', ''))} ({HOW.get(how, plain(how))}). "
        "From now on glassd connects to them by itself.",
    )


def unpair(args: Namespace, screen: Screen) -> int:
    path = f"/v1/bonds/{quote(args.address, safe='')}" if args.address else "/v1/bonds"
    answer = ask(args, "DELETE", path, timeout_s=UNPAIR_S, who="owner")
    return screen.result(
        answer,
        f"{plain(answer['unpaired']['id'])} is forgotten here. "
        "To make the glasses forget this machine, reset them.",
    )


# ------------------------------------------------------------------ scanning and pairing


def search(
    args: Namespace, seconds: float, *, settle_s: float | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the glasses of a scan as they are found. Raise `UserError`."""
    settle = f"&settle={settle_s:g}" if settle_s else ""
    path = f"/v1/scan?seconds={seconds:g}{settle}"
    with closing(client(args, "owner").stream("GET", path, quiet_s=seconds + SLACK_S)) as events:
        for event in events:
            if event.get("event") == "failed":
                raise _failed(args, event)
            if event.get("event") == "heard":
                yield event


def row_of(glasses: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of the list: title, name, address, signal strength, paired or new."""
    signal = f"{glasses['rssi']} dBm" if glasses.get("rssi") is not None else ""
    if glasses.get("connected"):
        state = "connected"
    elif glasses.get("ours"):
        state = "paired"
    elif missing := glasses.get("missing"):
        state = f"only one side heard; {missing} is missing"
    else:
        state = "new"
    title = glasses.get("title") or glasses.get("model")
    return tuple(map(plain, (title, glasses.get("name"), glasses.get("id"), signal, state)))


def pair_with(
    args: Namespace, screen: Screen, wanted: str | None, *, seconds: float
) -> dict[str, Any]:
    """Pair, ask the questions of the pairing, and return its last step. Raise `UserError`."""
    tries = TRIES if sys.stdin.isatty() and not args.code else 1
    while True:
        tries -= 1
        try:
            return _one_window(args, screen, wanted, seconds)
        except UserError as error:
            if error.code != "WRONG_CODE" or tries <= 0:
                raise
            screen.note(f"{error.message}; the glasses show a new one")


def _one_window(
    args: Namespace, screen: Screen, wanted: str | None, seconds: float
) -> dict[str, Any]:
    body = {"seconds": seconds, **({"glasses": wanted} if wanted else {})}
    shown, daemon = "", client(args, "owner")
    with closing(daemon.stream("POST", "/v1/pairing", body, quiet_s=seconds + SLACK_S)) as steps:
        for step in steps:
            if step.get("event") == "failed":
                raise _failed(args, step)
            if step.get("ask"):
                _answer(args, screen, step)
            elif step.get("state") == "PAIRED":
                return dict(step)
            elif (line := _line(step)) != shown:
                shown = line
                screen.progress(line)
    problem = "the daemon ended the pairing without a result"
    raise UserError("NOT_RUNNING", problem, "see: glassd status")


def _line(step: dict[str, Any]) -> str:
    glasses = step.get("glasses") or {}
    match step.get("state"):
        case "SCANNING":
            return "Listening for the glasses …"
        case "CHOSEN":
            return "Found " + "  ".join(filter(None, row_of(glasses)[:4]))
        case _:
            side = f" ({plain(step['text'])})" if step.get("text") else ""
            return f"Pairing{side} …"


def _answer(args: Namespace, screen: Screen, step: dict[str, Any]) -> None:
    """Ask the person and send the answer to the daemon. Without an answer the daemon ends the
    pairing itself and reports why.
    """
    number = plain(step.get("number", ""))
    try:
        match step["ask"]:
            case "passkey":
                body: dict[str, Any] = {"passkey": args.code or _code(screen)}
            case "compare" if args.code:
                body = {"same": args.code == number}
            case "compare":
                typed_in = _read(screen, f"Do the glasses show {number}? [y/n] ")
                body = {"same": typed_in.lower() in {"y", "yes"}}
            case _:
                screen.note(f"Type this code on the glasses: {number}")
                return
    except TimeoutError:
        screen.note("")
        return
    try:
        ask(args, "POST", "/v1/pairing/answer", body, who="owner")
    except UserError as error:
        if error.code != "NOTHING_ASKED":  # the window closed meanwhile; its last step says why
            raise


def _code(screen: Screen) -> str:
    """Read a code; ask again for a malformed one, which the glasses would count as wrong."""
    for _ in range(TRIES):
        line = _read(screen, "The glasses show a code. Type it here: ").replace(" ", "")
        if SIX_DIGITS.fullmatch(line):
            return line
        screen.note("A code is six digits, for example 012345.")
    raise UserError(
        "NOT_ANSWERED", "that was not a code", "look at the lens and try again: glassd pair"
    )


def _read(screen: Screen, question: str) -> str:
    screen.prompt(question)
    line = typed(ANSWER_S)
    if line is None:
        screen.note("")
        raise UserError(
            "NOT_ANSWERED",
            "a code is needed, but no terminal is there to type it",
            "run it in a terminal, or give --code",
        )
    return line


def _failed(args: Namespace, event: dict[str, Any]) -> UserError:
    """Return the error of a failed scan or pairing. If the radio does not work, the reason and the
    fix are those of the adapter in `glassd status`.
    """
    code, text = str(event.get("code") or "FAILED"), str(event.get("text") or "it failed")
    fix = str(event.get("fix") or "")
    adapter = (ask(args, "GET", "/v1/status").get("adapter") or {}) if code == "RADIO" else {}
    if adapter.get("state") == "failing":
        text, fix = f"{text}: {adapter.get('reason')}", str(adapter.get("hint") or fix)
    return UserError(code, text, fix, exit_code=2 if code == "AMBIGUOUS" else 0)
