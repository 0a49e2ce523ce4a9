"""`glassd unpair`: forget paired glasses on this side."""

from argparse import Namespace
from urllib.parse import quote

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon_client import ask

PATIENCE_S = 45.0
"""bluetoothd takes 2 s to forget connected glasses, and the link is closed first."""


def run(args: Namespace, screen: Screen) -> int:
    path = f"/v1/bonds/{quote(args.address, safe='')}" if args.address else "/v1/bonds"
    answer = ask(args, "DELETE", path, timeout_s=PATIENCE_S, who="owner")
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(
            f"{plain(answer['unpaired']['id'])} is forgotten here. "
            "To make the glasses forget this machine, reset them."
        )
    return 0
