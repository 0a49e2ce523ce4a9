"""`glassd call`: one call through the whole pipeline; tells the envelope and how it reached the wearer."""

import json
import sys
from argparse import Namespace
from typing import Any, Final

from edge.verbs.screen import CliError, Screen, for_people, plain
from edge.verbs.talk import ask

MAX_STDIN: Final = 200 * 1024
"""Bytes; the control API takes 256 KiB a request, the rest of which is the envelope's."""
MARGIN_S: Final = 70.0
"""The daemon ends a call at its own deadline plus 60 s; ours lies behind that, so that its word is the one heard."""

_TIMED_OUT: Final = frozenset({"TIMEOUT", "DEADLINE_EXPIRED", "NOT_ACCEPTED", "APP_ACTIVATION_TIMEOUT"})


def run(args: Namespace, screen: Screen) -> int:
    body: dict[str, Any] = {"tool": args.tool, "args": arguments(args.args), "mode": args.mode, "ttl_s": args.ttl}
    body["wait"] = False if args.no_wait else args.wait
    optional = {"confirm": args.confirm, "idempotency_key": args.key}
    body.update({key: value for key, value in optional.items() if value})
    answer = ask(args, "POST", "/v1/call", body, timeout_s=args.ttl + MARGIN_S)
    if not args.no_wait:
        return tell(answer, screen)
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(answer["call_id"])
    return 0


def arguments(words: list[str]) -> dict[str, Any]:
    """Read a call's arguments: `-`, one JSON object, or key=value pairs; pairs overrule the object's keys."""
    found: dict[str, Any] = {}
    for word in words:
        if word == "-":
            found.update(_object(_stdin(), "stdin"))
        elif word.lstrip().startswith("{"):
            found.update(_object(word, "the argument"))
        else:
            key, equals, value = word.partition("=")
            if not equals or not key:
                raise _wrong(f"{word!r} is neither JSON nor key=value", 'for example: glassd call notes:add text="buy milk"')
            found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    """Take a value as JSON when it is JSON (5, true, [1, 2], "5"), else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as e:
        raise _wrong(f"{where} is not JSON: {e}", """quote it: glassd call notes:add '{"text": "milk"}'""") from None
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


# ------------------------------------------------------------------ the envelope, for people


def tell(envelope: dict[str, Any], screen: Screen) -> int:
    """Show an envelope and give the exit code it means."""
    code = exit_code(envelope)
    if screen.as_json:
        screen.json(envelope)
    elif envelope.get("ok"):
        _tell_success(envelope, screen)
    else:
        screen.error(_failure(envelope))
    return code


def exit_code(envelope: dict[str, Any]) -> int:
    """Map an envelope to contract §1: done, failed, no such tool, timed out."""
    if envelope.get("ok"):
        return 0
    error = envelope.get("error") or {}
    if error.get("code") in _TIMED_OUT:
        return 5
    return 4 if error.get("type") == "NOT_FOUND" else 1


def _tell_success(envelope: dict[str, Any], screen: Screen) -> None:
    data = envelope.get("data")
    if data is not None:
        screen.line(for_people(data))
    meta = envelope.get("meta") or {}
    facts = [f"route {meta['route']}"] if meta.get("route") else []
    facts += [f"{meta['duration']} ms"] if "duration" in meta else []
    facts.append(f"delivery {delivered(meta.get('delivery', 'none'))}")
    screen.line(screen.paint(plain(" · ".join(facts)), "dim"))


def delivered(delivery: Any) -> str:
    """Show how far a result got, and why not further."""
    if not isinstance(delivery, dict):
        return str(delivery)
    more = [str(delivery[key]) for key in ("reason", "downgrade") if delivery.get(key)]
    return str(delivery.get("state", "")) + (f" ({', '.join(more)})" if more else "")


def _failure(envelope: dict[str, Any]) -> CliError:
    error = envelope.get("error") or {}
    request = error.get("confirmation_request") or {}
    fix = error.get("suggestion") or ""
    if request.get("token"):
        fix = f"confirm on the glasses, or: the same call with --confirm {request['token']}"
    problems = error.get("details")
    listed = "".join(f"\n  {p.get('path', '')}: {p.get('problem', '')}" for p in problems if isinstance(p, dict)) if isinstance(problems, list) else ""
    return CliError(str(error.get("code", "")), f"{error.get('message', '')} ({error.get('code', '')}){listed}", str(fix))
