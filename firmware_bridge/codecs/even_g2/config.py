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

Report = Callable[[Sid, Message], None]
"""Takes the service of an answer, and its contents."""
AUTH: Final = 4
ROLE: Final = 5
RING: Final = 6
LINK: Final = 7
PART: Final = 8
UNPAIR: Final = 9
REFUSED: Final = 10
BEAT: Final = 14
SOUND: Final = 129
TIME: Final = 128
AUTH_BODY: Final = 3
ROLE_BODY: Final = 4
RING_BODY: Final = 5
REFUSED_BODY: Final = 9
RING_CONNECTED: Final = 62
BEAT_BODY: Final = 13
TIME_BODY: Final = 128
START_S: Final = 0.5
"""Seconds for an answer at the start of a session, which nothing depends on."""
NOTIFIED_S: Final = 5
"""Seconds that the glasses show a notification by themselves."""
ZONE_S: Final = 900
"""A time zone is counted in quarter hours."""
CASE_BODY: Final = 3
_ANDROID: Final = 4
_RIGHT: Final = 1
SET: Final = 1
QUERY: Final = 2
PUSH: Final = 3
SET_BODY: Final = 3
QUERY_BODY: Final = 4
PUSH_BODY: Final = 5
BRIGHTNESS: Final = 1
VERTICAL: Final = 2
DEPTH: Final = 3
HEAD_UP: Final = 4
WEAR: Final = 5
SILENT: Final = 6
"""Fields of a settings message; each holds one setting."""


def auth() -> Exchange:
    """The first message to an arm. Glasses that need none may not answer."""
    fields = {1: AUTH, AUTH_BODY: {1: 1, 2: _ANDROID}}
    return ask(fields, Sid.CONFIG, flag=ANSWER, timeout_s=START_S)


def start() -> list[Exchange]:
    """What is sent to the right arm before its first page, in the order of the vendor's app.

    Switches off the wake word: the glasses' own assistant would take the lens.
    """
    messages = (
        (Sid.CONFIG, {1: ROLE, ROLE_BODY: {1: _RIGHT}}),
        (Sid.ONBOARDING, {1: 1, 3: {1: 4}}),
        (Sid.FOREGROUND, {1: 0}),
        (Sid.NOTIFICATIONS, {1: 1, 3: {1: 1, 2: 1, 3: NOTIFIED_S}}),
    )
    # the state of the foreground comes as a notice, which answers no message
    asked = [
        ask(each, sid, timeout_s=0.0 if sid is Sid.FOREGROUND else START_S, tries=1)
        for sid, each in messages
    ]
    return [*asked, ask(_wake_word_off, Sid.AI, timeout_s=START_S)]


def _wake_word_off(dialect: Dialect) -> dict[int, Any]:
    return {1: 10, 13: {1: 0, 2: dialect.wake_speed}}


def heartbeat() -> Exchange:
    return ask({1: BEAT, BEAT_BODY: {}}, Sid.CONFIG, flag=ANSWER, tries=3, vital=True)


def query() -> Exchange:
    """Ask an arm for its settings, versions and battery."""
    return ask({1: QUERY, QUERY_BODY: {1: 1}}, Sid.SETTINGS)


def case() -> Exchange:
    """Ask the right arm for the charge of the case."""
    return ask({1: 1, CASE_BODY: {}}, Sid.CASE, timeout_s=START_S, tries=1)


def setting(command: Command, dialect: Dialect = STOCK) -> Exchange:
    """Return the message of a setting. Raises `CommandRefused` if these glasses lack it."""
    match command:
        case SetBrightness(level, auto):
            # zero and no level are the same on the wire; the sensor starts from the middle
            return change(BRIGHTNESS, {1: int(auto), 2: 50 if level is None else level})
        case SetSilentMode(on):
            return change(SILENT, {1: int(on)})
        case SetWearDetection(on):
            return change(WEAR, {1: int(on)})
        case SetHeadUpAngle(degrees):
            return change(HEAD_UP, {1: 1, 2: degrees})
        case SetClock(local_s, offset_s=offset_s):
            # wall time and no zone, as three hosts send; the vendor's UTC needs the zone
            time = {1: local_s - offset_s, 2: offset_s // ZONE_S} if dialect.utc else {1: local_s}
            return ask({1: TIME, TIME_BODY: time}, Sid.CONFIG)
    raise CommandRefused("unsupported", f"an Even G2 has no {type(command).__name__}")


def change(field: int, body: dict[int, Any]) -> Exchange:
    """Return the message that changes one setting."""
    return ask({1: SET, SET_BODY: {field: body}}, Sid.SETTINGS)


# ------------------------------------------------------------------ flows


def greet(side: Side, report: Report, dialect: Dialect = STOCK) -> Flow:
    """Begin a session with an arm. Nothing of it is needed for what follows."""
    if dialect.auth:
        yield auth()
    for exchange in start() if side is Side.RIGHT else ():
        _ = yield exchange  # a list takes no answers, so no `yield from`
    yield from look(side, report)
    return None


def look(side: Side, report: Report) -> Flow:
    """Ask for the settings, and the right arm for the case, and report the answers."""
    for exchange in (query(), case()) if side is Side.RIGHT else (query(),):
        answer = yield exchange
        if answer is not None and not answer.result:
            report(Sid(exchange.sid), answer.message)
    return None


def hello() -> Flow:
    """Ask an arm who it is: the firmware of both arms."""
    answer = yield query()
    if answer is None:
        return None
    body = answer.message.message(QUERY_BODY)
    versions = [body.text(at)[:32] for at in (5, 6)]
    return GlassesInfo("G2", " / ".join(dict.fromkeys(filter(None, versions))), "", {}, {})
