"""`glassd cancel`: cancel a call."""

from argparse import Namespace
from urllib.parse import quote

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon_client import ask


def run(args: Namespace, screen: Screen) -> int:
    body = {"reason": args.reason or "cancelled on the command line"}
    answer = ask(args, "POST", f"/v1/calls/{quote(args.id, safe='')}/cancel", body, who="either")
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(f"{plain(args.id)} is cancelled; show it: glassd calls {plain(args.id)}")
    return 0
