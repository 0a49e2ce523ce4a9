"""Checks the texts beside a schema: the summary, the documentation, and references to tools."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from tools_cache.builder.lint_findings import DOC, SUMMARY, LintFinding

SECTIONS: Final = (
    "Summary",
    "Preconditions",
    "Postconditions",
    "Invariants",
    "Failure Modes",
    "Examples",
    "Common Mistakes",
)
MAX_SUMMARY: Final = 250
_QUOTED: Final = re.compile(r"`([^`\n]+)`")
_NAME: Final = re.compile(r"([A-Za-z][\w.-]*):([A-Za-z][\w-]*)")


def summary(text: str) -> Iterator[LintFinding]:
    """Check the summary. `text` is trimmed: a trailing newline is not counted."""
    if len(text) > MAX_SUMMARY:
        problem = f"too long ({len(text)} chars, max {MAX_SUMMARY})"
        yield LintFinding("summary-long", SUMMARY, problem)
    if not text:
        yield LintFinding("summary-empty", SUMMARY, "is empty")


def doc(text: str) -> Iterator[LintFinding]:
    """Check the seven second-level headings; a heading may continue after its name."""
    for section in SECTIONS:
        if not re.search(rf"^## {section}\b", text, re.MULTILINE):
            problem = f"Missing required section: ## {section}"
            yield LintFinding("section", DOC, problem, f"## {section}")


def references(text: str, known: Collection[str]) -> list[str]:
    """Return unknown tools in `text`: names in backticks, and unquoted ones of our packages."""
    packages = {name.partition(":")[0] for name in known}
    quoted = {found.group() for span in _QUOTED.findall(text) if (found := _NAME.fullmatch(span))}
    names = _NAME.finditer(_QUOTED.sub(" ", text))
    plain = {found.group() for found in names if found.group(1) in packages}
    return sorted((quoted | plain) - set(known))
