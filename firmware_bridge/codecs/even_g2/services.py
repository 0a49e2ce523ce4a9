"""How the glasses answer the services of their own: dashboard, navigation, prompter and others.

Of most of them no more is known than that: it is enough for a host that waits for an answer.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from firmware_bridge.codecs.even_g2.wire import Sid
from firmware_bridge.protobuf import Message

CONTROL: Final = 1
_ECHOED: Final = frozenset({Sid.NOTIFICATIONS, Sid.ONBOARDING, Sid.RING})
_AI_ECHOED: Final = frozenset({CONTROL, 9, 10})
"""Commands of the assistant that come back whole: control, heartbeat, configuration."""
_FIXED: Final[Mapping[int, Mapping[int, Any]]] = MappingProxyType(
    {
        Sid.DASHBOARD: {1: 1, 3: {}},
        Sid.MENU: {1: 1, 4: {}},
        Sid.HEALTH: {1: 2, 4: {1: 1}},
        Sid.PROMPTER: {1: 166, 12: {}},
    }
)
"""Services that answer every command alike."""
_EMPTY: Final = frozenset(
    {
        Sid.AI,
        Sid.CONVERSATE,
        Sid.NAVIGATION,
        Sid.QUICK_LIST,
        Sid.TERMINAL,
        Sid.TRANSCRIBE,
        Sid.TRANSLATE,
    }
)
"""Services that answer with the command and the field of its body, which is empty."""
_AUTO_CLOSE_S: Final = 10
KNOWN: Final = frozenset({*_ECHOED, *_FIXED, *_EMPTY, Sid.LANGUAGE})


def answer(sid: int, payload: bytes) -> bytes | dict[int, Any]:
    """Return the answer to a message of a service in `KNOWN`. Raises `RemoteViolation`."""
    message = Message(payload)
    cmd = message.integer(1)
    number = {2: message.integer(2)} if 2 in message else {}
    if sid in _ECHOED or (sid == Sid.AI and cmd in _AI_ECHOED):
        return payload
    if sid in _FIXED:
        return _numbered(_FIXED[sid], number)
    if sid == Sid.LANGUAGE:  # a language is answered by its number alone
        return {1: cmd, **number, **({4: {1: _AUTO_CLOSE_S}} if cmd else {})}
    bodies: dict[int, Any] = {field: b"" for field in message.numbers() if field > 2}
    return {1: cmd, **number, **bodies}


def _numbered(fields: Mapping[int, Any], number: Mapping[int, int]) -> dict[int, Any]:
    """Insert the number of the request after the command."""
    return {1: fields[1], **number, **{at: body for at, body in fields.items() if at > 1}}
