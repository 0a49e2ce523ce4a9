"""Enrolment on the command line: reads the code without showing it, sends it to the daemon, and
waits until the uplink is connected.
"""

import getpass
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask

MAX_CODE: Final = 2000
SPEND_S: Final = 130.0
"""Fetching the CA certificate, three tries of the exchange and two key checks, each with the
daemon's own deadline of 20 s. With a shorter wait the code could be used up without a report.
"""
LINK_S: Final = 20.0
POLL_S: Final = 0.3


def enrolled(args: Namespace, screen: Screen) -> dict[str, Any]:
    """Enrol with the code of the arguments, and wait for the uplink. Raises `CliError`."""
    enrolment = dict(
        ask(
            args, "POST", "/v1/enrol", {"code": _code(args, screen)}, timeout_s=SPEND_S, who="owner"
        )
    )
    if not screen.as_json:
        screen.line(
            f"Enrolled with {plain(enrolment.get('broker'))} as "
            f"{plain(enrolment.get('tenant'))}/{plain(enrolment.get('edge_id'))} "
            f"({_by(enrolment)})."
        )
        screen.flush()
    _connected(args)
    if not screen.as_json:
        screen.line("Connected to the cloud.")
        screen.flush()
    return enrolment


def _code(args: Namespace, screen: Screen) -> str:
    """Read the code from stdin, hidden on a terminal; a command line is visible to every user of
    this machine, so print a note about it.
    """
    if args.enrol != "-":
        screen.note(
            "note: a code on the command line is visible in ps and stays in "
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


def _by(enrolment: dict[str, Any]) -> str:
    ends = enrolment.get("certificate_ends")
    return (
        f"client certificate until {datetime.fromtimestamp(ends, UTC):%Y-%m-%d}, "
        "renewed automatically"
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
        f"enrolled, but the broker cannot be reached: {uplink.get('reason') or 'no answer'}",
        str(action or "see: glassd status"),
    )
