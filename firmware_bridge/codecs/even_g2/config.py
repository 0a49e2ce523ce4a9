"""Messages of the services beside pages: session start, heartbeat, settings, clock."""

from collections.abc import Callable
from typing import Any, Final

from firmware_bridge.codecs.even_g2.lanes import Exchange, Flow, ask
from firmware_bridge.codecs.even_g2.wire import ANSWER, STOCK, Dialect, Sid
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Command,
    GlassesInfo,
    SetBrightness,
    SetClock,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
)
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side

AUTH: Final = 4
ROLE: Final = 5
BEAT: Final = 14
TIME: Final = 128
AUTH_BODY: Final = 3
ROLE_BODY: Final = 4
BEAT_BODY: Final = 13
TIME_BODY: Final = 128
START_S: Final = 0.5
"""Seconds for an answer at the start of a session, which nothing depends on."""
_ANDROID: Final = 4
_RIGHT: Final = 1
SET: Final = 1
QUERY: Final = 2
PUSH: Final = 3
SET_BODY: Final = 3
QUERY_BODY: Final = 4
PUSH_BODY: Final = 5
BRIGHTNESS: Final = 1
HEAD_UP: Final = 4
WEAR: Final = 5
SILENT: Final = 6
"""Fields of a settings message; each holds one setting."""


def auth() -> Exchange:
    """The first message to an arm. Glasses that need none may not answer."""
    fields = {1: AUTH, AUTH_BODY: {1: 1, 2: _ANDROID}}
    return ask(fields, Sid.CONFIG, flag=ANSWER, timeout_s=START_S)


def start(dialect: Dialect = STOCK) -> list[Exchange]:
    """What is sent to the right arm before its first page, in the order of the vendor's app.

    Switches off the wake word: the glasses' own assistant would take the lens.
    """
    messages = (
        (Sid.CONFIG, {1: ROLE, ROLE_BODY: {1: _RIGHT}}),
        (Sid.ONBOARDING, {1: 1, 3: {1: 4}}),
        (Sid.FOREGROUND, {1: 0}),
        (Sid.AI, {1: 10, 13: {1: 0, 2: dialect.wake_speed}}),
    )
    return [ask(each, sid, timeout_s=START_S, tries=1) for sid, each in messages]


def heartbeat() -> Exchange:
    return ask({1: BEAT, BEAT_BODY: {}}, Sid.CONFIG, flag=ANSWER, tries=3, vital=True)


def query() -> Exchange:
    """Ask an arm for its settings, versions and battery."""
    return ask({1: QUERY, QUERY_BODY: {1: 1}}, Sid.SETTINGS)


def setting(command: Command) -> Exchange:
    """Return the message of a setting. Raises `CommandRefused` if these glasses lack it."""
    match command:
        case SetBrightness(level, auto):
            # zero and no level are the same on the wire; the sensor starts from the middle
            return _set(BRIGHTNESS, {1: int(auto), 2: 50 if level is None else level})
        case SetSilentMode(on):
            return _set(SILENT, {1: int(on)})
        case SetWearDetection(on):
            return _set(WEAR, {1: int(on)})
        case SetHeadUpAngle(degrees):
            return _set(HEAD_UP, {1: 1, 2: degrees})
        case SetClock(local_s):
            # wall time and no zone, as three hosts send; the vendor's UTC needs the zone
            return ask({1: TIME, TIME_BODY: {1: local_s, 2: 0}}, Sid.CONFIG)
    raise CommandRefused("unsupported", f"an Even G2 has no {type(command).__name__}")


def _set(field: int, body: dict[int, Any]) -> Exchange:
    return ask({1: SET, SET_BODY: {field: body}}, Sid.SETTINGS)


# ------------------------------------------------------------------ flows


def greet(side: Side, report: Callable[[Message], None], dialect: Dialect = STOCK) -> Flow:
    """Begin a session with an arm. Nothing of it is needed for what follows."""
    if dialect.auth:
        yield auth()
    for exchange in start(dialect) if side is Side.RIGHT else ():
        _ = yield exchange  # a list takes no answers, so no `yield from`
    yield from look(report)
    return None


def look(report: Callable[[Message], None]) -> Flow:
    """Ask for the settings, and report the answer."""
    answer = yield query()
    if answer is not None:
        report(answer.message)
    return None


def hello() -> Flow:
    """Ask an arm who it is: the firmware of both arms."""
    answer = yield query()
    if answer is None:
        return None
    body = answer.message.message(QUERY_BODY)
    versions = [body.text(at)[:32] for at in (5, 6)]
    return GlassesInfo("G2", " / ".join(dict.fromkeys(filter(None, versions))), "", {}, {})
