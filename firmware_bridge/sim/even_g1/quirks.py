"""Firmware variants of the simulated Even G1: one switch for each conflict between the sources.

The stock variant accepts what any host sends; a quirk insists on one form and refuses the others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from firmware_bridge.codecs.even_g1.wire import STOCK, BatteryForm, Dialect, Op
from firmware_bridge.sides import Side
from firmware_bridge.sim.quirks import choose

Refuses = Callable[[bytes, Side, bytes], bool]
"""(packet, the arm it came to, the whole JSON if this packet ends one) → whether it is refused."""


class QuirkChoice(Struct, frozen=True):
    """One variant: what is sent differently, and what is refused."""

    says: Mapping[str, Any] = field(default_factory=dict)
    objects: Refuses = lambda _packet, _side, _text: False


def _of(op: int, wrong: Callable[[bytes], bool]) -> QuirkChoice:
    """Refuse packets of one opcode for which `wrong` is true."""
    return QuirkChoice(objects=lambda packet, _side, _text: packet[0] == op and wrong(packet))


def _text_of(op: int, wrong: Callable[[bytes], bool]) -> QuirkChoice:
    return QuirkChoice(objects=lambda packet, _side, text: packet[0] == op and wrong(text))


def _brightness(top: int) -> QuirkChoice:
    return replace(_of(Op.BRIGHTNESS, lambda p: p[1] > top), says={"brightness_top": top})


def _chunk(most: int) -> QuirkChoice:
    return _of(Op.TEXT, lambda p: len(p) - 9 > most)


def _status(*allowed: int) -> QuirkChoice:
    return _of(Op.TEXT, lambda p: p[4] not in allowed)


def _only_on(arm: Side) -> QuirkChoice:
    return QuirkChoice(
        objects=lambda packet, side, _text: packet[0] == Op.MICROPHONE and side is not arm
    )


def _double_tap(sub: int) -> QuirkChoice:
    return _of(Op.SETTINGS, lambda p: p[1] == 6 and p[4] in {4, 5} and p[4] != sub)


def _debug_off(value: int) -> QuirkChoice:
    return _of(Op.SYSTEM, lambda p: p[1] == 0x6C and p[2] not in {0, value})


_ANY: Final = QuirkChoice()
QUIRKS: Final[Mapping[str, Mapping[str, QuirkChoice]]] = {
    "heartbeat-field-order": {
        "any": _ANY,
        "zero-first": _of(Op.HEARTBEAT, lambda p: p[2] != 0),
        "counter-first": _of(Op.HEARTBEAT, lambda p: p[3] != 0),
    },
    "newscreen": {
        "any": _ANY,
        "71": _status(0x71),
        "31": _status(0x31, 0x41, 0x51, 0x61),
        "30": _status(0x30, 0x40, 0x50, 0x60, 0x70),
    },
    "page-base": {
        "any": _ANY,
        "1": _of(Op.TEXT, lambda p: p[7] == 0),
        "0": _of(Op.TEXT, lambda p: p[7] >= p[8]),
    },
    "text-chunk": {"any": _ANY, "191": _chunk(191), "180": _chunk(180), "176": _chunk(176)},
    "microphone-arm": {"right": _only_on(Side.RIGHT), "left": _only_on(Side.LEFT), "any": _ANY},
    "brightness-top": {
        "any": _ANY,
        "41": _brightness(41),
        "42": _brightness(42),
        "63": _brightness(63),
    },
    "silent-length": {
        "any": _ANY,
        "2": _of(Op.SILENT, lambda p: len(p) != 2),
        "3": _of(Op.SILENT, lambda p: len(p) != 3),
    },
    "battery-reply": {"A": _ANY, "B": QuirkChoice({"battery_form": BatteryForm.BOTH})},
    "crc-reply-length": {"6": _ANY, "2": QuirkChoice({"crc_echoed": False})},
    "hour-format": {"1-is-12h": _ANY, "1-is-24h": QuirkChoice({"twelve_hour": 0})},
    "picture-polarity": {"normal": _ANY, "inverted": QuirkChoice({"inverted": True})},
    "whitelist-chunk-and-case": {
        "any": _ANY,
        "177": _of(Op.WHITELIST, lambda p: len(p) - 3 > 177),
        "176": _of(Op.WHITELIST, lambda p: len(p) - 3 > 176),
        "snake": _text_of(Op.WHITELIST, lambda t: b'"Calendar' in t),
        "capital": _text_of(Op.WHITELIST, lambda t: b'"calendar' in t),
    },
    "notification-id-and-keys": {
        "any": _ANY,
        "running": _of(Op.NOTIFICATION, lambda p: p[1] == 0),
        "0": _of(Op.NOTIFICATION, lambda p: p[1] != 0),
        "1": _of(Op.NOTIFICATION, lambda p: p[1] != 1),
        "action": _text_of(Op.NOTIFICATION, lambda t: bool(t) and b'"action"' not in t),
        "type": _text_of(Op.NOTIFICATION, lambda t: bool(t) and b'"type"' not in t),
    },
    "first-packet": {"any": _ANY, "F401": _ANY, "4D01": _ANY, "4DFB": _ANY, "6E74": _ANY},
    "debug-off": {"any": _ANY, "C1": _debug_off(0xC1), "31": _debug_off(0x31)},
    "double-tap-sub": {"any": _ANY, "05": _double_tap(5), "04": _double_tap(4)},
    "serial-length": {"18": _ANY, "16": QuirkChoice({"serial_padded": False})},
    "functions-answered": {"yes": _ANY, "no": QuirkChoice({"functions_answered": False})},
    "case-event-length": {"4": _ANY, "3": QuirkChoice({"case_padded": False})},
}
"""Name → value → its meaning; the first value is stock. The names are those of the catalogue."""


class Firmware(Struct, frozen=True):
    """A firmware variant: its dialect, what it refuses, the packet it requires first (or None)."""

    dialect: Dialect = STOCK
    first: bytes | None = None
    insists: tuple[Refuses, ...] = ()

    def refuses(self, packet: bytes, side: Side, text: bytes) -> bool:
        """Return whether it refuses a packet; packets that are too short are left to the codec."""
        try:
            return any(objects(packet, side, text) for objects in self.insists)
        except IndexError:
            return False


def firmware(words: Sequence[str]) -> Firmware:
    """Parse `NAME=VALUE` words, on top of stock. Raises `QuirkError`."""
    chosen = choose(QUIRKS, words)
    choices = [QUIRKS[name][value] for name, value in chosen.items()]
    says: dict[str, Any] = {}
    for choice in choices:
        says.update(choice.says)
    first = chosen["first-packet"]
    return Firmware(
        replace(STOCK, **says),
        None if first == "any" else bytes.fromhex(first),
        tuple(choice.objects for choice in choices if choice is not _ANY),
    )
