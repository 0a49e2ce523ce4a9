"""`glassd confirm`: say yes or no to a call that waits for it, in the wearer's place."""

from argparse import Namespace
from typing import Final

from edge.verbs.envelope import exit_code, tell
from edge.verbs.screen import CliError, Screen, plain
from edge.verbs.talk import ask

PATIENCE_S: Final = 120.0
"""A confirmed call runs (40 s at most), and its answer may be spoken (40 s at most)."""


def run(args: Namespace, screen: Screen) -> int:
    if args.deny and args.always:
        raise CliError("USAGE", "--deny and --always exclude each other", "to forbid the tool for good: --never", exit_code=2)
    deny = args.deny or args.never
    body = {"token": args.token, "allow": not deny, "grant": "always" if args.always else "never" if args.never else "once"}
    envelope = ask(args, "POST", "/v1/confirm", body, timeout_s=PATIENCE_S)
    if not deny or exit_code(envelope) == 0 or (envelope.get("error") or {}).get("code") != "DENIED":
        return tell(envelope, screen)
    if screen.as_json:
        screen.json(envelope)
    else:
        tool = plain((envelope.get("meta") or {}).get("tool", "the tool"))
        screen.line(f"Denied; {tool} is forbidden from now on (glassd grants --revoke {tool})" if args.never else "Denied.")
    return 0  # a no was asked for, and a no it is
