"""`glassd pair`: pair with glasses; also repairs a bond that was lost on either side."""

from argparse import Namespace

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.pairing import HOW, paired


def run(args: Namespace, screen: Screen) -> int:
    if args.cancel:
        return _cancel(args, screen)
    step = paired(args, screen, args.address, seconds=args.seconds)
    glasses = step.get("glasses") or {}
    if screen.as_json:
        screen.json({"paired": glasses, "how": step.get("how")})
    else:
        how = str(step.get("how", ""))
        screen.line(
            f"Paired with {plain(glasses.get('id', ''))} ({HOW.get(how, plain(how))}). "
            "From now on glassd connects to them by itself."
        )
    return 0


def _cancel(args: Namespace, screen: Screen) -> int:
    closed = bool(ask(args, "DELETE", "/v1/pairing", who="owner").get("closed"))
    if not closed:
        raise CliError("NOT_FOUND", "no pairing window is open", exit_code=4)
    if screen.as_json:
        screen.json({"closed": True})
    else:
        screen.line("The pairing window is closed.")
    return 0
