"""Compares what an app needs with what the glasses can do; the reasons are for people.

As in MentraOS, but: unknown glasses have nothing, an unknown hardware type is missing, details
below a flag are compared too, and glasses that are away count as last known and stale.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from edge.core.tools import missing_hardware as words
from firmware_bridge.capabilities import Capabilities, Hardware, Scalar
from tools_cache.registry.models import Detail, Requirement

STALE: Final = ("judged by what the glasses last seen could do",)


class Compatibility(Struct, frozen=True):
    """The answer for one app or tool. `reason` is "" if compatible; `stale`: the glasses are away.

    Missing hardware is named by its type, `CAMERA`, or as `DISPLAY.maxTextLines` if the type
    exists. `warnings` are about an active tool.
    """

    missing_required: tuple[str, ...] = ()
    missing_optional: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""
    stale: bool = False

    @property
    def compatible(self) -> bool:
        return not self.missing_required


NOTHING_NEEDED: Final = Compatibility()


def judge(
    needs: Sequence[Requirement], record: Capabilities | None, *, stale: bool, title: str = ""
) -> Compatibility:
    """Compare needs with a record; None: never any glasses. `title`: their display name."""
    if not needs:
        return NOTHING_NEEDED
    required = _lacks((n for n in needs if _must_be_met(n, record)), record)
    optional = _lacks((n for n in needs if not _must_be_met(n, record)), record)
    stale = stale and record is not None
    here = words.Here(record, title, stale=stale)
    without = tuple(
        f"works without {words.phrase(lack)}: {words.tail((lack,), here)}" for lack in optional
    )
    reason = f"needs {words.needed(required)}; {words.tail(required, here)}" if required else ""
    return Compatibility(
        _names(required), _names(optional), without + (STALE if stale else ()), reason, stale
    )


def _names(lacks: Iterable[words.Lack]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for lack in lacks for name in lack.names))


def _lacks(needs: Iterable[Requirement], record: Capabilities | None) -> tuple[words.Lack, ...]:
    """Return what is lacking, in the order of the needs, each once."""
    found = (_lack(need, record) for need in needs)
    return tuple(dict.fromkeys(lack for lack in found if lack is not None))


def _must_be_met(need: Requirement, record: Capabilities | None) -> bool:
    """Return whether nothing else will do; with what is there instead, the need is optional."""
    return need.required and not (need.instead and _has(need.instead, record))


def _has(kind: str, record: Capabilities | None) -> bool:
    return record is not None and kind in words.KNOWN and record.has(Hardware(kind))


def _lack(need: Requirement, record: Capabilities | None) -> words.Lack | None:
    instead = need.instead if need.required and not _has(need.instead, record) else ""
    if record is None or not _has(need.type, record):
        return words.Lack(need.type, instead=instead)
    hardware = Hardware(need.type)
    failing = tuple(
        (d, record.detail(hardware, d.field))
        for d in need.details
        if not _fits(d, record.detail(hardware, d.field))
    )
    return words.Lack(need.type, failing, instead) if failing else None


def _fits(wanted: Detail, value: Scalar | None) -> bool:
    """Return whether a value meets a need; unknown never does. A list as text (`opus,pcm16`) meets
    it if it has the word.
    """
    if wanted.equal is None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (wanted.least is None or value >= wanted.least) and (
            wanted.most is None or value <= wanted.most
        )
    if isinstance(wanted.equal, str):
        known = value.lower() if isinstance(value, str) else ""
        return wanted.equal.lower() in {known, *known.split(",")}
    return isinstance(value, bool) is isinstance(wanted.equal, bool) and value == wanted.equal
