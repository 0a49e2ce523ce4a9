"""The types of an examination: a mark, a finding, its exact fix, and the check that finds it."""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Mark(StrEnum):
    """How a check ended. WARN: it works, and will cause trouble later; SKIP: it could not, or need
    not, be examined.
    """

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


class FixKind(StrEnum):
    """What a fix is: a shell command to run as it stands, a file to edit, or something to do by
    hand.
    """

    RUN = "run"
    EDIT = "edit"
    DO = "do"


@dataclass(frozen=True, slots=True)
class Fix:
    """What turns a check OK."""

    kind: FixKind
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. FAIL and WARN have a fix; that of a SKIP makes the check possible."""

    mark: Mark
    said: str
    fix: Fix | None = None
    code: str = ""
    """The error code with which a tool call fails for this reason, if there is one."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `needs` must have ended OK or WARN, or this one is skipped; `after` must only
    have ended.
    """

    id: str
    layer: str
    title: str
    examine: Callable[[], Awaitable[Finding]]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    deadline_s: float = 3.0
    effect: bool = False
    """It fails because others fail: their fixes come first."""


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One line of the report."""

    number: int
    check: Check
    finding: Finding
    ms: float


def ok(said: str) -> Finding:
    return Finding(Mark.OK, said)


def warn(said: str, fix: Fix) -> Finding:
    return Finding(Mark.WARN, said, fix)


def fail(said: str, fix: Fix, *, code: str = "") -> Finding:
    return Finding(Mark.FAIL, said, fix, code)


def skip(said: str, fix: Fix | None = None) -> Finding:
    return Finding(Mark.SKIP, said, fix)


def run(*commands: str) -> Fix:
    """Return commands for a shell, each run only if the one before succeeded."""
    return Fix(FixKind.RUN, " && ".join(commands))


def edit(file: Path | str, change: str) -> Fix:
    """Return a change of a file. For the configuration it is `[section] key = value, key = value (a
    remark)`, where `<words>` stand for what only its owner knows, or `[section] write THIS instead
    of THAT`: a test reads it and applies it.
    """
    return Fix(FixKind.EDIT, f"in {file}: {change}")


def do(text: str) -> Fix:
    return Fix(FixKind.DO, text)


def quoted(path: Path | str) -> str:
    """Return a path quoted for a shell."""
    return shlex.quote(str(path))
