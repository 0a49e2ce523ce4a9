"""What the suite found, judged more strictly than by its exit code: a scenario in which nothing was
exercised has not passed.

It runs nothing: it reads the files that a run left behind.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NAMES: Final = "tools-name-format"
SCENARIOS: Final = {
    ("server", "2025-11-25"): 30,
    ("server", "2026-07-28"): 37,
    ("client", "2025-11-25"): 18,
    ("client", "2026-07-28"): 32,
}
"""How many each revision requires; frozen with the revision, so another number means that we
read the list wrongly.
"""
EMPTY: Final = frozenset({"wire-schema-valid", "wire-schema-harness-error"})
"""Checks that the suite adds to every scenario; alone they say nothing about it."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the suite: who was tested, by which revision."""

    side: str
    revision: str

    def __str__(self) -> str:
        return f"{self.side} {self.revision}"


@dataclass(frozen=True, slots=True)
class Verdict:
    leg: Leg
    scenarios: int
    checks: int
    problems: Sequence[str]


def required(leg: Leg, requirements: str) -> list[str]:
    """Read the names of the required scenarios out of a revision's YAML. Raises ValueError when
    it is not as it was.
    """
    names: list[str] = []
    section = ""
    for line in requirements.splitlines():
        if found := re.fullmatch(r"([a-z_]+):.*", line):
            section = found[1]
        elif section == leg.side and (found := re.fullmatch(r" +- +([^ #]+).*", line)):
            names.append(found[1])
    if len(names) != SCENARIOS[leg.side, leg.revision]:
        raise ValueError(
            f"{leg}: {len(names)} scenarios are required, "
            f"not {SCENARIOS[leg.side, leg.revision]}: {names}"
        )
    return names


def judge(leg: Leg, names: Sequence[str], out: Path, *, code: int) -> Verdict:
    """Judge a finished run by its exit code and by each required scenario's checks."""
    problems = [] if code == 0 else [f"the suite ended with {code}"]
    count = 0
    for name in names:
        checks = _checks(out, leg, name)
        count += sum(check.get("status") == "SUCCESS" for check in checks)
        problems += [f"{name}: {problem}" for problem in _problems(checks)]
    return Verdict(leg, len(names), count, problems)


def _checks(out: Path, leg: Leg, name: str) -> list[dict[str, Any]]:
    """The checks of one scenario; of none when it did not run."""
    stem = re.escape(f"server-{name}" if leg.side == "server" else name)
    folders = [
        found
        for found in out.rglob("checks.json")
        if re.fullmatch(rf"(.*/)?{stem}-\d{{4}}-.*", str(found.parent.relative_to(out)))
    ]
    return [check for folder in folders for check in json.loads(folder.read_text(encoding="utf-8"))]


def _problems(checks: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not any(check["status"] == "SUCCESS" and check["id"] not in EMPTY for check in checks):
        yield "nothing was exercised"
    for check in checks:
        status, details = check["status"], check.get("details")
        if status == "FAILURE":
            yield f"{check['id']}: {check.get('errorMessage')}"
        elif isinstance(details, dict) and details.get("untestable"):
            yield f"{check['id']}: could not be tested"
        elif status == "WARNING":
            yield f"{check['id']}: warned: {check.get('errorMessage')}"
