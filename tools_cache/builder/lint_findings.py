"""Results of a lint: the rule that was broken, the file and field, and a message for the author."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SCHEMA: Final = "schema.json"
SUMMARY: Final = "doc_summary.md"
DOC: Final = "doc.md"
HANDLER: Final = "handler.py"

RULES: Final[Mapping[str, str]] = {
    "file-missing": "all four files are there (a `space` tool may do without a handler)",
    "file-unreadable": "files are UTF-8 text",
    "not-json": "schema.json is JSON",
    "not-object": "schema.json holds an object",
    "field-missing": "the eleven required fields are there",
    "field-unknown": "every field is a known one",
    "tool-id": "toolId is the folder's name, dashes as underscores",
    "name": "name is package:tool, and matches toolId",
    "category": "category is retrieval, action or utility",
    "side-effects": "sideEffects is none, read_only or writes",
    "confirmation": "requiresConfirmation is never, policy or always",
    "source": "source is local or glasses",
    "modes": "allowedModes is a non-empty list of text, voice",
    "flag": "flags are true or false",
    "text": "version and description are text",
    "text-long": "a description has at most 1024 characters",
    "number": "durations are positive numbers",
    "running": "how the tool is run, and its rate limit, have the form that the loader reads",
    "hardware": "hardware is a list of {type, level, where?, instead?, description?}",
    "retrieval-writes": "a retrieval tool does not write",
    "retrieval-repeats": "a retrieval tool is idempotent",
    "utility-writes": "a tool that writes is an action",
    "unasked": "only a tool that writes and never asks gives the reason (`unasked`)",
    "parameters-object": "parameters are an object",
    "parameters-closed": "unknown parameters are rejected",
    "parameters-schema": "parameters are JSON Schema 2020-12, within the limits",
    "parameters-keyword": "every keyword is one of JSON Schema's, or begins with x-",
    "parameters-format": "every format is one that is checked",
    "parameters-required": "required parameters are declared",
    "parameters-unused-default": "defaults are only where they are used",
    "parameters-bad-default": "every default is valid in its own schema",
    "summary-empty": "the summary is not empty",
    "summary-long": "the summary has at most 250 characters",
    "section": "doc.md has its seven sections",
    "depends-on": "a tool depends only on tools that exist",
    "wearer": "arguments that `wearer` fills in, and those of its `undo`, are declared",
    "reference": "texts name only tools that exist",
    "handler-python": "the handler is Python",
    "handler-execute": (
        "the handler exports `async def execute(args, ctx)`, or has a class derived from Tool"
    ),
    "handler-one": "one folder is one tool",
    "handler-run": "a tool's class has `async def run(self, args)`",
    "handler-parts": "a tool's constructor has only parameters that the loader can supply",
    "handler-import": "the handler imports nothing of the daemon; the loader supplies everything",
    "handler-success": "a result is {data, render, intents}; the daemon adds success",
    "config": "settings are a model `Config` with `enabled: bool`, every key with its default",
    "loadable": "the loader accepts the built tool",
    "twice": "no two folders are the same tool",
}
"""Rule name → what it requires. A broken rule fails the build."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One broken rule. `field`: dotted name or JSON pointer, "" for the whole file."""

    rule: str
    file: str
    text: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding with its folder."""

    folder: str
    finding: LintFinding

    def __str__(self) -> str:
        return f"{self.folder}/{self.finding}"

    def to_json(self) -> dict[str, str]:
        f = self.finding
        return {
            "folder": self.folder,
            "file": f.file,
            "field": f.field,
            "rule": f.rule,
            "problem": f.text,
        }
