"""`glassd sim`: mock glasses on a virtual radio, until Ctrl-C."""

from argparse import Namespace
from pathlib import Path

from edge.verbs.announce import announcer
from edge.verbs.extras import load, missing
from edge.verbs.loop import run_until_told
from edge.verbs.screen import CliError, Screen
from firmware_bridge.errors import RadioError


def run(args: Namespace, screen: Screen) -> int:
    sim = load("firmware_bridge.sim.main", "sim")
    try:
        return run_until_told(lambda: sim.run_sim(
            args.model, radio=args.radio, control=Path(args.control) if args.control else None,
            out_dir=Path(args.out) if args.out else None, script=Path(args.script) if args.script else None,
            mtu=args.mtu, announce=announcer(screen, args.model),
        ))  # fmt: skip
    except ModuleNotFoundError as e:
        raise missing(e, "sim") from None
    except RadioError as e:
        raise CliError("RADIO", str(e), e.hint or "choose another radio: --radio tcp:127.0.0.1:0") from None
    except ValueError as e:
        raise CliError("USAGE", str(e), "see: glassd sim --help", exit_code=2) from None
    except OSError as e:
        raise CliError("SIM_FAILED", str(e), "see: glassd sim --help") from None
