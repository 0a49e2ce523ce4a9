"""`glassd run`: reads the settings in a child, and meanwhile imports the daemon: two cores start
sooner than one. Until the child is there, only what both need is imported.
"""

import gc
import os
from argparse import Namespace
from pathlib import Path

from edge.commands.shared.console import Screen
from edge.commands.shared.extras import load
from edge.runtime.library_imports import leave_out_typing_extensions_of_msgspec


def run(args: Namespace, screen: Screen) -> int:  # noqa: ARG001 - every verb is called alike
    gc.disable()  # while classes are made there is nothing to find; until READY, see `app.serve`
    leave_out_typing_extensions_of_msgspec()
    config = Path(args.config) if args.config else None
    reading = load("edge.daemon.startup", "run").begin(config, os.environ)
    load("uvloop", "run")
    return int(load("edge.commands.serving", "run").serve(reading, config))
