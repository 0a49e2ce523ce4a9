"""`glassd confirm`: say yes or no to a call that waits for confirmation, by its token, or by
typing an answer for each one that waits.
"""

import os
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.response_format import exit_code, tell
from edge.commands.shared.terminal import Terminal, particulars

PATIENCE_S: Final = 120.0
"""A confirmed call runs (40 s at most), and its answer may be spoken (40 s at most)."""


def run(args: Namespace, screen: Screen) -> int:
    if args.deny and args.always:
        raise CliError(
            "USAGE",
            "--deny and --always exclude each other",
            "to deny the tool permanently: --never",
            exit_code=2,
        )
    grant = "always" if args.always else "never" if args.never else "once"
    if args.token:
        return decide(
            args, screen, {"token": args.token}, allow=not (args.deny or args.never), grant=grant
        )
    if args.deny or grant != "once":
        raise CliError(
            "USAGE",
            "without a token, the answer is typed at the terminal",
            "glassd confirm, then type no, always or never",
            exit_code=2,
        )
    return _all(args, screen)


def decide(
    args: Namespace, screen: Screen, which: Mapping[str, str], *, allow: bool, grant: str
) -> int:
    """Answer one question and show the response of its call."""
    body = {**which, "allow": allow, "grant": grant}
    envelope = ask(args, "POST", "/v1/confirm", body, timeout_s=PATIENCE_S, who="owner")
    if allow or exit_code(envelope) == 0 or (envelope.get("error") or {}).get("code") != "DENIED":
        return tell(envelope, screen)
    if screen.as_json:
        screen.json(envelope)
    else:
        tool = plain((envelope.get("meta") or {}).get("tool", "the tool"))
        screen.line(
            f"Denied; {tool} is forbidden from now on (glassd grants --revoke {tool})"
            if grant == "never"
            else "Denied."
        )
    return 0  # denied, as requested


def _all(args: Namespace, screen: Screen) -> int:
    """Show every open question and read an answer to each from the terminal."""
    if screen.as_json:
        screen.json(ask(args, "GET", "/v1/confirm"))
        return 0
    questions = ask(args, "GET", "/v1/confirm", who="owner")["questions"]
    if not questions:
        screen.line("No call waits for confirmation.")
        return 0
    terminal = Terminal.open() if os.isatty(0) else None
    if terminal is None:
        for question in questions:
            screen.line("\n".join((*particulars(question), "")))
        fix = "run glassd confirm in a terminal, or answer on the glasses"
        raise CliError("NO_TERMINAL", "an answer can be typed only at a terminal", fix)
    code = 0
    with terminal:
        for question in questions:
            answer = terminal.ask(question, partial(_is_over, args, question["call_id"]))
            if answer is not None:
                allow, grant = answer
                code = max(
                    code,
                    decide(
                        args, screen, {"call_id": question["call_id"]}, allow=allow, grant=grant
                    ),
                )
                screen.flush()
    return code


def _is_over(args: Namespace, call_id: Any) -> bool:
    return all(
        question["call_id"] != call_id
        for question in ask(args, "GET", "/v1/confirm", who="owner")["questions"]
    )
