"""`glassd demo`: everything on this machine, with nothing to configure."""

from argparse import Namespace
from pathlib import Path

from edge.commands.shared.console import Screen
from edge.commands.shared.extras import load, missing, require
from edge.commands.shared.run_loop import run_until_told


def run(args: Namespace, screen: Screen) -> int:
    require("demo")
    stage = load("edge.demo.main", "demo")
    try:
        return run_until_told(
            lambda: stage.run_demo(
                glasses=args.glasses,
                script=Path(args.script) if args.script else None,
                seconds=args.seconds,
                as_json=screen.as_json,
                keep=args.keep,
            )
        )
    except ModuleNotFoundError as e:
        raise missing(e, "demo") from None
