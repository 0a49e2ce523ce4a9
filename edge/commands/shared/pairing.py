"""Scanning and pairing on the command line: lists the glasses found, and runs one pairing with its
questions, printing each step.

The verbs choose the glasses. Answers are read from stdin, so that a script can pipe them in.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask, stream
from edge.commands.shared.keyboard import typed

TRIES: Final = 3
"""Wrong codes that a person may type; the glasses allow as many."""
SIX_DIGITS: Final = re.compile("[0-9]{6}")
ANSWER_S: Final = 45.0
"""The glasses and the daemon give up after 30 s."""
SLACK_S: Final = 30.0
"""The daemon ends a window or a scan itself; after this much longer we stop waiting for it."""
_EXIT_OF: Final = {"NOT_FOUND": 4, "TIMEOUT": 5, "AMBIGUOUS": 2}
HOW: Final = {
    "passkey": "a code was typed",
    "compared": "numbers were compared",
    "just_works": "encrypted; without a code, these glasses have none",
    "none": "these glasses know no pairing",
}


def heard(
    args: Namespace, seconds: float, *, settle_s: float | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the glasses of a scan as they are found. Raises `CliError`."""
    settle = f"&settle={settle_s:g}" if settle_s else ""
    with closing(
        stream(
            args,
            "GET",
            f"/v1/scan?seconds={seconds:g}{settle}",
            quiet_s=seconds + SLACK_S,
            who="owner",
        )
    ) as events:
        for event in events:
            if event.get("event") == "failed":
                raise failed(args, event)
            if event.get("event") == "heard":
                yield event


def described(glasses: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of the list: title, name, address, signal strength, paired or new."""
    signal = f"{glasses['rssi']} dBm" if glasses.get("rssi") is not None else ""
    side = f"only one side heard; {glasses['missing']} is missing" if glasses.get("missing") else ""
    whose = (
        ("connected" if glasses.get("connected") else "paired")
        if glasses.get("ours")
        else ("connected" if glasses.get("connected") else side or "new")
    )
    return tuple(
        plain(text)
        for text in (
            glasses.get("title") or glasses.get("model"),
            glasses.get("name"),
            glasses.get("id"),
            signal,
            whose,
        )
    )


def paired(
    args: Namespace, screen: Screen, wanted: str | None, *, seconds: float
) -> dict[str, Any]:
    """Pair, ask the questions of the pairing, and return its last step. Raises `CliError`."""
    tries = TRIES if sys.stdin.isatty() and not args.code else 1
    while True:
        tries -= 1
        try:
            return _one_window(args, screen, wanted, seconds)
        except CliError as error:
            if error.code != "WRONG_CODE" or tries <= 0:
                raise
            screen.note(f"{error.message}; the glasses show a new one")


def _one_window(
    args: Namespace, screen: Screen, wanted: str | None, seconds: float
) -> dict[str, Any]:
    body = {"seconds": seconds, **({"glasses": wanted} if wanted else {})}
    shown = ""
    with closing(
        stream(args, "POST", "/v1/pairing", body, quiet_s=seconds + SLACK_S, who="owner")
    ) as steps:
        for step in steps:
            if step.get("event") == "failed":
                raise failed(args, step)
            if step.get("ask"):
                _answer(args, screen, step)
            elif step.get("state") == "PAIRED":
                return dict(step)
            elif not screen.as_json and (line := _line(step)) != shown:
                shown = line
                screen.line(line)
                screen.flush()
    raise CliError(
        "NOT_RUNNING",
        "the daemon ended the pairing without a result",
        "see: glassd status",
        exit_code=3,
    )


def _line(step: dict[str, Any]) -> str:
    glasses = step.get("glasses") or {}
    match step.get("state"):
        case "SCANNING":
            return "Listening for the glasses …"
        case "CHOSEN":
            return "Found " + "  ".join(part for part in described(glasses)[:4] if part)
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
            case "compare":
                question = f"Do the glasses show {number}? [y/n] "
                body = {
                    "same": args.code == number
                    if args.code
                    else _read(screen, question).lower() in {"y", "yes"}
                }
            case _:
                screen.note(f"Type this code on the glasses: {number}")
                return
    except TimeoutError:
        screen.note("")
        return
    try:
        ask(args, "POST", "/v1/pairing/answer", body, who="owner")
    except CliError as error:
        if error.code != "NOTHING_ASKED":  # the window closed meanwhile; its last step says why
            raise


def _code(screen: Screen) -> str:
    """Read a code; ask again for a malformed one, which the glasses would count as wrong."""
    for _ in range(TRIES):
        line = _read(screen, "The glasses show a code. Type it here: ").replace(" ", "")
        if SIX_DIGITS.fullmatch(line):
            return line
        screen.note("A code is six digits, for example 012345.")
    raise CliError(
        "NOT_ANSWERED", "that was not a code", "look at the lens and try again: glassd pair"
    )


def _read(screen: Screen, question: str) -> str:
    screen.prompt(question)
    line = typed(ANSWER_S)
    if line is None:
        screen.note("")
        raise CliError(
            "NOT_ANSWERED",
            "a code is needed, but no terminal is there to type it",
            "run it in a terminal, or give --code",
            exit_code=1,
        )
    return line


def failed(args: Namespace, event: dict[str, Any]) -> CliError:
    """Return the error of a failed scan or pairing. If the radio does not work, the reason and the
    fix are those of the adapter in `glassd status`.
    """
    code, text, fix = (
        str(event.get("code") or "FAILED"),
        str(event.get("text") or "it failed"),
        str(event.get("fix") or ""),
    )
    adapter = (ask(args, "GET", "/v1/status").get("adapter") or {}) if code == "RADIO" else {}
    if adapter.get("state") == "failing":
        text, fix = f"{text}: {adapter.get('reason')}", str(adapter.get("hint") or fix)
    return CliError(code, text, fix, exit_code=_EXIT_OF.get(code, 1))
