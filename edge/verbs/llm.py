"""`glassd llm`: models' own tool formats. `tools` prints what a request's `tools` are, `answer`
runs what a model asks for.

Refuses to speak to any model: the conversation is the caller's, and so is the key to it.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.facades.llm.transports import TRANSPORTS
from edge.facades.llm.turn import BadRequest, Turn
from edge.facades.llm.words import BadMessage
from edge.verbs.screen import CliError, Screen
from edge.verbs.talk import ask

MAX_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes of a model's answer."""


def run(args: Namespace, screen: Screen) -> int:
    turn = Turn(
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
        told, withheld = turn.tools()
    except BadMessage as e:
        raise CliError(
            "INVALID_REQUEST",
            f"{_told(args.file)}: {e}",
            "hand in what the provider's API answered, as JSON",
            exit_code=2,
        ) from None
    for name, why in withheld.items():
        screen.note(f"warning: {args.provider} cannot be told of {name}: {why}")
    screen.json(told)
    return 0 if told else 4


class _Daemon:
    """The control API; what the model can mend is told from what it cannot."""

    def __init__(self, args: Namespace) -> None:
        self._args = args

    def __call__(self, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0) -> Any:
        try:
            return ask(self._args, method, path, body, timeout_s=timeout_s)
        except CliError as e:
            if e.code in {"INVALID_REQUEST", "TOO_LARGE"}:
                raise BadRequest(e.message) from None
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
            f"{_told(file)}: cannot be read: {e.strerror}",
            "name a file, or - for standard input",
            exit_code=2,
        ) from None
    if len(raw) > MAX_MESSAGE:
        raise CliError(
            "INVALID_REQUEST",
            f"{_told(file)}: is larger than {MAX_MESSAGE} bytes",
            "hand in one answer of the model",
            exit_code=2,
        )
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise CliError(
            "INVALID_REQUEST",
            f"{_told(file)}: is not JSON: {str(e)[:120]}",
            "hand in what the provider's API answered",
            exit_code=2,
        ) from None


def _told(file: str) -> str:
    return "standard input" if file == "-" else file
