"""Formats an examination: one document for programs, lines for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from edge.doctor.models import Mark, ReportEntry


def document(entries: Sequence[ReportEntry], version: str) -> dict[str, Any]:
    """The whole examination as JSON values."""
    counts = Counter(entry.finding.mark.value for entry in entries)
    return {
        "version": version,
        "ok": not counts[Mark.FAIL],
        "counts": {mark.value: counts[mark.value] for mark in Mark},
        "next_action": next_action(entries),
        "checks": [_one(entry) for entry in entries],
    }


def _one(entry: ReportEntry) -> dict[str, Any]:
    f = entry.finding
    return {
        "number": entry.number,
        "id": entry.check.id,
        "layer": entry.check.layer,
        "title": entry.check.title,
        "mark": f.mark.value,
        "said": f.said,
        "fix": {"kind": f.fix.kind.value, "text": f.fix.text} if f.fix else None,
        "ms": round(entry.ms, 1),
        **({"code": f.code} if f.code else {}),
    }


def next_action(entries: Sequence[ReportEntry]) -> str:
    """Return the one thing to do first: causes before effects, the lowest rung before those it
    carries. Empty when all is well.
    """
    ill = [
        entry
        for entry in entries
        if entry.finding.mark in {Mark.FAIL, Mark.WARN} and entry.finding.fix
    ]
    for entry in sorted(
        ill, key=lambda e: (e.finding.mark is not Mark.FAIL, e.check.effect, e.number)
    )[:1]:
        return (
            f"{entry.finding.fix.text}  ({entry.number}, {entry.check.title})"
            if entry.finding.fix
            else ""
        )
    return ""


def summary(entries: Sequence[ReportEntry], seconds: float) -> str:
    counts = Counter(entry.finding.mark.value for entry in entries)
    told = ", ".join(f"{counts[mark.value]} {mark.value}" for mark in Mark if counts[mark.value])
    return f"{len(entries)} checks in {seconds:.1f} s: {told}"


def lines(entry: ReportEntry) -> list[str]:
    """What follows number, mark and title: what was found with its latency, then the fix on a
    line of its own.
    """
    first, *more = entry.finding.said.splitlines() or [""]
    latency = (
        f" · {entry.ms:.0f} ms" if entry.ms >= 1 and entry.finding.mark is not Mark.SKIP else ""
    )
    fix = [f"{entry.finding.fix.kind.value}: {entry.finding.fix.text}"] if entry.finding.fix else []
    return [first + latency, *more, *fix]
