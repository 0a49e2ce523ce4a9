"""`glassd call`: call one tool, and show its response and how it reached the wearer."""

from argparse import Namespace
from typing import Any, Final

from edge.commands.shared import call_prompt
from edge.commands.shared.arguments import arguments
from edge.commands.shared.console import CliError, Screen
from edge.commands.shared.daemon_client import ask
from edge.commands.shared.response_format import asks, tell

MARGIN_S: Final = 70.0
"""The daemon ends a call 60 s after the call's deadline at the latest; this waits a little longer,
so that the daemon's answer arrives first.
"""


def run(args: Namespace, screen: Screen) -> int:
    if args.no_wait and args.confirm:
        raise CliError(
            "USAGE",
            "--confirm and --no-wait exclude each other",
            "leave out --no-wait: the answer says whether the token was accepted",
            exit_code=2,
        )
    answer = ask(
        args,
        "POST",
        "/v1/call",
        _body(args),
        timeout_s=args.ttl + MARGIN_S,
        who="owner" if args.confirm else "either",
    )
    if "ok" not in answer:
        return _admitted(answer, screen)
    if asks(answer) and args.no_wait:
        call_prompt.show(answer, screen)
        return 0  # with --no-wait, the question is the expected result
    if asks(answer) and not args.confirm:
        answer = call_prompt.decided(args, screen, answer, patience_s=args.ttl + MARGIN_S)
    error = answer.get("error") or {}
    if error.get("code") == "TOOL_NOT_FOUND" and error.get("suggestion") and not screen.as_json:
        error["suggestion"] = _nearest(args)
    return tell(answer, screen)


def _nearest(args: Namespace) -> str:
    """Return a suggestion that names the tool that was probably meant."""
    from tools_cache.nearest import did_you_mean  # noqa: PLC0415 - only for a name that no tool has

    names = [str(tool.get("name")) for tool in ask(args, "GET", "/v1/tools").get("tools", ())]
    near = did_you_mean(args.tool, names)
    return (
        f"{near} (all of them: glassd tools --all)" if near else "all of them: glassd tools --all"
    )


def _body(args: Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {"tool": args.tool, "args": arguments(args.args), "ttl_s": args.ttl}
    body |= {"wait": False} if args.no_wait else {"wait": args.wait, "ask": "return"}
    optional = {
        "mode": args.mode,
        "confirm": args.confirm,
        "idempotency_key": args.key,
        "session": args.session,
        "turn_id": args.turn,
        "provider_call_id": args.provider_id,
    }
    return {**body, **{key: value for key, value in optional.items() if value}}


def _admitted(answer: dict[str, Any], screen: Screen) -> int:
    """Print the id of a call that is stored and will be answered."""
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(answer["call_id"])
    return 0
