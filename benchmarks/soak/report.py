"""The soak's report: one line a series, what came of every act, and the sentence that counts.
As text, markdown and JSON.
"""

import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.soak.samples import Series
from benchmarks.soak.verdict import Verdict

RULE = (
    "flat: the Theil–Sen slope over the last three quarters, per hour, "
    "is below the larger of 5 % of the median (10 % for "
    "latencies) and 1 MiB, 1 descriptor, thread or process, 1 % of CPU, "
    "2 ms; bounded: never above the bound it is cut at; "
    "noisy: it points up and might as well not (99.9 %); unclear: "
    "too short a run to say; slowed: so did the machine; "
    "(in brackets): told, not judged"
)


@dataclass
class Report:
    """`problems` are faults of the whole: a process that ended, an outbox that does not drain."""

    seconds: float
    preload_per_s: float
    setting: dict[str, Any]
    verdicts: Sequence[Verdict]
    outcomes: Mapping[str, Counter[str]]
    broken: Sequence[str]
    broken_count: int
    left_out: int
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.problems and not self.broken_count and not any(v.bad for v in self.verdicts)

    def sentence(self) -> str:
        """The end of it, in one line."""
        done = sum(sum(counter.values()) for counter in self.outcomes.values())
        judged = [v for v in self.verdicts if v.word not in {"told", "few"}]
        said = Counter(v.word for v in judged)
        words = ", ".join(
            f"{said[word]} {word}"
            for word in ("flat", "bounded", "noisy", "slowed", "unclear", "growing")
            if said[word]
        )
        trouble = f"; {self.broken_count} promises broken" if self.broken_count else ""
        trouble += "".join(f"; {problem}" for problem in self.problems)
        return (
            f"{'PASSED' if self.passed else 'FAILED'}: {done} acts in "
            f"{self.seconds:.0f} s; of {len(judged)} series {words}{trouble}"
        )

    def markdown(self) -> str:
        rows = [
            (
                "| series | first quarter | last quarter | slope per "
                "hour | 99.9 % | allowed | verdict |"
            ),
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        rows += [
            f"| {v.name} | {_n(v.first)} | {_n(v.last)} | {_n(v.slope, sign=True)} | "
            f"{_n(v.low, sign=True)} … {_n(v.high, sign=True)}"
            f" | {_n(v.allowed) if v.allowed else '–'} | {v.word} |"
            for v in self.verdicts
        ]
        acts = ["| act | times | outcomes |", "|---|---:|---|"]
        acts += [
            (
                f"| {name} | {sum(counter.values())} | "
                f"{', '.join(f'{word} {count}' for word, count in counter.most_common())} |"
            )
            for name, counter in sorted(self.outcomes.items())
        ]
        setting = ", ".join(f"{key} {value}" for key, value in self.setting.items())
        broken = (
            ["", "Broken promises:", "", *(f"- {text}" for text in self.broken)]
            if self.broken
            else []
        )
        how = (
            f"{setting}; preload {self.preload_per_s:.0f} calls/s; "
            f"acts left out because too many were under way: {self.left_out}."
        )
        return "\n".join(
            [
                f"# Soak: {self.sentence()}",
                "",
                how,
                "",
                *rows,
                "",
                f"{RULE}.",
                "",
                *acts,
                *broken,
                "",
            ]
        )

    def text(self) -> str:
        """For a terminal: the same in columns."""
        lines = [
            (
                f"{'series':<24} {'first 1/4':>10} {'last 1/4':>10} "
                f"{'slope/h':>10} {'allowed':>9}  verdict"
            )
        ]
        lines += [
            (
                f"{v.name:<24} {_n(v.first):>10} {_n(v.last):>10} "
                f"{_n(v.slope, sign=True):>10} {_n(v.allowed) if v.allowed else '–':>9}  {v.word}"
            )
            for v in self.verdicts
        ]
        lines += [
            "",
            *(
                (
                    f"{name:<18} {sum(counter.values()):>6}  "
                    f"{', '.join(f'{word} {count}' for word, count in counter.most_common())}"
                )
                for name, counter in sorted(self.outcomes.items())
            ),
            *(f"  {text}" for text in self.broken),
            "",
            self.sentence(),
        ]
        return "\n".join(lines)

    def write(self, folder: Path, series: Mapping[str, Series]) -> None:
        """`soak.json` (every reading) and `soak.md` into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "soak.md").write_text(self.markdown(), encoding="utf-8")
        document = {
            "passed": self.passed,
            "sentence": self.sentence(),
            "rule": RULE,
            "setting": self.setting,
            "verdicts": [asdict(v) for v in self.verdicts],
            "outcomes": {k: dict(v) for k, v in self.outcomes.items()},
            "broken": list(self.broken),
            "broken_count": self.broken_count,
            "left_out": self.left_out,
            "problems": self.problems,
            "series": {name: asdict(one) for name, one in series.items()},
        }
        (folder / "soak.json").write_text(
            json.dumps(document, ensure_ascii=False), encoding="utf-8"
        )


def setting(**more: Any) -> dict[str, Any]:
    """What the numbers were taken on."""
    return {"Python": platform.python_version(), "machine": platform.machine(), **more}


def _n(value: float, *, sign: bool = False) -> str:
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f"{value:{'+' if sign else ''}.{digits}f}"
