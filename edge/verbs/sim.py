"""`glassd sim`: mock glasses on a virtual radio, until Ctrl-C."""

from argparse import Namespace
from pathlib import Path

from edge.verbs.announce import announcer
from edge.verbs.extras import load, missing
from edge.verbs.loop import run_until_told
from edge.verbs.screen import CliError, Screen
from firmware_bridge.errors import RadioError, RadioReason


def run(args: Namespace, screen: Screen) -> int:
    sim = load("firmware_bridge.sim.main", "sim")
    if args.script and not Path(args.script).is_file():
        raise CliError("USAGE", f"{args.script}: there is no such script", "see: glassd sim --help", exit_code=2)
    try:
        return run_until_told(lambda: sim.run_sim(
            args.model, radio=args.radio, control=Path(args.control) if args.control else None,
            out_dir=Path(args.out) if args.out else None, script=Path(args.script) if args.script else None,
            mtu=args.mtu, faults=args.fault, quirks=args.quirk, pairing=args.pairing, announce=announcer(screen, args.model),
        ))  # fmt: skip
    except ModuleNotFoundError as e:
        raise missing(e, "sim") from None
    except RadioError as e:
        code = 2 if e.reason is RadioReason.OTHER else 1  # a radio that does not exist is a word mistyped, not a fault
        raise CliError("RADIO", str(e), e.hint or "choose another radio: --radio tcp:127.0.0.1:0", exit_code=code) from None
    except ValueError as e:
        raise CliError("USAGE", str(e), "see: glassd sim --help", exit_code=2) from None
    except OSError as e:
        raise CliError("SIM_FAILED", str(e), "see: glassd sim --help") from None
