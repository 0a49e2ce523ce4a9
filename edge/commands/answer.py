"""`glassd answer`: submit the result of a pending call."""

from argparse import Namespace
from typing import Any
from urllib.parse import quote

from edge.commands.shared.arguments import value
from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon_client import ask


def run(args: Namespace, screen: Screen) -> int:
    body = _body(value(args.result))
    if args.session:
        body["session"] = args.session
    answer = ask(args, "POST", f"/v1/calls/{quote(args.id, safe='')}/result", body, who="either")
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(f"{plain(args.id)} has its result; show it: glassd calls {plain(args.id)}")
    return 0


def _body(result: Any) -> dict[str, Any]:
    """Return the request body: a value with `ok` is a complete response, any other is its data."""
    return (
        dict(result)
        if isinstance(result, dict) and isinstance(result.get("ok"), bool)
        else {"data": result}
    )
