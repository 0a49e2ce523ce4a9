"""A scripted wearer: each line is one action (`tap`, `say hello`, `wait 2`, `battery 40`)."""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.capabilities import Scalar
from firmware_bridge.messages import Gesture, Hiding
from firmware_bridge.sides import Side
from firmware_bridge.sim.faults import FaultError, SimFault, is_fault, parse_fault
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.microphone import LOUDEST_DB, QUIETEST_DB
from firmware_bridge.sim.wav import SoundError, read_file

MAX_LINE: Final = 2000
MAX_STEPS: Final = 10_000
MAX_WAIT_S: Final = 3600.0


class ScriptError(ValueError):
    """An invalid line; the message names the line, the problem and what is allowed."""


@dataclass(frozen=True, slots=True)
class WearerStep:
    """One action: a verb and its arguments, validated."""

    verb: str
    words: tuple[str, ...] = ()
    fault: SimFault | None = None


def parse(line: str) -> WearerStep | None:
    """Parse one line; None for an empty one or a comment. Raises `ScriptError`."""
    if len(line) > MAX_LINE:
        raise ScriptError(f"{len(line)} characters in one line; at most {MAX_LINE}")
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return None
    verb, _, rest = stripped.partition(" ")
    if verb == "say":
        words: tuple[str, ...] = (rest.strip(),) if rest.strip() else ()
    else:
        try:
            words = tuple(shlex.split(rest))
        except ValueError as error:
            raise ScriptError(f"{stripped!r}: {error}") from None
    if verb not in _CHECKS:
        return _fault_step(verb, words)
    problem = _CHECKS[verb](words)
    if problem:
        raise ScriptError(f"{stripped!r}: {problem}")
    return WearerStep(verb, words)


def _fault_step(verb: str, words: tuple[str, ...]) -> WearerStep:
    """Parse a fault step, in the syntax of `--fault`. Raises `ScriptError`."""
    if not is_fault(verb):
        known = f"{', '.join(sorted(_CHECKS))}, and the faults of `glassd sim --help`"
        raise ScriptError(f"{verb!r} is not a wearer's action; known: {known}")
    if words:
        raise ScriptError(f"{verb!r} takes no words")
    try:
        return WearerStep(verb, fault=parse_fault(verb))
    except FaultError as error:
        raise ScriptError(str(error)) from None


def parse_script(text: str) -> list[WearerStep]:
    """Parse a whole script. Raises `ScriptError` with the line number."""
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            step = parse(line)
        except ScriptError as error:
            raise ScriptError(f"line {number}: {error}") from None
        if step is not None:
            steps.append(step)
        if len(steps) > MAX_STEPS:
            raise ScriptError(f"line {number}: more than {MAX_STEPS} steps")
    return steps


class ScriptedWearer:
    """Executes steps. `inject` applies a fault (or raises ValueError), `leave` ends the run."""

    def __init__(
        self,
        glasses: MockGlasses,
        *,
        inject: Callable[[SimFault], Awaitable[bool]],
        leave: Callable[[], None],
    ) -> None:
        self._glasses = glasses
        self._inject = inject
        self._leave = leave

    async def act(self, steps: list[WearerStep]) -> None:
        for step in steps:
            await self.do(step)

    async def do(self, step: WearerStep) -> bool:
        """Do one step; False if nothing noticed it."""
        glasses, words = self._glasses, step.words
        if step.fault is not None:
            return await self._inject(step.fault)
        match step.verb:
            case "say":
                return glasses.say(words[0])
            case "hear":
                glasses.hear(await asyncio.to_thread(read_file, Path(words[0])), words[0])
                return glasses.microphone.open
            case "hold":
                return glasses.hold(float(words[0]))
            case "noise":
                glasses.microphone.set_noise(None if words[0] == "off" else float(words[0]))
                return True
            case "echo":
                glasses.microphone.echo.set(None if words[0] == "off" else float(words[0]))
                return True
            case "battery":
                return glasses.set_battery(int(words[0]))
            case "case":
                return glasses.set_case(int(words[0]))
            case "worn":
                return glasses.set_worn(worn=words[0] == "on")
            case "silent":
                return glasses.hide(Hiding.SILENT, hidden=words[0] == "on")
            case "dashboard":
                return glasses.hide(Hiding.DASHBOARD, hidden=words[0] == "on")
            case "caps":
                return glasses.set_capabilities(capability_changes(words))
            case "drop":
                return await self._inject(SimFault("drop"))
            case "quit":
                self._leave()
                return True
            case "wait":
                await glasses.time.rest(float(words[0]))
                return True
            case gesture:
                return glasses.gesture(Gesture(gesture), side=Side(words[0]) if words else None)


