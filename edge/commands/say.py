"""`glassd say`: a final transcript, as if the wearer had said it."""

from argparse import Namespace
from typing import Final

from edge.commands.shared.console import Screen
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.response_format import tell

PATIENCE_S: Final = 120.0
"""The text may start the slowest kind of tool (40 s), whose answer is then spoken."""


def run(args: Namespace, screen: Screen) -> int:
    return tell(
        ask(
            args,
            "POST",
            "/v1/say",
            {"text": " ".join(args.text)},
            timeout_s=PATIENCE_S,
            who="owner",
        ),
        screen,
    )
