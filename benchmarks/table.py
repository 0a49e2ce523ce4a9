"""The rows of `make bench`: a value beside the baseline of the same run."""

from collections.abc import Iterator
from dataclasses import dataclass

WIDTH = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value. `base` is what `baseline` took in the same run; 0: there is none."""

    what: str
    value: float
    unit: str = "ms"
    baseline: str = ""
    base: float = 0.0

    def __str__(self) -> str:
        shown = f"{self.what:<{WIDTH}} {number(self.value):>9} {self.unit:<4}"
        if not self.baseline:
            return shown.rstrip()
        ratio = f"{self.value / self.base:6.2f} x" if self.base else "       -"
        return f"{shown} {ratio}  of {self.baseline} ({number(self.base)} {self.unit})"


@dataclass(frozen=True, slots=True)
class Note:
    """What is said between the rows: a bar, or why something was not measured."""

    text: str

    def __str__(self) -> str:
        return f"{'':<{WIDTH}} {self.text}"


Line = Row | Note
Lines = Iterator[Line]


def not_measured(what: str, why: str) -> Note:
    """Return the note for a section that has nothing to run on."""
    return Note(f"{what} not measured: {why}")


def bar(value: float, unit: str, of: str) -> Note:
    """Return the note that says how much something may take."""
    return Note(f"{value:9.1f} {unit:<4} is the bar for {of}")


def number(value: float) -> str:
    """Format with three digits that say something: 0.362, 19.9, 6765."""
    return f"{value:.3f}" if value < 1 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