def capability_changes(words: tuple[str, ...]) -> Mapping[str, Scalar | None]:
    """Parse `camera=true display.lines=3 light=null` into values. Raises `ScriptError`."""
    changes: dict[str, Scalar | None] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise ScriptError(f"{word!r} is not KEY=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        changes[key] = checked_value(key, value)
    return changes


def checked_value(key: str, value: object) -> Scalar | None:
    """Return a valid capability value, or None to remove it. Raises `ScriptError`."""
    if value is not None and not isinstance(value, bool | int | float | str):
        allowed = "true, false, a number, a string or null are allowed"
        raise ScriptError(f"{key} is {type(value).__name__}; {allowed}")
    return value


def _nothing(words: tuple[str, ...]) -> str:
    return "takes no words" if words else ""


def _maybe_side(words: tuple[str, ...]) -> str:
    return "" if not words or words in _SIDES else "takes no words but left or right"


def _text(words: tuple[str, ...]) -> str:
    return "" if words else "needs the text to say"


def _sound(words: tuple[str, ...]) -> str:
    if len(words) != 1:
        return "needs one WAV file"
    try:
        read_file(Path(words[0]))
    except SoundError as error:
        return str(error)
    return ""


def _noise(words: tuple[str, ...]) -> str:
    try:
        good = len(words) == 1 and QUIETEST_DB <= float(words[0]) <= LOUDEST_DB
    except ValueError:
        good = words == ("off",)
    return "" if good else f"needs off, or a level from {QUIETEST_DB:g} to {LOUDEST_DB:g} dB"


def _echo(words: tuple[str, ...]) -> str:
    try:
        good = len(words) == 1 and QUIETEST_DB <= float(words[0]) <= 0
    except ValueError:
        good = words == ("off",)
    return "" if good else f"needs off, or a level from {QUIETEST_DB:g} to 0 dB"


def _level(words: tuple[str, ...]) -> str:
    good = len(words) == 1 and words[0].isdecimal() and int(words[0]) <= 100
    return "" if good else "needs a level from 0 to 100"


def _switch(words: tuple[str, ...]) -> str:
    return "" if words in {("on",), ("off",)} else "needs on or off"


def _seconds(words: tuple[str, ...]) -> str:
    try:
        good = len(words) == 1 and 0 <= float(words[0]) <= MAX_WAIT_S
    except ValueError:
        good = False
    return "" if good else f"needs seconds from 0 to {MAX_WAIT_S:.0f}"


def _capabilities(words: tuple[str, ...]) -> str:
    try:
        return "" if capability_changes(words) else "needs KEY=VALUE"
    except ScriptError as error:
        return str(error)


_SIDES: Final = frozenset((side.value,) for side in Side)
_CHECKS: Final[Mapping[str, Callable[[tuple[str, ...]], str]]] = {
    **{gesture.value: _maybe_side for gesture in Gesture},
    "say": _text,
    "hear": _sound,
    "noise": _noise,
    "echo": _echo,
    "battery": _level,
    "case": _level,
    "worn": _switch,
    "silent": _switch,
    "dashboard": _switch,
    "wait": _seconds,
    "hold": _seconds,
    "caps": _capabilities,
    "drop": _nothing,
    "quit": _nothing,
}
