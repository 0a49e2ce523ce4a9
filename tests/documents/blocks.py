"""The fenced blocks of the documents, which test shows each, and how printed output is compared
with what really came.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, its language, its text."""

    document: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.language or 'text'} {self.first[:60]!r}"


def blocks(document: str) -> list[Block]:
    """Read every fenced block of a document, in order."""
    found, opened = [], None
    for number, line in enumerate((ROOT / document).read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith("```"):
            continue
        if opened is None:
            opened = (number, line.strip()[3:])
        else:
            lines = (
                (ROOT / document).read_text(encoding="utf-8").splitlines()[opened[0] : number - 1]
            )
            found.append(Block(document, opened[0], opened[1], "\n".join(lines) + "\n"))
            opened = None
    assert opened is None, f"{document}: the block of line {opened} is not closed"
    return found


ALL = [block for document in DOCUMENTS for block in blocks(document)]
SHOWN: dict[tuple[str, str], str] = {}
"""(document, beginning of a block) → the test that runs it."""


def block(document: str, begins: str) -> Block:
    """Find the one block of a document that begins so."""
    found = [each for each in ALL if each.document == document and each.text.startswith(begins)]
    assert len(found) == 1, f"{document}: {len(found)} blocks begin with {begins!r}"
    return found[0]


def shows(document: str, *begins: str) -> Callable[[Test], Test]:
    """Mark a test as the one that runs these blocks."""

    def mark(test: Test) -> Test:
        for each in begins:
            assert (document, each) not in SHOWN, f"{each!r} has two tests"
            SHOWN[document, each] = f"{test.__module__.rpartition('.')[2]}.py::{test.__name__}"
        return test

    return mark


# ------------------------------------------------------------------ printed and real

CHANGING = {
    r"1\.0\.[0-9a-f]{8}": r"1\.0\.[0-9a-f]{8}",  # a registry's version
    r"edge-[0-9a-f]{12}": r"edge-[0-9a-f]{12}",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": r"[0-9a-f-]{36}",  # a call
    r"\b[0-9a-f]{32}\b": r"[0-9a-f]{32}",  # a token
    r"\b\d{4}-\d\d-\d\d\b": r"\d{4}-\d\d-\d\d",
    r"127\.0\.0\.1:\d+": r"127\.0\.0\.1:\d+",
    r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}": r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}",
    r"-\d+ dBm": r"-\d+ dBm",
    r"\b\d{6}\b": r"\d{6}",  # a pairing code
    r"\b\d+ (?:s|h|min)(?= |$)": r"\d+ (?:s|h|min)",
    r"…": r".*",
}
"""What is different each time, and the form it must have all the same. `…` is anything; alone
on its line, any lines.
"""
_CHANGING = re.compile("|".join(f"(?P<_{n}>{form})" for n, form in enumerate(CHANGING)))
_FORMS = list(CHANGING.values())


def pattern(line: str, changing: Mapping[str, str] | None = None) -> str:
    """One printed line as a regular expression; runs of blanks are one. `changing`: more words
    that are different here.
    """
    for word, form in (changing or {}).items():
        if word in line:
            before, _, after = line.partition(word)
            return pattern(before, changing) + form + pattern(after, changing)
    parts, at = [], 0
    for found in _CHANGING.finditer(line):
        parts += [_plain(line[at : found.start()]), _FORMS[int(str(found.lastgroup)[1:])]]
        at = found.end()
    return "".join([*parts, _plain(line[at:])])


def _plain(text: str) -> str:
    return re.sub(r"(?:\\ |\s)+", r"\\s+", re.escape(text))


def compare(printed: list[str], real: str, changing: Mapping[str, str] | None = None) -> None:
    """Fail unless `real` is what is printed, line by line, apart from what is different each
    time.
    """
    forms = [
        r"(?:.*\n)*?" if line.strip() == "…" else pattern(line.rstrip(), changing) + r"[ \t]*\n"
        for line in printed
    ]
    lines = "".join(f"{line.rstrip()}\n" for line in real.splitlines() if line.strip())
    whole = "".join(form for line, form in zip(printed, forms, strict=True) if line.strip())
    if re.fullmatch(whole, lines):
        return
    for number in range(len(forms), 0, -1):  # as far as it agrees
        if re.match("".join(forms[:number]), lines):
            raise AssertionError(
                f"printed line {number + 1} did not come: "
                f"{[*printed, '(the end)'][number]!r}\nreal output:\n{lines}"
            )
    raise AssertionError(f"printed line 1 did not come: {printed[0]!r}\nreal output:\n{lines}")


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The `$` commands of a transcript, each with the lines printed below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def without_comment(command: str) -> str:
    """A shell line without the words for its reader."""
    return re.sub(r"\s+# .*$", "", command)
