"""Firmware variants of the simulated Even G2: one switch for each conflict between the sources.

The stock variant takes what any host sends; a quirk insists on one form and refuses the others, or
says something in the other form.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from firmware_bridge.codecs.even_g2.hub import BODY, Cmd
from firmware_bridge.codecs.even_g2.peripheral import Variant
from firmware_bridge.codecs.even_g2.wire import ANSWER, NOTICE, Received, Sid
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side
from firmware_bridge.sim.quirks import choose

Refuses = Callable[[Received], bool]
"""Whether a whole message is refused."""


class QuirkChoice(Struct, frozen=True):
    """One variant: what differs in `Variant`, what is refused, which arms send sound, and
    whether a host is asked to pair.
    """

    says: Mapping[str, Any] = field(default_factory=dict)
    refuses: Refuses | None = None
    sound: tuple[Side, ...] = ()
    bonds: bool = True


def _hub(cmd: Cmd, wrong: Callable[[Message], bool]) -> QuirkChoice:
    """Refuse commands of this kind whose body is wrong."""

    def refuses(received: Received) -> bool:
        if received.sid != Sid.HUB or not received.payload:
            return False
        try:
            message = Message(received.payload)
            return message.integer(1) == cmd and wrong(message.message(BODY[cmd]))
        except RemoteViolation:
            return False

    return QuirkChoice(refuses=refuses)


def _zeros(received: Received, *, written: bool) -> bool:
    """Whether a page is not created with its zeros written, or left out."""
    if received.sid != Sid.HUB or not received.payload:
        return False
    starts_with_zero = received.payload[:2] == b"\x08\0"
    leaves_it_out = received.payload[:1] == b"\x10"
    return leaves_it_out if written else starts_with_zero


def _wake_word(received: Received, *, speed: int) -> bool:
    """Whether the wake word is configured with another speed than this firmware takes."""
    if received.sid != Sid.AI or not received.payload:
        return False
    try:
        message = Message(received.payload)
        return 13 in message and message.message(13).integer(2) != speed
    except RemoteViolation:
        return False


_ANY: Final = QuirkChoice()
_L, _R = Side.LEFT, Side.RIGHT
QUIRKS: Final[Mapping[str, Mapping[str, QuirkChoice]]] = {
    "fragment-size": {"any": _ANY, "236": _ANY, "232": QuirkChoice({"fragment": 232})},
    "zeros": {
        "left-out": _ANY,
        "written": QuirkChoice({"zeros": True}),
        "written-only": QuirkChoice({"zeros": True}, partial(_zeros, written=True)),
        "left-out-only": QuirkChoice(refuses=partial(_zeros, written=False)),
    },
    "container-name": {
        "16": _ANY,
        "14": QuirkChoice({"max_name": 14}),
        "needed": _hub(Cmd.TEXT, lambda body: 2 not in body),
        "none": _hub(Cmd.TEXT, lambda body: 2 in body),
    },
    "widget-id": {
        "any": _ANY,
        "10000": _hub(Cmd.CREATE, lambda body: body.integer(5) != 10000),
        "none": _hub(Cmd.CREATE, lambda body: 5 in body),
    },
    "page-heartbeat": {
        "any": _ANY,
        "empty": _hub(Cmd.BEAT, lambda body: 1 in body),
        "zero": _hub(Cmd.BEAT, lambda body: 1 not in body),
    },
    "time": {"any": _ANY, "no-zone": QuirkChoice({"ignores_zone": True})},
    "motion-request": {
        "any": _ANY,
        "22": QuirkChoice({"motion_fields": (22,)}),
        "20": QuirkChoice({"motion_fields": (20,)}),
    },
    "motion-numbers": {"32": _ANY, "64": QuirkChoice({"wide_motion": True})},
    "wake-word-speed": {
        "any": _ANY,
        "32": QuirkChoice(refuses=partial(_wake_word, speed=32)),
        "80": QuirkChoice(refuses=partial(_wake_word, speed=80)),
    },
    "image-session": {
        "any": _ANY,
        "own": _hub(Cmd.IMAGE, lambda body: body.integer(3) == body.integer(1)),
        "container": _hub(Cmd.IMAGE, lambda body: body.integer(3) != body.integer(1)),
    },
    "exit-events": {"page-gone": _ANY, "page-stays": QuirkChoice({"exit_keeps_page": True})},
    "page-gone": {"refused": _ANY, "silent": QuirkChoice({"silent_without_page": True})},
    "settings-reply-flag": {
        "00": QuirkChoice({"settings_flag": ANSWER}),
        "01": QuirkChoice({"settings_flag": NOTICE}),
    },
    "bonding": {"after-auth": _ANY, "none": QuirkChoice(bonds=False)},
    "auth": {"prelude": _ANY, "needed": QuirkChoice({"needs_auth": True})},
    "sound-arm": {
        "left": QuirkChoice(sound=(_L,)),
        "both": QuirkChoice(sound=(_L, _R)),
        "right": QuirkChoice(sound=(_R,)),
    },
}
"""Name → value → its meaning; the first value is stock. The names are those of the catalogue."""


class Firmware(Struct, frozen=True):
    """A firmware variant: how each arm answers, and which arms send sound."""

    variant: Variant
    sound: tuple[Side, ...]
    bonds: bool


def firmware(words: Sequence[str]) -> Firmware:
    """Parse `NAME=VALUE` words, on top of stock. Raises `QuirkError`."""
    choices = [QUIRKS[name][value] for name, value in choose(QUIRKS, words).items()]
    says: dict[str, Any] = {}
    for choice in choices:
        says.update(choice.says)
    refusing = [choice.refuses for choice in choices if choice.refuses is not None]

    def refuses(received: Received) -> bool:
        return any(each(received) for each in refusing)

    sound = next(choice.sound for choice in choices if choice.sound)
    bonds = all(choice.bonds for choice in choices)
    return Firmware(Variant(refuses=refuses, **says), sound, bonds)
