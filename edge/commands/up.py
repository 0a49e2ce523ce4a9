"""`glassd up`: from nothing to glasses that work, one printed step after the other."""

import getpass
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any, Final

from edge.commands.pairing import HOW, pair_with, row_of, search
from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask
from edge.commands.shared.terminal import typed
from edge.runtime.errors import UserError

SCAN_S: Final = 20.0
SETTLE_S: Final = 2.0
"""How long to wait for a second pair after the first glasses were found."""
WINDOW_S: Final = 120.0
READY_S: Final = 45.0
"""Finding takes a second, connecting at most twenty, the first exchange five; this is nearly
twice that.
"""
POLL_S: Final = 0.3
CHOOSE_S: Final = 300.0
MAX_CODE: Final = 2000
ENROL_S: Final = 130.0
"""Fetching the CA certificate, three tries of the exchange and two key checks, each with the
daemon's own deadline of 20 s. With a shorter wait the code could be used up without a report.
"""
UPLINK_S: Final = 20.0


def up(args: Namespace, screen: Screen) -> int:
    if args.no_glasses and not args.enrol:
        raise UserError(
            "USAGE",
            "--no-glasses without an enrolment code leaves nothing to do",
            "glassd up - --no-glasses",
        )
    cloud = _enrol(args, screen) if args.enrol else None
    glasses = None if args.no_glasses else glasses_up(args, screen)
    status = ask(args, "GET", "/v1/status")
    action = status.get("next_action", "")
    return screen.result(
        {"glasses": glasses, "cloud": cloud, "next_action": action},
        *([_summary(glasses)] if glasses is not None else []),
        f"\nNext: {plain(action)}" if action else "\nAll is well.",
    )


def glasses_up(args: Namespace, screen: Screen) -> dict[str, Any]:
    """Make sure that paired glasses are connected, pairing them first if needed; return `glasses`
    of the status document. Raise `UserError`.
    """
    status = ask(args, "GET", "/v1/status").get("glasses") or {}
    address = str(status.get("address")).upper()
    if _is_up(status) and (args.address or address).upper() == address:
        return dict(status)
    wanted = args.address or _choose(args, screen)
    how = str(pair_with(args, screen, wanted, seconds=WINDOW_S).get("how", ""))
    screen.progress(f"Paired and saved ({HOW.get(how, plain(how))}).")
    screen.progress("Connecting …")
    return _ready(args)


def _is_up(glasses: dict[str, Any]) -> bool:
    return glasses.get("state") == "ready" and glasses.get("bond") not in {"", "lost", None}


def _choose(args: Namespace, screen: Screen) -> str:
    """Scan, and ask which glasses to use if several are found."""
    screen.progress("Looking for glasses …")
    seen = search(args, SCAN_S, settle_s=SETTLE_S)
    found = {str(glasses["id"]): glasses for glasses in seen if not glasses.get("missing")}
    if not found:
        raise UserError(
            "NOT_FOUND",
            f"no glasses were found in {SCAN_S:g} s",
            "switch them on, take them out of the case, bring them near",
        )
    listed = sorted(
        found.values(), key=lambda g: g["rssi"] if g.get("rssi") is not None else 0, reverse=True
    )
    if not screen.as_json:
        screen.table([(str(n), *row_of(g)) for n, g in enumerate(listed, 1)], indent="  ")
    if len(listed) == 1 or args.yes:
        return str(listed[0]["id"])
    return _ask_which(screen, [str(g["id"]) for g in listed])


def _ask_which(screen: Screen, names: list[str]) -> str:
    screen.prompt(f"Which ones? [1-{len(names)}] ")
    try:
        answer = typed(CHOOSE_S) or ""
    except TimeoutError:
        answer = ""
    if answer.upper() in {name.upper() for name in names}:
        return answer
    if answer.isdecimal() and 1 <= int(answer[:4]) <= len(names):
        return names[int(answer[:4]) - 1]
    raise UserError(
        "USAGE",
        f"several glasses were found: {', '.join(names)}",
        "name one: glassd up --address ADDRESS",
    )


def _ready(args: Namespace) -> dict[str, Any]:
    """Wait until the link is up."""
    status: dict[str, Any] = {}
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        status = ask(args, "GET", "/v1/status")
        if _is_up(status.get("glasses") or {}):
            return dict(status["glasses"])
        time.sleep(POLL_S)
    reason = (status.get("link") or {}).get("reason") or "the glasses did not answer"
    raise UserError(
        "TIMEOUT",
        f"the glasses are paired, but not connected after {READY_S:g} s: {reason}",
        str(status.get("next_action") or "see: glassd status"),
    )


def _summary(glasses: dict[str, Any]) -> str:
    battery = f", battery {glasses['battery']} %" if glasses.get("battery") is not None else ""
    return plain(
        f"Ready: {glasses.get('model')} at {glasses.get('address')}, "
        f"firmware {glasses.get('firmware')}, "
        f"MTU {glasses.get('mtu')}, paired ({glasses.get('bond')}){battery}."
    )


# ------------------------------------------------------------------ enrolling


def _enrol(args: Namespace, screen: Screen) -> dict[str, Any]:
    """Enrol with the code of the arguments, and wait for the uplink. Raise `UserError`."""
    body = {"code": _code(args, screen)}
    enrolment = dict(ask(args, "POST", "/v1/enrol", body, timeout_s=ENROL_S, who="owner"))
    broker, tenant, edge = (plain(enrolment.get(key)) for key in ("broker", "tenant", "edge_id"))
    screen.progress(f"Enrolled with {broker} as {tenant}/{edge} ({_identity(enrolment)}).")
    _wait_for_uplink(args)
    screen.progress("Connected to the cloud.")
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
        raise UserError(
            "USAGE",
            "there is no code on stdin",
            "paste the code your cloud's operator sent, on one line",
        )
    return text.strip()


def _identity(enrolment: dict[str, Any]) -> str:
    if not (ends := enrolment.get("certificate_ends")):
        return "password"
    day = datetime.fromtimestamp(ends, UTC)
    return f"client certificate until {day:%Y-%m-%d}, renewed automatically"


def _wait_for_uplink(args: Namespace) -> None:
    """Wait until the uplink is up. Raise `UserError` with the uplink's own reason."""
    uplink: dict[str, Any] = {}
    end, action = time.monotonic() + UPLINK_S, ""
    while time.monotonic() < end:
        status = ask(args, "GET", "/v1/status")
        uplink, action = status.get("uplink") or {}, status.get("next_action") or ""
        if uplink.get("state") == "up":
            return
        time.sleep(POLL_S)
    raise UserError(
        "NO_UPLINK",
        f"enrolled, but the broker cannot be reached: {uplink.get('reason') or 'no answer'}",
        str(action or "see: glassd status"),
    )
