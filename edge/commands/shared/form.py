"""What the server of a tool asks within a call, answered at the terminal field by field."""

import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.terminal import typed

PATIENCE_S: Final = 300.0
_YES: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_NUMBERS: Final[Mapping[str, Callable[[str], Any]]] = {"integer": int, "number": float}


class NoAnswer(Exception):
    """The person typed no answer."""


class Declined(Exception):
    """The person said no."""


def can_ask(screen: Screen) -> bool:
    """Return whether somebody sits at this terminal and may type."""
    return screen.live and os.isatty(0)


def questions_of(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a response asks of its caller before the call goes on; {} if it asks nothing."""
    details = (envelope.get("error") or {}).get("details")
    found = details.get("inputRequests") if isinstance(details, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def answers_to(envelope: Mapping[str, Any], screen: Screen) -> dict[str, Any]:
    """Ask the person at the terminal; return the value of `input` for the same call again."""
    details = envelope["error"]["details"]
    screen.note(f"{envelope['error'].get('message', '')}:")
    responses = {key: _response(each, screen) for key, each in questions_of(envelope).items()}
    given: dict[str, Any] = {"inputResponses": responses}
    state = details.get("requestState")
    return given if state is None else {**given, "requestState": state}


def _response(request: Any, screen: Screen) -> dict[str, Any]:
    method = request.get("method") if isinstance(request, Mapping) else None
    params = request.get("params") if isinstance(request, Mapping) else None
    if method == "roots/list":
        return {"roots": []}
    if method != "elicitation/create" or not isinstance(params, Mapping):
        return {"action": "decline"}
    screen.note(str(params.get("message", "")))
    if params.get("mode", "form") != "form":
        screen.note("this is asked on a web page, which glassd does not open: declined")
        return {"action": "decline"}
    try:
        return {"action": "accept", "content": _form(params.get("requestedSchema"), screen)}
    except Declined:
        return {"action": "decline"}
    except NoAnswer:
        return {"action": "cancel"}


def _form(schema: Any, screen: Screen) -> dict[str, Any]:
    """Ask for each field. Raise `NoAnswer`, `Declined`."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        if _line("Agree? Type yes or no: ", screen).lower() in ("y", "yes"):
            return {}
        raise Declined
    required = schema.get("required") or ()
    content = {}
    for name, found in properties.items():
        about = found if isinstance(found, Mapping) else {}
        value = _field(name, about, screen, needed=name in required)
        if value is not None:
            content[name] = value
    return content


def _field(name: str, about: Mapping[str, Any], screen: Screen, *, needed: bool) -> Any:
    """Ask until the value fits; None for a field that is left out. Raise `NoAnswer`."""
    choices = _choices(about)
    kind = "yes or no" if about.get("type") == "boolean" else str(about.get("type", "text"))
    if choices:
        kind = ", ".join(choices)
    default = about.get("default")
    usual = f"; Enter alone: {default}" if default is not None else ""
    usual = usual or ("" if needed else "; Enter alone: leave it out")
    prompt = f"{about.get('title') or name} ({kind}{usual}): "
    while True:
        text = _line(prompt, screen)
        if not text and (default is not None or not needed):
            return default
        value = choices.get(text) if choices else _value(text, about)
        if value is not None:
            return value


def _choices(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a field by what is typed for them; {} if it takes any."""
    titled = about.get("oneOf")
    if isinstance(titled, list):
        found = [one for one in titled if isinstance(one, Mapping) and "const" in one]
        return {str(one.get("title") or one["const"]): one["const"] for one in found}
    listed = about.get("enum")
    return {str(value): value for value in listed} if isinstance(listed, list) else {}


def _value(text: str, about: Mapping[str, Any]) -> Any:
    """Return a typed value as the field's type; None if it is none."""
    kind = str(about.get("type"))
    if kind == "boolean":
        return _YES.get(text.lower())
    if kind in _NUMBERS:
        with suppress(ValueError):
            number = _NUMBERS[kind](text)
            return number if math.isfinite(number) else None
        return None
    return text or None


def _line(prompt: str, screen: Screen) -> str:
    """Read one line. Raise `NoAnswer` at the end of the input, and when nobody types."""
    screen.prompt(plain(prompt).replace("\n", " "))
    try:
        line = typed(PATIENCE_S)
    except TimeoutError:
        line = None
    if line is None:
        screen.note("")
        raise NoAnswer
    return line
