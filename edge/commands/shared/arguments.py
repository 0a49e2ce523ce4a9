"""Reads values of the command line as JSON: the arguments of a call, or a submitted result."""

import json
import sys
from contextlib import suppress
from typing import Any, Final

from edge.commands.shared.console import CliError

MAX_STDIN: Final = 200 * 1024
"""Bytes; the control API takes 256 KiB a request, the rest of which is the envelope's."""


def arguments(words: list[str]) -> dict[str, Any]:
    """Read an object: `-` for stdin, one JSON object, or key=value pairs, which override the keys
    of the object.
    """
    found: dict[str, Any] = {}
    for word in words:
        if word == "-":
            found.update(_object(_stdin(), "stdin"))
        elif word.lstrip().startswith("{"):
            found.update(_object(word, "the argument"))
        else:
            key, equals, value = word.partition("=")
            if not equals or not key:
                raise _wrong(
                    f"{word!r} is neither JSON nor key=value", 'for example: text="buy milk"'
                )
            found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    """Return a value as JSON if it is JSON (5, true, [1, 2], "5"), else as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as e:
        raise _wrong(f"{where} is not JSON: {e}", """quote it: '{"text": "milk"}'""") from None
    except RecursionError:
        raise _wrong(
            f"{where} is nested too deeply", """for example: '{"text": "milk"}'"""
        ) from None
    if not isinstance(value, dict):
        raise _wrong(f"{where} must be a JSON object", """for example: '{"text": "milk"}'""")
    return value


def _stdin() -> str:
    raw = sys.stdin.buffer.read(MAX_STDIN + 1)
    if len(raw) > MAX_STDIN:
        raise _wrong(f"stdin has more than {MAX_STDIN // 1024} KiB", "send less at once")
    return raw.decode("utf-8", "replace")


def _wrong(message: str, fix: str) -> CliError:
    return CliError("USAGE", message, fix, exit_code=2)


def value(words: list[str]) -> Any:
    """Read one value: what `arguments` reads, any other JSON, or one word as text; without words
    it is None.
    """
    if not words:
        return None
    if len(words) > 1 or words[0] == "-" or words[0].lstrip().startswith("{"):
        return arguments(words)
    with suppress(ValueError, RecursionError):  # then it is a word, or wrong
        return json.loads(words[0])
    if words[0].lstrip()[:1] in {"[", '"'}:  # meant as JSON; as text it would be a surprise
        raise _wrong(f"{words[0]!r} is not JSON", """quote it: '["a", "b"]'""")
    return arguments(words) if "=" in words[0] else words[0]
