"""What an app needs × what the glasses can do → is it in force, what is missing, and why, in words for a person.

MentraOS's algorithm with its holes closed: unknown glasses have nothing (fail closed), a word for hardware we do not
know is missing, glasses that are away count as last known and are marked stale. Refuses to know any tool.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from firmware_bridge.capabilities import Capabilities, Hardware, missing
from tools_cache.registry import Requirement

WORDS: Final = {
    Hardware.CAMERA: "a camera", Hardware.DISPLAY: "a display", Hardware.MICROPHONE: "a microphone",
    Hardware.SPEAKER: "a speaker", Hardware.IMU: "a motion sensor", Hardware.BUTTON: "a button",
    Hardware.LIGHT: "a light", Hardware.WIFI: "Wi-Fi", Hardware.EXIST: "glasses",
}  # fmt: skip
_KNOWN: Final = frozenset(h.value for h in Hardware)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one app (or tool). `reason` is empty when compatible; `stale` when it rests on absent glasses."""

    missing_required: tuple[str, ...] = ()
    missing_optional: tuple[str, ...] = ()
    reason: str = ""
    stale: bool = False

    @property
    def compatible(self) -> bool:
        return not self.missing_required


def judge(needs: Sequence[Requirement], record: Capabilities | None, *, stale: bool) -> Verdict:
    """Compare needs with a record; None means no glasses were ever connected."""
    if not needs:
        return Verdict()
    required = _missing((n.type for n in needs if n.required), record)
    optional = _missing((n.type for n in needs if not n.required), record)
    rests_on_old = stale and record is not None
    return Verdict(required, optional, _reason(required, record, stale=rests_on_old), rests_on_old)


def _missing(types: Iterable[str], record: Capabilities | None) -> tuple[str, ...]:
    """Keep the order of the needs, each once."""
    unique = tuple(dict.fromkeys(types))
    known = {h.value for h in missing((Hardware(t) for t in unique if t in _KNOWN), record)}
    return tuple(t for t in unique if t in known or t not in _KNOWN)


def _reason(required: tuple[str, ...], record: Capabilities | None, *, stale: bool) -> str:
    if not required:
        return ""
    needs = f"needs {_joined([word(t) for t in required])}"
    strange = [t for t in required if t not in _KNOWN]
    if strange:
        return f"{needs}; this version cannot tell whether glasses have {_joined(strange)}"
    if record is None:
        return f"{needs}; no glasses were ever connected"
    lacking = {1: "none", 2: "neither"}.get(len(required), "none of them")
    return f"{needs}; {'the glasses last seen' if stale else 'these glasses'} have {lacking}"


def word(hardware: str) -> str:
    """Say a hardware type with its article; one we do not know is given as it came."""
    return WORDS[Hardware(hardware)] if hardware in _KNOWN else hardware


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
