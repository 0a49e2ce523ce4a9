"""What an app needs × what the glasses can do → is it in force, what is missing, and why, in words
for a person.

MentraOS's algorithm with its holes closed: unknown glasses have nothing (fail closed), a word for
hardware we do not know is missing, what lies below a flag is looked at too, glasses that are away
count as last known and are marked stale. Refuses to know any tool.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from edge.core import hardware_words as words
from firmware_bridge.capabilities import Capabilities, Hardware, Scalar
from tools_cache.registry import Detail, Requirement

STALE: Final = ("judged by what the glasses last seen could do",)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one app (or tool). `reason` is empty when compatible; `stale` when it rests on
    absent glasses.

    What is missing is named by its type, `CAMERA`, or as `DISPLAY.maxTextLines` where the type is
    there. `warnings` say what a person may want to know of something that is in force.
    """

    missing_required: tuple[str, ...] = ()
    missing_optional: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str = ""
    stale: bool = False

    @property
    def compatible(self) -> bool:
        return not self.missing_required


NOTHING_NEEDED: Final = Verdict()


def judge(
    needs: Sequence[Requirement], record: Capabilities | None, *, stale: bool, title: str = ""
) -> Verdict:
    """Compare needs with a record; None means no glasses were ever connected. `title` is what
    people call these glasses.
    """
    if not needs:
        return NOTHING_NEEDED
    required = _lacks((n for n in needs if n.required), record)
    optional = _lacks((n for n in needs if not n.required), record)
    stale = stale and record is not None
    here = words.Here(record, title, stale=stale)
    without = tuple(
        f"works without {words.phrase(lack)}: {words.tail((lack,), here)}" for lack in optional
    )
    reason = f"needs {words.needed(required)}; {words.tail(required, here)}" if required else ""
    return Verdict(
        _names(required), _names(optional), without + (STALE if stale else ()), reason, stale
    )


def _names(lacks: Iterable[words.Lack]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for lack in lacks for name in lack.names))


def _lacks(needs: Iterable[Requirement], record: Capabilities | None) -> tuple[words.Lack, ...]:
    """Keep the order of the needs, each once."""
    found = (_lack(need, record) for need in needs)
    return tuple(dict.fromkeys(lack for lack in found if lack is not None))


def _lack(need: Requirement, record: Capabilities | None) -> words.Lack | None:
    hardware = Hardware(need.type) if need.type in words.KNOWN else None
    if hardware is None or record is None or not record.has(hardware):
        return words.Lack(need.type)
    failing = tuple(
        (d, record.detail(hardware, d.field))
        for d in need.details
        if not _fits(d, record.detail(hardware, d.field))
    )
    return words.Lack(need.type, failing) if failing else None


def _fits(wanted: Detail, value: Scalar | None) -> bool:
    """Unknown never fits. A text that is a list (`opus,pcm16`) fits when it holds the word."""
    if wanted.equal is None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (wanted.least is None or value >= wanted.least) and (
            wanted.most is None or value <= wanted.most
        )
    if isinstance(wanted.equal, str):
        return isinstance(value, str) and wanted.equal.lower() in {
            value.lower(),
            *value.lower().split(","),
        }
    return isinstance(value, bool) is isinstance(wanted.equal, bool) and value == wanted.equal
