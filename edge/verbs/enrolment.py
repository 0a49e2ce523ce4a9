"""An enrolment code seen from the command line: read where nobody looks, spent by the daemon, told
in two lines.

Refuses to read what is in it, and to know where credentials are kept.
"""

import getpass
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any, Final

from edge.verbs.screen import CliError, Screen, plain
from edge.verbs.talk import ask

MAX_CODE: Final = 2000
SPEND_S: Final = 130.0
"""Fetching the authority, three tries of the exchange and two looks at a key, each with the
daemon's own deadline of 20 s: who gives up sooner has spent the code without hearing so.
"""
LINK_S: Final = 20.0
POLL_S: Final = 0.3


def enrolled(args: Namespace, screen: Screen) -> dict[str, Any]:
    """Spend the code named by the arguments, and see the uplink come up. Raises `CliError`."""
    told = dict(
        ask(
            args, "POST", "/v1/enrol", {"code": _code(args, screen)}, timeout_s=SPEND_S, who="owner"
        )
    )
    if not screen.as_json:
        screen.line(
            f"Enrolled with {plain(told.get('broker'))} as "
            f"{plain(told.get('tenant'))}/{plain(told.get('edge_id'))} ({_by(told)})."
        )
        screen.flush()
    _connected(args)
    if not screen.as_json:
        screen.line("Connected to the cloud.")
        screen.flush()
    return told


def _code(args: Namespace, screen: Screen) -> str:
    """Read it from stdin, unseen on a terminal; a command line is seen by everybody on this
    machine, so say so.
    """
    if args.enrol != "-":
        screen.note(
            "note: a code on the command line is seen in ps and kept in "
            "the shell's history; better: glassd up -"
        )
        return str(args.enrol)
    text = (
        getpass.getpass("Enrolment code: ", stream=sys.stderr)
        if sys.stdin.isatty()
        else sys.stdin.readline(MAX_CODE)
    )
    if not text.strip():
        raise CliError(
            "USAGE",
            "there is no code on stdin",
            "paste the code your cloud's operator sent, on one line",
            exit_code=2,
        )
    return text.strip()


def _by(told: dict[str, Any]) -> str:
    ends = told.get("certificate_ends")
    return (
        f"client certificate until {datetime.fromtimestamp(ends, UTC):%Y-%m-%d}, renewed by itself"
        if ends
        else "password"
    )


def _connected(args: Namespace) -> None:
    """Wait until the uplink is up. Raises `CliError` with the uplink's own reason."""
    uplink: dict[str, Any] = {}
    end, action = time.monotonic() + LINK_S, ""
    while time.monotonic() < end:
        status = ask(args, "GET", "/v1/status")
        uplink, action = status.get("uplink") or {}, status.get("next_action") or ""
        if uplink.get("state") == "up":
            return
        time.sleep(POLL_S)
    raise CliError(
        "NO_UPLINK",
        f"enrolled, but the broker is not reached: {uplink.get('reason') or 'no answer'}",
        str(action or "see: glassd status"),
    )
