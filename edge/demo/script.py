"""The language of demo scripts, and the built-in tour.

One step a line; `#` begins a comment, `== Title` a chapter. Verbs are those a person types;
`expect` waits for an event.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

VERBS: Final = {
    "say": "say TEXT            what the wearer says, as a final transcript",
    "hear": "hear TEXT|FILE.wav  spoken by a voice, or from a file, into the microphone",
    "call": "call TOOL [JSON]    one tool call through the whole pipeline",
    "invoke": "invoke TOOL [JSON]  the cloud's agent calls a tool of these glasses",
    "tap": "tap                 tap the temple: next page, or stop speaking",
    "double_tap": "double_tap          tap twice",
    "button": "button              press the button",
    "button_long": "button_long         hold the button",
    "caps": "caps camera=false   change what the glasses can do, while they run",
    "drop": "drop                lose the radio link for a moment",
    "fault": (
        "fault FAULT         something goes wrong with the glasses: "
        "drop:left, away:5 … (`glassd sim --help` has all)"
    ),
    "wait": "wait SECONDS        let time pass",
    "offline": "offline             stop the broker",
    "online": "online              start it again",
    "tools": "tools               the active tools, and why others are hidden",
    "lens": "lens                draw the lens",
    "status": "status              every layer in a line",
    "expect": "expect EVENT [k=v]  (scripts) wait for an event; `k~v` means contains; 10 s",
    "help": "help                this list",
    "quit": "quit                end the demo",
}
WITH_WORDS: Final = frozenset({"say", "hear", "call", "invoke", "caps", "fault", "wait", "expect"})
ALONE: Final = frozenset(VERBS) - WITH_WORDS
FOR_PEOPLE: Final = frozenset({"help", "quit"})
TOURS: Final = {"sim:even_g1": "tour_even_g1.script"}
"""Glasses without a loudspeaker and with two arms have their own tour."""
MAX_SCRIPT_BYTES: Final = 64 * 1024


_TRUTH: Final = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


class BadScript(Exception):
    """A step that cannot be performed; in a script the text names the line."""


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One step. `rest` is the line after the verb, unchanged."""

    verb: str
    rest: str = ""
    line: int = 0


def parse(text: str) -> list[ScriptStep]:
    """Read a script. Raise `BadScript`."""
    steps = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("=="):
            steps.append(ScriptStep("title", line.strip("= "), number))
        elif line and not line.startswith("#"):
            try:
                steps.append(_checked(parse_line(line, number)))
            except BadScript as wrong:
                raise BadScript(f"line {number}: {wrong}") from None
    return steps


def _checked(step: ScriptStep) -> ScriptStep:
    """Return a step of a script whose words can be understood: a script with a mistake is refused
    before anything starts. Raise `BadScript`.
    """
    if step.verb in FOR_PEOPLE:
        raise BadScript(f"{step.verb} is only for a person at the terminal")
    check = {
        "call": split_call,
        "invoke": split_call,
        "caps": split_caps,
        "wait": seconds,
        "expect": Expectation.parse,
    }.get(step.verb)
    if check is not None:
        check(step.rest)
    return step


def parse_line(line: str, number: int = 0) -> ScriptStep:
    """Read one step. Raise `BadScript`."""
    verb, _, rest = line.partition(" ")
    if verb not in VERBS:
        raise BadScript(f"{verb!r} is not a verb; verbs are {', '.join(VERBS)}")
    if verb in ALONE and rest.strip():
        raise BadScript(
            f"{verb} stands alone, one act a line; this is left over: {rest.strip()[:60]}"
        )
    if verb in WITH_WORDS and not rest.strip():
        raise BadScript(f"{verb} needs more: {VERBS[verb].split('  ')[0]}")
    return ScriptStep(verb, rest.strip(), number)


def load(name: str, glasses: str = "") -> list[ScriptStep]:
    """Load the built-in `tour` (the one of these glasses, where they have their own), or a
    file. Raise `BadScript`.
    """
    try:
        if name == "tour":
            file = TOURS.get(glasses, "tour.script")
            text = resources.files("edge.demo").joinpath(file).read_text(encoding="utf-8")
        else:
            data = Path(name).read_bytes()
            if len(data) > MAX_SCRIPT_BYTES:
                raise BadScript(
                    f"{name} has {len(data)} bytes; a script has at most {MAX_SCRIPT_BYTES}"
                )
            text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise BadScript(f"cannot read the script {name}: {wrong}") from None
    return parse(text)


def split_call(rest: str) -> tuple[str, dict[str, Any]]:
    """`TOOL {json}` or `TOOL key=value …` → name and arguments. Raise `BadScript`."""
    tool, _, text = rest.partition(" ")
    if text.strip().startswith("{"):
        try:
            return tool, dict(json.loads(text))
        except ValueError as wrong:
            raise BadScript(f"the arguments of {tool} are not JSON: {wrong}") from None
    args: dict[str, Any] = {}
    for word in _words(text):
        key, equals, value = word.partition("=")
        if not (key and equals):
            example = 'call notes:add text="buy milk"'
            raise BadScript(f"{word!r} is neither JSON nor key=value; for example: {example}")
        args[key] = _value(value)
    return tool, args


def _value(text: str) -> Any:
    """Return a value as JSON if it is JSON, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as wrong:
        raise BadScript(f"{text[:60]}: {wrong}; close the quotation") from None


MAX_WAIT_S: Final = 3600.0


def seconds(rest: str) -> float:
    """Read how long to wait. Raise `BadScript`."""
    try:
        value = float(rest)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_WAIT_S:
        raise BadScript(f"wait {rest[:20]}: seconds from 0 to {MAX_WAIT_S:.0f} are needed")
    return value


def split_caps(rest: str) -> dict[str, bool]:
    """Read `camera=false …`: the capabilities to change. Raise `BadScript`."""
    changes = {}
    for word in rest.split():
        key, _, value = word.partition("=")
        if not key or value.lower() not in _TRUTH:
            raise BadScript(f"{word!r} says neither yes nor no; for example: caps camera=false")
        changes[key] = _TRUTH[value.lower()]
    return changes


@dataclass(frozen=True, slots=True)
class Expectation:
    """An event that must come: its name and what its fields must be (`=`) or contain (`~`)."""

    event: str
    equal: tuple[tuple[str, str], ...]
    contain: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, rest: str) -> "Expectation":
        """Read `EVENT k=v k~v …`. Raise `BadScript`."""
        words = _words(rest)
        if not words:
            raise BadScript("expect needs the name of an event")
        equal: list[tuple[str, str]] = []
        contain: list[tuple[str, str]] = []
        for word in words[1:]:
            cut = min((word.index(c) for c in "=~" if c in word), default=0)
            if not cut:
                raise BadScript(f"expect: {word!r} is neither key=value nor key~value")
            (equal if word[cut] == "=" else contain).append((word[:cut], word[cut + 1 :]))
        return cls(words[0], tuple(equal), tuple(contain))

    def met_by(self, event: Mapping[str, Any]) -> bool:
        """Return whether `event` is the expected one."""
        return (
            event.get("event") == self.event
            and all(_flat(event.get(k)) == v for k, v in self.equal)
            and all(v.casefold() in _flat(event.get(k)).casefold() for k, v in self.contain)
        )


def _flat(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
