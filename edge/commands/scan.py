"""`glassd scan`: the glasses that are near, printed as they are found."""

from argparse import Namespace
from typing import Any

from edge.commands.shared.console import CliError, Screen
from edge.commands.shared.pairing import described, heard


def run(args: Namespace, screen: Screen) -> int:
    found: dict[str, dict[str, Any]] = {}
    for glasses in heard(args, args.seconds):
        name = str(glasses.get("id"))
        if not screen.as_json and (
            name not in found or (found[name].get("missing") and not glasses.get("missing"))
        ):
            screen.line(
                "  ".join(
                    f"{cell:<{width}}"
                    for cell, width in zip(described(glasses), (34, 10, 18, 8, 0), strict=True)
                ).rstrip()
            )
            screen.flush()
        found[name] = glasses
    if screen.as_json and found:
        screen.json(
            {"glasses": [{k: v for k, v in g.items() if k != "event"} for g in found.values()]}
        )
    if not found:
        raise CliError(
            "NOT_FOUND",
            f"no glasses were found in {args.seconds:g} s",
            "switch them on and bring them near; "
            "glasses that are connected to a phone cannot be found",
            exit_code=4,
        )
    return 0
