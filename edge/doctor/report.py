"""Formats an examination: one document for programs, lines for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from edge.doctor.models import Mark, ReportEntry


def document(entries: Sequence[ReportEntry], version: str) -> dict[str, Any]:
    """Return the whole examination as JSON values."""
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
    """Return the one thing to do first: failures before warnings, causes before effects, earlier
    checks before later ones. "" if there is nothing to do.
    """
    fixes = [
        (e.finding.mark is Mark.WARN, e.check.effect, e.number, e.finding.fix.text, e.check.title)
        for e in entries
        if e.finding.mark in {Mark.FAIL, Mark.WARN} and e.finding.fix
    ]
    if not fixes:
        return ""
    _, _, number, text, title = min(fixes)
    return f"{text}  ({number}, {title})"


def summary(entries: Sequence[ReportEntry], seconds: float) -> str:
    counts = Counter(entry.finding.mark.value for entry in entries)
    marks = ", ".join(f"{counts[mark]} {mark}" for mark in Mark if counts[mark])
    return f"{len(entries)} checks in {seconds:.1f} s: {marks}"


def lines(entry: ReportEntry) -> list[str]:
    """Return what follows number, mark and title: what was found with its latency, then the fix on
    a line of its own.
    """
    found = entry.finding
    first, *more = found.said.splitlines() or [""]
    latency = f" · {entry.ms:.0f} ms" if entry.ms >= 1 and found.mark is not Mark.SKIP else ""
    fix = [f"{found.fix.kind.value}: {found.fix.text}"] if found.fix else []
    return [first + latency, *more, *fix]
