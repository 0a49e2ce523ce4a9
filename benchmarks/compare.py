"""Two checkouts in turns, with the same benchmarks: `make bench ARGS="--compare ../other"`.

Each section runs in a process of its own, now of one checkout, now of the other. The benchmarks are
those of this one; a section that uses internals which the other does not have is left out there.
Both run on this interpreter and its libraries, each in a virtual environment that puts its checkout
before the installed one: also for children that take no PYTHONPATH.
"""

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.table import WIDTH, Line, Note, Row, number

THIS = Path(__file__).resolve().parents[1]


@dataclass
class Checkout:
    """One of the two, and what was measured of it in a section."""

    name: str
    root: Path
    folder: Path
    rows: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    """By what is measured and its baseline: a value a turn."""
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def python(self) -> str:
        return str(self.folder / "venv" / "bin" / "python")

    def prepare(self) -> None:
        """Make its environment, and its registry if it has none."""
        venv = [sys.executable, "-m", "venv", "--without-pip", str(self.folder / "venv")]
        subprocess.run(venv, check=True)
        (self.folder / "benchmarks").symlink_to(THIS / "benchmarks")
        lines = f"{self.folder}\n{self.root}\nimport site; site.addsitedir({_libraries()!r})\n"
        (site,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        (site / "checkout.pth").write_text(lines)
        if not (self.root / "tools_cache" / "tool_registry.json").exists():
            build = [self.python, "-m", "tools_cache.build"]
            subprocess.run(
                build, check=True, cwd=self.root, env=_environment(), stdout=subprocess.DEVNULL
            )

    def measure(self, section: str, options: Sequence[str]) -> None:
        """Run a section once."""
        words = ["-m", "benchmarks.run", "--json", "--only", section, *options]
        ran = subprocess.run(
            [self.python, *words],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        for line in map(_line, ran.stdout.splitlines()):
            if isinstance(line, Row):
                self.rows.setdefault((line.what, line.baseline), []).append(line)
            else:
                self.notes[line.text] = None
        if ran.returncode:
            why = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
            self.notes[f"{section} ended early: {why}"] = None

    def forget(self) -> None:
        self.rows, self.notes = {}, {}


def compare(
    other: Path, sections: Iterable[str], options: Sequence[str], turns: int
) -> Iterator[str]:
    """Yield the lines of a table: this checkout, the other one, and the ratio of their medians."""
    if not (other / "edge" / "cli.py").exists():
        raise SystemExit(f"--compare {other}: not a checkout of glassd; give the path of one")
    with tempfile.TemporaryDirectory(prefix="glassd-compare-") as name:
        pair = [
            Checkout("this", THIS, Path(name) / "this"),
            Checkout("other", other.resolve(), Path(name) / "other"),
        ]
        for checkout in pair:
            checkout.folder.mkdir()
            checkout.prepare()
        yield f"{'':<{WIDTH}} {'this':>9} {'other':>9}      this/other   beside their baselines"
        for section in sections:
            for turn in range(turns):
                for checkout in pair if turn % 2 == 0 else reversed(pair):
                    checkout.measure(section, options)
            yield from table(*pair)
            for checkout in pair:
                checkout.forget()


def table(this: Checkout, other: Checkout) -> Iterator[str]:
    """Yield a line for each row, and each note."""
    for key, rows in this.rows.items():
        value, theirs = _median(rows), other.rows.get(key)
        if theirs is None:
            yield f"{rows[0].what:<{WIDTH}} {number(value):>9} {'-':>9} {rows[0].unit}"
            continue
        base = _median(theirs)
        ratio = f"{value / base:6.2f} x" if base else "       -"
        shown = f"{rows[0].what:<{WIDTH}} {number(value):>9} {number(base):>9} {rows[0].unit:<4}"
        beside = f"   {_beside(rows)} and {_beside(theirs)} of {key[1]}" if key[1] else ""
        yield f"{shown} {ratio}{beside}"
    for key in other.rows.keys() - this.rows.keys():
        theirs = other.rows[key]
        yield f"{key[0]:<{WIDTH}} {'-':>9} {number(_median(theirs)):>9} {theirs[0].unit}"
    for note in {**this.notes, **other.notes}:
        who = [c.name for c in (this, other) if note in c.notes]
        yield str(Note(note if len(who) > 1 else f"{who[0]}: {note}"))


def _beside(rows: list[Row]) -> str:
    ratios = [row.value / row.base for row in rows if row.base]
    return f"{statistics.median(ratios):.2f} x" if ratios else "-"


def _median(rows: list[Row]) -> float:
    return statistics.median(row.value for row in rows)


def _line(text: str) -> Line:
    read = json.loads(text)
    return Row(**read) if "what" in read else Note(**read)


def _environment() -> dict[str, str]:
    """Leave out a path that would come before either checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _libraries() -> str:
    return sysconfig.get_path("purelib")
