"""`glassd call`: call one tool, and show its response and how it reached the wearer.
`glassd answer`: submit the result of a pending call. `glassd say`: a final transcript, as if the
wearer had said it.
"""

import json
import sys
from argparse import Namespace
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from edge.commands import confirm
from edge.commands.shared import form
from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import Who, ask, asks, client, tell
from edge.commands.shared.spinner import Spinner
from edge.runtime.errors import UserError

MARGIN_S: Final = 70.0
"""The daemon ends a call 60 s after the call's deadline at the latest; this waits a little longer,
so that the daemon's answer arrives first.
"""
ROUNDS: Final = 8
"""Questions of a server within one call."""
SHOW_IMAGE: Final = "glasses:show_image"
SAID_S: Final = 120.0
"""The text may start the slowest kind of tool (40 s), whose answer is then spoken."""
MAX_STDIN: Final = 200 * 1024
"""Bytes; the control API takes 256 KiB a request, the rest of which is the envelope's."""


def call(args: Namespace, screen: Screen) -> int:
    if args.no_wait and args.confirm:
        raise UserError(
            "USAGE",
            "--confirm and --no-wait exclude each other",
            "leave out --no-wait: the answer says whether the token was accepted",
        )
    who: Who = "owner" if args.confirm else "either"
    patience_s = args.ttl + MARGIN_S
    answer = _sent(args, screen, _body(args), patience_s=patience_s, who=who)
    if "ok" not in answer:  # stored, and answered later
        return screen.result(answer, answer["call_id"])
    if asks(answer) and args.no_wait:
        confirm.show(answer, screen)
        return 0  # with --no-wait, the question is the expected result
    if asks(answer) and not args.confirm:
        answer = confirm.wait(args, screen, answer, patience_s=patience_s)
    error = answer.get("error") or {}
    if error.get("code") == "TOOL_NOT_FOUND" and error.get("suggestion") and not screen.as_json:
        error["suggestion"] = _nearest(args)
    return tell(answer, screen)


def _sent(
    args: Namespace, screen: Screen, body: dict[str, Any], *, patience_s: float, who: Who
) -> dict[str, Any]:
    """Send the call and return what is answered; a person at a terminal sees its progress, and
    answers what the tool's server asks within the call.
    """
    watched = screen.live and not args.no_wait and not args.confirm
    if may_ask := watched and form.can_ask(screen):
        body["input"] = {}
    for asked in range(ROUNDS + 1):
        with Spinner(screen, args.tool) as spinner:
            if watched:
                answer = _followed(args, body, spinner, patience_s=patience_s)
            else:
                answer = ask(args, "POST", "/v1/call", body, timeout_s=patience_s, who=who)
        if not (may_ask and form.questions_of(answer)) or asked == ROUNDS:
            break
        body["input"] = form.answers_to(answer, screen)
    return dict(answer)


def _followed(
    args: Namespace, body: dict[str, Any], spinner: Spinner, *, patience_s: float
) -> dict[str, Any]:
    """Send the call, show its progress, return what is answered."""
    following = body | {"progress": True}
    parts = client(args, "either").stream("POST", "/v1/call", following, quiet_s=patience_s)
    try:
        for part in parts:
            match part:
                case {"event": "progress", "text": text}:
                    spinner.say(str(text))
                case {"event": "answer", "envelope": dict(envelope)}:
                    return envelope
                case {"ok": _}:  # a question or a refusal comes at once
                    return dict(part)
    except UserError as e:
        if e.code != "BUSY":
            raise
        # too many clients follow something, so it was not begun; it goes without progress
        return dict(ask(args, "POST", "/v1/call", body, timeout_s=patience_s, who="either"))
    raise UserError("TIMEOUT", "there was no answer in time", "see its state: glassd calls")


def say(args: Namespace, screen: Screen) -> int:
    body = {"text": " ".join(args.text)}
    with Spinner(screen, "say"):
        envelope = ask(args, "POST", "/v1/say", body, timeout_s=SAID_S, who="owner")
    return tell(envelope, screen)


def answer(args: Namespace, screen: Screen) -> int:
    """Submit a result: a value with `ok` is a complete response, any other is its data."""
    result = value(args.result)
    whole = isinstance(result, dict) and isinstance(result.get("ok"), bool)
    body = dict(result) if whole else {"data": result}
    if args.session:
        body["session"] = args.session
    reply = ask(args, "POST", f"/v1/calls/{quote(args.id, safe='')}/result", body, who="either")
    call_id = plain(args.id)
    return screen.result(reply, f"{call_id} has its result; show it: glassd calls {call_id}")


def _nearest(args: Namespace) -> str:
    """Return a suggestion that names the tool that was probably meant."""
    from edge.runtime.control_api import list_tools  # noqa: PLC0415 - only for a name that no tool has
    from tools_cache.nearest import did_you_mean  # noqa: PLC0415 - see above

    names = [str(tool.get("name")) for tool in list_tools(partial(ask, args, "GET"))["tools"]]
    near = did_you_mean(args.tool, names)
    everything = "all of them: glassd tools --all"
    return f"{near} ({everything})" if near else everything


def _body(args: Namespace) -> dict[str, Any]:
    given = arguments(args.args)
    if args.tool == SHOW_IMAGE:
        from edge.commands.shared.picture_file import with_picture  # noqa: PLC0415 - only for a picture

        given = with_picture(given)
    body: dict[str, Any] = {"tool": args.tool, "args": given, "ttl_s": args.ttl}
    body |= {"wait": False} if args.no_wait else {"wait": args.wait, "ask": "return"}
    optional = {
        "mode": args.mode,
        "confirm": args.confirm,
        "idempotency_key": args.key,
        "session": args.session,
        "turn_id": args.turn,
        "provider_call_id": args.provider_id,
    }
    if args.present or args.silent:
        body["present"] = args.present
    return {**body, **{key: value for key, value in optional.items() if value}}


# ------------------------------------------------------------------ JSON of the command line


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


def _wrong(message: str, fix: str) -> UserError:
    return UserError("USAGE", message, fix)


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
