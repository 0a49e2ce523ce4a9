"""The longest steps of the daemon's event loop under the other benchmarks, and what ran in them.

While a step runs nothing else can happen: no tap, no audio, no other call. Each section runs once
more, shorter, with daemons whose loop is watched (`benchmarks/watch.py`).
"""

from collections.abc import Callable, Mapping
from itertools import chain

from benchmarks import process
from benchmarks.table import Line, Lines, Note, Row

BAR_MS = 5.0
NAMED = 5
"""Steps over the bar that are named for each section."""


def measure(sections: Mapping[str, Callable[[], Lines]]) -> Lines:
    """Run the sections; yield the longest step of each."""
    for name, section in sections.items():
        with process.watching() as found:
            notes = [line for line in section() if isinstance(line, Note)]
        if not found:
            yield from notes
            continue
        yield from lines_of(name, found)


def lines_of(name: str, found: list[process.Steps]) -> list[Line]:
    """Return the rows of a section, and a note for each kind of step that was over the bar."""
    steps = sorted(chain.from_iterable(each["steps"] for each in found), key=lambda s: -s["ms"])
    lines: list[Line] = []
    for imports, what in ((False, ""), (True, ", loading a module")):
        these = [step for step in steps if step["imports"] is imports]
        longest = these[0]["ms"] if these else 0.0
        lines.append(Row(f"longest step of the loop, {name}{what}", longest, "ms", "bar", BAR_MS))
        lines += [Note(_named(step)) for step in these[:NAMED] if step["ms"] > BAR_MS]
    waited = max((step["waited_ms"] for step in steps), default=0.0)
    lines.append(Row(f"  longest wait in a step of the loop, {name}", waited))
    return [*lines, Row(f"  steps of the loop, {name}", sum(each["all"] for each in found), "")]


def _named(step: process.Step) -> str:
    rubbish = f", {step['gc_ms']:.1f} collecting garbage" if step["gc_ms"] >= 1 else ""
    where = " < ".join(step["at"]) or "C code"
    return f"{step['ms']:.1f} ms{rubbish}: {step['name']} in {where} ({step['times']} long ones)"
