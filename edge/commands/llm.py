"""`glassd llm`: tool formats of model providers. `tools` prints the `tools` of a request, `answer`
runs the calls that a model asks for.

It never contacts a model: the conversation and the API key stay with the caller.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen
from edge.commands.shared.daemon_client import ask
from edge.mcp.llm.models import BadMessage
from edge.mcp.llm.providers import TRANSPORTS
from edge.mcp.llm.turn import BadModelRequest, ModelTurn

MAX_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of a model's answer."""


def run(args: Namespace, screen: Screen) -> int:
    turn = ModelTurn(
        TRANSPORTS[args.provider],
        _Daemon(args),
        ttl_s=getattr(args, "ttl", 30.0),
        fields={
            key: getattr(args, given, None) or ""
            for key, given in (("session", "session"), ("turn_id", "turn"), ("mode", "mode"))
        },
    )
    try:
        if args.action == "answer":
            screen.json(turn.answer(_message(args.file)))
            return 0
        tools, withheld = turn.tools()
    except BadMessage as e:
        raise CliError(
            "INVALID_REQUEST",
            f"{_source(args.file)}: {e}",
            "pass the answer of the provider's API, as JSON",
            exit_code=2,
        ) from None
    for name, why in withheld.items():
        screen.note(f"warning: {name} cannot be offered to {args.provider}: {why}")
    screen.json(tools)
    return 0 if tools else 4


class _Daemon:
    """The control API; errors that the model can correct are raised as `BadModelRequest`."""

    def __init__(self, args: Namespace) -> None:
        self._args = args

    def __call__(self, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0) -> Any:
        try:
            return ask(self._args, method, path, body, timeout_s=timeout_s)
        except CliError as e:
            if e.code in {"INVALID_REQUEST", "TOO_LARGE"}:
                raise BadModelRequest(e.message) from None
            raise


def _message(file: str) -> Any:
    """Read a file, or standard input for `-`. Raises `CliError`."""
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_MESSAGE + 1)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(MAX_MESSAGE + 1)
    except OSError as e:
        raise CliError(
            "INVALID_REQUEST",
            f"{_source(file)}: cannot be read: {e.strerror}",
            "name a file, or - for standard input",
            exit_code=2,
        ) from None
    if len(raw) > MAX_MESSAGE:
        raise CliError(
            "INVALID_REQUEST",
            f"{_source(file)}: is larger than {MAX_MESSAGE} bytes",
            "pass a single answer of the model",
            exit_code=2,
        )
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise CliError(
            "INVALID_REQUEST",
            f"{_source(file)}: is not JSON: {str(e)[:120]}",
            "pass the answer of the provider's API",
            exit_code=2,
        ) from None


def _source(file: str) -> str:
    return "standard input" if file == "-" else file
