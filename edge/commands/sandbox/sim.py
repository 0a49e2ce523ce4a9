"""`glassd sim`: mock glasses on a virtual radio, until Ctrl-C."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.announce import announcer
from edge.commands.shared.console import CliError, Screen, os_problem, plain
from edge.commands.shared.extras import load, missing
from edge.commands.shared.run_loop import run_until_told
from firmware_bridge.errors import RadioError, RadioReason


def run(args: Namespace, screen: Screen) -> int:
    sim = load("firmware_bridge.sim.main", "sim")
    if args.script and not Path(args.script).is_file():
        raise CliError(
            "USAGE",
            f"{args.script}: there is no such script",
            "see: glassd sim --help",
            exit_code=2,
        )
    try:
        return run_until_told(
            lambda: sim.run_sim(
                args.model,
                radio=args.radio,
                control=Path(args.control) if args.control else None,
                out_dir=Path(args.out) if args.out else None,
                script=Path(args.script) if args.script else None,
                mtu=args.mtu,
                faults=args.fault,
                quirks=args.quirk,
                pairing=args.pairing,
                announce=_announcer(screen, args.model),
                watch=None if screen.as_json else _teller(screen),
            )
        )
    except ModuleNotFoundError as e:
        raise missing(e, "sim") from None
    except RadioError as e:
        code = (
            2 if e.reason is RadioReason.OTHER else 1
        )  # a radio that does not exist is wrong usage
        raise CliError(
            "RADIO",
            str(e),
            e.hint or "choose another radio: --radio tcp:127.0.0.1:0",
            exit_code=code,
        ) from None
    except ValueError as e:
        raise CliError("USAGE", str(e), "see: glassd sim --help", exit_code=2) from None
    except OSError as e:
        raise CliError(
            "SIM_FAILED", os_problem(e), "name another path: --out DIR, --control SOCKET"
        ) from None


# ------------------------------------------------------------------ what a person sees


def _announcer(screen: Screen, model: str) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that announces the glasses; for a pair both sides in one text."""
    announce = announcer(screen, model)

    def announce_sides(facts: Mapping[str, Any]) -> None:
        sides = facts.get("sides") or {}
        if screen.as_json or not sides:
            announce(facts)
        else:
            announce(
                {
                    **facts,
                    "sides": ", ".join(
                        f"{who['name']} at {who['address']}" for who in sides.values()
                    ),
                }
            )

    return announce_sides


def _teller(screen: Screen) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that prints each event of the glasses; programs use the control
    channel instead.
    """

    def tell(event: Mapping[str, Any]) -> None:
        words = _WORDS.get(str(event.get("event")))
        text = words(event) if words else ""
        if text:
            screen.line(plain(text))
            screen.flush()

    return tell


def _lens(event: Mapping[str, Any]) -> str:
    sides: Mapping[str, Mapping[str, Any]] = event.get("sides") or {}
    if event.get("same") is False and all(side["connected"] for side in sides.values()):
        return ""  # one arm has it, the other has it in a moment
    alone = f" ({event['side']} arm alone)" if event.get("same") is False else ""
    lines = [str(line) for line in event.get("lines") or [] if line]
    lit = f"{event.get('lit')} pixels lit" if event.get("lit") else "dark"
    return f"lens{alone}: {' | '.join(lines) or lit}"


def _link(event: Mapping[str, Any]) -> str:
    at = f"{event['side']} arm " if event.get("side") else ""
    return f"{at}{event['event']} ({event.get('peer')})"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "lens": _lens,
    "prompt": _lens,
    "connected": _link,
    "disconnected": _link,
    "notification": lambda e: (
        f"notification: {' | '.join(line for line in e.get('lines') or [] if line)}"
    ),
    "fault": lambda e: f"fault: {e.get('fault')}",
    "speaker": lambda e: f"speaker: {e.get('seconds')} s, {e.get('wav')}",
    "microphone": lambda e: f"microphone {'open' if e.get('open') else 'closed'}",
    "pairing": lambda e: f"pairing: {e.get('passkey') or e.get('number')}",
}
