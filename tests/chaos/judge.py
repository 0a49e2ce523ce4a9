"""The verdict: records of processes that know nothing of each other → what was lost, doubled, or
not told.

Pure: reads files, decides by the rules below. Nothing of glassd is imported.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import air
from tests.chaos.callers import is_pending
from tests.chaos.records import lines

LOST, DOUBLED, UNTOLD = "lost", "doubled", "untold"
ONCE = ("mark", "sign")
"""Tools of the mini-app that may do their thing once."""
CHANGING = ("mark", "note")
COPY_S = 1.5
"""Two reports born closer than this are copies of one: packets are delayed by up to a second on
their way.
"""


@dataclass(frozen=True)
class Offence:
    """One broken promise, and the record that shows it."""

    verdict: str
    rule: str
    id: str
    why: str
    where: str


@dataclass
class Evidence:
    """The records, read once."""

    accepted: dict[str, str] = field(default_factory=dict)
    """call id → token"""
    answers: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """call id → envelopes told to callers, in order"""
    tokens: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    refused: int = 0
    invoked: dict[str, str] = field(default_factory=dict)
    results: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    worker_results: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    reports: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    deliveries: dict[str, list[tuple[str, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    effects: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """tool → token → how often"""
    decided: dict[str, float] = field(default_factory=dict)
    """call id → when somebody was given its answer for good"""
    effective: dict[str, float] = field(default_factory=dict)
    """token → when its first effect was written down"""
    notes: Counter[str] = field(default_factory=Counter)
    drawn: list[air.Drawn] = field(default_factory=list)
    heard: list[air.Heard] = field(default_factory=list)


def gather(folder: Path, notes: Path | None) -> Evidence:
    """Read every record in `folder`; `notes` is the database of the notes tool, opened for
    reading once all is over.
    """
    e = Evidence()
    for line in lines(folder / "callers.jsonl"):
        _from_caller(e, line)
    for line in lines(folder / "cloud.jsonl"):
        if line["ev"] == "heard":
            _from_cloud(e, line)
    for line in lines(folder / "effects.jsonl"):
        if line["ev"] == "effect":
            e.effects[line["tool"]][line["token"]] += 1
            e.effective.setdefault(line["token"], line["t"])
    if notes is not None and notes.exists():
        with sqlite3.connect(f"file:{notes}?mode=ro", uri=True) as db:
            e.notes.update(row[0] for row in db.execute("SELECT text FROM notes"))
        db.close()
    e.drawn, e.heard = air.read(folder / "air.bin")
    return e


def _from_caller(e: Evidence, line: dict[str, Any]) -> None:
    match line["ev"]:
        case "asked":
            e.kinds[line["kind"]] += 1
        case "invoke":
            e.kinds[line["kind"]] += 1
            e.invoked[line["id"]] = line["token"]
        case "accepted":
            e.accepted[line["id"]] = line["token"]
        case "answer":
            e.answers[line["id"]].append(line["body"])
            e.tokens[line["id"]] = line["token"]
            if not (is_pending(line["body"]) or _asks(line["body"])):
                e.decided.setdefault(line["id"], line["t"])
        case "broken":
            e.broken += 1
        case "refused":
            e.refused += 1


def _from_cloud(e: Evidence, line: dict[str, Any]) -> None:
    body, kind = line["body"], line["k"] or line["body"].get("k", "")
    if line["topic"] == "reply/operator" and kind == "result":
        e.results[body["id"]].append(body)
    elif line["topic"] == "result" and kind == "result":
        e.worker_results[body["id"]].append(body)
    elif line["topic"] == "delivery":
        if line.get("dup") and body in e.reports[body["id"]]:
            return  # the broker's own second copy of a packet that the witness has heard
        e.reports[body["id"]].append(body)
        born = (
            line["t"] - body["age"] / 1000
        )  # the same for every copy that the edge sends: it counts the age on
        e.deliveries[body["id"]].append((str(body["delivery"]), born))


# ------------------------------------------------------------------ rules


def offences(e: Evidence) -> list[Offence]:
    """Every rule over the whole storm."""
    return [
        *_answers(e),
        *_invocations(e),
        *_workers(e),
        *_effects(e),
        *_notes(e),
        *_told(e),
        *_air(e),
        *_deliveries(e),
    ]


def bare(envelope: Any) -> str:
    """An answer without its circumstances: what must be the same however often it is given."""
    kept = {key: envelope[key] for key in ("ok", "data", "error") if key in envelope}
    return json.dumps(kept, sort_keys=True)


def _answers(e: Evidence) -> Iterator[Offence]:
    for call_id, token in e.accepted.items():
        if not e.answers.get(call_id):
            yield Offence(
                LOST,
                "an accepted call has its answer",
                call_id,
                f"{token} was accepted and never answered",
                "callers.jsonl",
            )
    for call_id, told in e.answers.items():
        if len(different := {bare(body) for body in told}) > 1:
            yield Offence(
                DOUBLED,
                "one answer per call",
                call_id,
                f"{len(different)} different answers: {sorted(different)}",
                "callers.jsonl",
            )


def _invocations(e: Evidence) -> Iterator[Offence]:
    for call_id, token in e.invoked.items():
        told = e.results.get(call_id, [])
        if not told:
            yield Offence(
                LOST,
                "an invocation has its result",
                call_id,
                f"{token} was offered again and again and has no result",
                "cloud.jsonl",
            )
        if len(different := {bare(body) for body in told}) > 1:
            yield Offence(
                DOUBLED,
                "one result per invocation",
                call_id,
                f"{len(different)} different results: {sorted(different)}",
                "cloud.jsonl",
            )


def _workers(e: Evidence) -> Iterator[Offence]:
    for call_id, told in e.worker_results.items():
        if len(different := {bare(body) for body in told}) > 1:
            yield Offence(
                DOUBLED,
                "one result per call from the cloud",
                call_id,
                f"{len(different)} different: {sorted(different)}",
                "cloud.jsonl",
            )


def _effects(e: Evidence) -> Iterator[Offence]:
    for tool in ONCE:
        for token, times in e.effects[tool].items():
            if times > 1:
                yield Offence(
                    DOUBLED,
                    "at most one effect",
                    token,
                    f"{tool} was done {times} times",
                    "effects.jsonl",
                )
    for call_id, token, body in _finals(e):
        data = body.get("data")
        tool = data.get("tool") if isinstance(data, dict) else None
        if body["ok"] and tool in CHANGING and not e.effects[tool][token]:
            yield Offence(
                LOST,
                "what was answered ok was done",
                call_id,
                f"{tool} {token} was answered ok and never done",
                "effects.jsonl",
            )


def _notes(e: Evidence) -> Iterator[Offence]:
    for text, times in e.notes.items():
        if times > 1:
            yield Offence(DOUBLED, "at most one effect", text, f"noted {times} times", "the notes")
    for call_id, token, body in _finals(e):
        data = body.get("data")
        noted = isinstance(data, dict) and str(data.get("text", "")) == f"Noted: {token}"
        if body["ok"] and noted and not e.notes[token]:
            yield Offence(
                LOST,
                "what was answered ok was done",
                call_id,
                f"{token} was answered ok and is not noted",
                "the notes",
            )


def _told(e: Evidence) -> Iterator[Offence]:
    """A failure that may have done something says so; otherwise whoever reads it does it again."""
    last: dict[str, tuple[str, Any]] = {}
    for call_id, token, body in _finals(e):
        last[token] = (call_id, body)
    for token, (call_id, body) in last.items():
        done = e.notes[token] or any(e.effects[tool][token] for tool in ONCE)
        error = body.get("error") or {}
        if done and not body["ok"] and not _asks(body) and not error.get("partialSideEffects"):
            yield Offence(
                UNTOLD,
                "a failure tells what it may have done",
                call_id,
                f"{token} was done; the answer says {error.get('code')}",
                "effects.jsonl",
            )


def _asks(envelope: Any) -> bool:
    """No end: the lens still asks, and a tap may do it yet."""
    return (envelope.get("error") or {}).get("code") == "CONFIRMATION_REQUIRED"


def _finals(e: Evidence) -> Iterator[tuple[str, str, Any]]:
    """(call id, token, envelope) of everything that was answered for good."""
    for call_id, told in e.answers.items():
        if not is_pending(told[-1]):
            yield call_id, e.tokens[call_id], told[-1]
    for call_id, token in e.invoked.items():
        if e.results.get(call_id):
            yield call_id, token, e.results[call_id][-1]


def _air(e: Evidence) -> Iterator[Offence]:
    for scene, why in air.drawn_twice(e.drawn):
        yield Offence(DOUBLED, "one rendering per scene", scene, why, "air.bin")
    for scene, why in air.asked_twice(e.drawn, _over(e)):
        yield Offence(DOUBLED, "a question is asked until it is over", scene, why, "air.bin")
    for token, why in air.heard_twice(e.heard):
        yield Offence(DOUBLED, "spoken at most once", token, why, "air.bin")


def _over(e: Evidence) -> dict[str, float]:
    """call id → when the question about it was over at the latest: it was answered, or done."""
    over = dict(e.decided)
    for call_id, token in e.tokens.items():
        if (done := e.effective.get(token)) is not None:
            over[call_id] = min(done, over.get(call_id, done))
    return over


def _deliveries(e: Evidence) -> Iterator[Offence]:
    """What the cloud was told of the wearer: shown is told once (copies of one report count as
    one), and is true.
    """
    drawn = {one.scene for one in e.drawn}
    for call_id, reports in e.deliveries.items():
        shown = sorted(born for state, born in reports if state == "shown")
        if shown and shown[-1] - shown[0] > COPY_S:
            yield Offence(
                DOUBLED,
                "shown is told once",
                call_id,
                f"told of two showings {shown[-1] - shown[0]:.1f} s apart",
                "cloud.jsonl",
            )
        if shown and drawn and call_id not in drawn:
            yield Offence(
                UNTOLD,
                "what is told as shown was drawn",
                call_id,
                "no page of it is on the recording of the air",
                "air.bin",
            )


# ------------------------------------------------------------------ report


def verdict(folder: Path, notes: Path | None) -> dict[str, Any]:
    """Counts and offenders, ready for JSON."""
    e = gather(folder, notes)
    found = offences(e)
    count = Counter(o.verdict for o in found)
    return {
        "calls": sum(e.kinds.values()),
        "calls_by_kind": dict(sorted(e.kinds.items())),
        "accepted": len(e.accepted) + len(e.invoked),
        "answered": len(e.answers) + len(e.results),
        "broken_off": e.broken,
        "refused": e.refused,
        "effects": {tool: sum(times.values()) for tool, times in sorted(e.effects.items())}
        | {"notes": sum(e.notes.values())},
        "answers_by_code": dict(Counter(_code(body) for _, _, body in _finals(e)).most_common()),
        "drawn": len(e.drawn),
        "scenes": len({d.scene for d in e.drawn}),
        "heard": len(e.heard),
        LOST: count[LOST],
        DOUBLED: count[DOUBLED],
        UNTOLD: count[UNTOLD],
        "offences": [asdict(o) for o in found],
    }


def _code(body: Any) -> str:
    return "ok" if body["ok"] else str(body["error"].get("code"))
