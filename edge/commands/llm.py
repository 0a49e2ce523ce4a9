"""`glassd llm`: tool formats of model providers. `tools` prints the `tools` of a request, `answer`
runs the calls that a model asks for.

It never contacts a model: the conversation and the API key stay with the caller.
"""

import json
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen
from edge.commands.shared.daemon import ask
from edge.mcp.llm.models import BadMessage
from edge.mcp.llm.providers import TRANSPORTS
from edge.mcp.llm.replies import ProviderError
from edge.mcp.llm.turn import BadModelRequest, ModelTurn
from edge.runtime.errors import UserError

MAX_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of a model's answer."""


def llm(args: Namespace, screen: Screen) -> int:
    named = {"session": "session", "turn_id": "turn", "mode": "mode"}
    fields = {key: getattr(args, option, None) or "" for key, option in named.items()}
    ttl_s = getattr(args, "ttl", 30.0)
    turn = ModelTurn(TRANSPORTS[args.provider], partial(_ask, args), ttl_s=ttl_s, fields=fields)
    try:
        if args.action == "answer":
            screen.json(turn.answer(_message(args.file)))
            return 0
        tools, withheld = turn.tools()
    except ProviderError as e:
        fix = "send the request to the provider again, or correct what it names"
        raise UserError("PROVIDER_ERROR", str(e), fix, exit_code=2) from None
    except BadMessage as e:
        raise _invalid(
            args.file, str(e), "pass the answer of the provider's API, as JSON"
        ) from None
    for name, why in withheld.items():
        screen.note(f"warning: {name} cannot be offered to {args.provider}: {why}")
    screen.json(tools)
    return 0 if tools else 4


def _ask(
    args: Namespace, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0
) -> Any:
    """Ask the daemon; errors that the model can correct are raised as `BadModelRequest`."""
    try:
        return ask(args, method, path, body, timeout_s=timeout_s)
    except UserError as e:
        if e.code in {"INVALID_REQUEST", "TOO_LARGE"}:
            raise BadModelRequest(e.message) from None
        raise


def _message(file: str) -> Any:
    """Read a file, or standard input for `-`. Raise `UserError`."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_MESSAGE + 1)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(MAX_MESSAGE + 1)
    except OSError as e:
        fix = "name a file, or - for standard input"
        raise _invalid(file, f"cannot be read: {e.strerror}", fix) from None
    if len(raw) > MAX_MESSAGE:
        problem = f"is larger than {MAX_MESSAGE} bytes"
        raise _invalid(file, problem, "pass a single answer of the model")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        fix = "pass the answer of the provider's API"
        raise _invalid(file, f"is not JSON: {str(e)[:120]}", fix) from None


def _invalid(file: str, problem: str, fix: str) -> UserError:
    source = "standard input" if file == "-" else file
    return UserError("INVALID_REQUEST", f"{source}: {problem}", fix)
