"""`glassd up`: from nothing to glasses that work, one printed step after the other."""

import time
from argparse import Namespace
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.enrolment import enrolled
from edge.commands.shared.keyboard import typed
from edge.commands.shared.pairing import HOW, described, heard, paired

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


def run(args: Namespace, screen: Screen) -> int:
    if args.no_glasses and not args.enrol:
        raise CliError(
            "USAGE",
            "--no-glasses without an enrolment code leaves nothing to do",
            "glassd up - --no-glasses",
            exit_code=2,
        )
    cloud = enrolled(args, screen) if args.enrol else None
    glasses = None if args.no_glasses else glasses_up(args, screen)
    status = ask(args, "GET", "/v1/status")
    if screen.as_json:
        screen.json(
            {"glasses": glasses, "cloud": cloud, "next_action": status.get("next_action", "")}
        )
        return 0
    if glasses is not None:
        screen.line(_summary(glasses))
    action = status.get("next_action")
    screen.line(f"\nNext: {plain(action)}" if action else "\nAll is well.")
    return 0


def glasses_up(args: Namespace, screen: Screen) -> dict[str, Any]:
    """Make sure that paired glasses are connected, pairing them first if needed; return `glasses`
    of the status document. Raises `CliError`.
    """
    status = ask(args, "GET", "/v1/status").get("glasses") or {}
    if (
        _is_up(status)
        and (args.address or str(status.get("address"))).upper()
        == str(status.get("address")).upper()
    ):
        return dict(status)
    wanted = args.address or _chosen(args, screen)
    step = paired(args, screen, wanted, seconds=WINDOW_S)
    if not screen.as_json:
        how = str(step.get("how", ""))
        screen.line(f"Paired and saved ({HOW.get(how, plain(how))}).")
        screen.line("Connecting …")
        screen.flush()
    return _ready(args)


def _is_up(glasses: dict[str, Any]) -> bool:
    return glasses.get("state") == "ready" and glasses.get("bond") not in {"", "lost", None}


def _chosen(args: Namespace, screen: Screen) -> str:
    """Scan, and ask which glasses to use if several are found."""
    if not screen.as_json:
        screen.line("Looking for glasses …")
        screen.flush()
    found = {
        str(g["id"]): g for g in heard(args, SCAN_S, settle_s=SETTLE_S) if not g.get("missing")
    }
    if not found:
        raise CliError(
            "NOT_FOUND",
            f"no glasses were found in {SCAN_S:g} s",
            "switch them on, take them out of the case, bring them near",
            exit_code=4,
        )
    listed = sorted(
        found.values(), key=lambda g: g["rssi"] if g.get("rssi") is not None else 0, reverse=True
    )
    if not screen.as_json:
        screen.table(
            [(f"{number}", *described(g)) for number, g in enumerate(listed, 1)], indent="  "
        )
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
    raise CliError(
        "USAGE",
        f"several glasses were found: {', '.join(names)}",
        "name one: glassd up --address ADDRESS",
        exit_code=2,
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
    raise CliError(
        "TIMEOUT",
        f"the glasses are paired, but not connected after {READY_S:g} s: {reason}",
        str(status.get("next_action") or "see: glassd status"),
        exit_code=5,
    )


def _summary(glasses: dict[str, Any]) -> str:
    battery = f", battery {glasses['battery']} %" if glasses.get("battery") is not None else ""
    return plain(
        f"Ready: {glasses.get('model')} at {glasses.get('address')}, "
        f"firmware {glasses.get('firmware')}, "
        f"MTU {glasses.get('mtu')}, paired ({glasses.get('bond')}){battery}."
    )
