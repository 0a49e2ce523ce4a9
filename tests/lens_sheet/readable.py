"""What no wearer should see on a lens, in the answer of a tool."""

import re
from collections.abc import Iterable

PROBLEMS = {
    "an identifier": re.compile(
        r"[0-9a-f]{8}-[0-9a-f]{4}-"  # UUID
        r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"
        r"|\bMSG-[A-Z0-9]{8}\b"
        r"|<[^ >]+@[^ >]+>"  # of a mail
        r"|\b\d{10,}\b"  # also seconds since 1970
        r"|\b\d{8,}-\d+\b"
    ),
    "a date for programs": re.compile(r"\b\d{4}-\d\d-\d\d"),
    "JSON, or a template": re.compile(r"[{}]|\[(?!…\])|(?<!\[…)\]"),
    "a word of a program": re.compile(r"\b(?:None|null|True|False|NaN|undefined|Traceback)\b"),
    "an escape": re.compile(r"\\[nrtu]"),
    "two spaces": re.compile(r"\S {2,}(?!\d+/\d+$)\S", re.MULTILINE),
    "the name of a tool": re.compile(r"\b[a-z]{3,}:[a-z_]{3,}\b"),
}
_FOOTER = re.compile(r"\s*\b\d+/\d+$")
ENDS = 10
"""Characters of its beginning and its end by which a long text is found."""


def unreadable(rows: str) -> list[str]:
    """Return what is wrong with the rows of a lens, each with the words that it is."""
    return [
        f"{name}: {found[0]!r}"
        for name, pattern in PROBLEMS.items()
        if (found := pattern.search(rows)) is not None
    ]


def cut_without_mark(pages: Iterable[str], long_texts: Iterable[str]) -> list[str]:
    """Return the long texts of which these pages show the beginning alone, as if it were all."""
    rows = [_FOOTER.sub("", row) for page in pages for row in page.splitlines()]
    shown = _plain(" ".join(rows))
    return [
        text
        for text in long_texts
        if _plain(text)[:ENDS] in shown and _plain(text)[-ENDS:] not in shown and "…" not in shown
    ]


def _plain(text: str) -> str:
    return "".join(text.split())
