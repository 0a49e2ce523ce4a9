"""What a lint found: a rule by its name, the file and field it was broken in, and words for the
author.

Refuses to know how anything is judged.
"""

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
    "field-unknown": "no other field is than those that are known",
    "tool-id": "toolId is the folder's name, dashes as underscores",
    "name": "name is package:tool, and reads as toolId",
    "category": "category is retrieval, action or utility",
    "side-effects": "sideEffects is none, read_only or writes",
    "confirmation": "requiresConfirmation is never, policy or always",
    "source": "source is local or glasses",
    "modes": "allowedModes is a non-empty list of text, voice",
    "flag": "what is yes or no is true or false",
    "text": "version and description are text",
    "text-long": "a description has at most 1024 characters",
    "number": "durations are positive numbers",
    "running": "how it is run, and how often, is told as the loader reads it",
    "hardware": "hardware is a list of {type, level, description?}",
    "retrieval-writes": "what retrieves does not write",
    "retrieval-repeats": "what retrieves may be asked twice",
    "utility-writes": "what writes is an action",
    "unasked": "only what writes and never asks says why (`unasked`)",
    "parameters-object": "parameters are an object",
    "parameters-closed": "unknown parameters are refused",
    "parameters-schema": "parameters are JSON Schema 2020-12, within the bounds",
    "parameters-keyword": "every keyword is one of JSON Schema's, or begins with x-",
    "parameters-format": "every format is one that is asserted",
    "parameters-required": "what is required is declared",
    "parameters-unused-default": "no default stands where none is used",
    "parameters-bad-default": "every default is one its own schema accepts",
    "summary-empty": "the summary says something",
    "summary-long": "the summary has at most 250 characters",
    "section": "doc.md has its seven sections",
    "depends-on": "a tool depends on others that are there",
    "reference": "texts name only tools that exist",
    "handler-python": "the handler is Python",
    "handler-execute": (
        "the handler exports `async def execute(args, ctx)`, or has a class derived from Tool"
    ),
    "handler-one": "one folder makes one tool",
    "handler-run": "a tool's class has `async def run(self, args)`",
    "handler-parts": "a tool's constructor asks only for what can be handed in",
    "handler-import": "the handler imports nothing of the daemon: everything is handed in",
    "handler-success": "a result is {data, render, intents}: success is told by the daemon",
    "config": "settings are a model `Config` with `enabled: bool`, every key with its default",
    "loadable": "the loader takes it as it was built",
    "twice": "no two folders make the same tool",
}
"""Name → what holds where the rule is kept. A broken one fails the build."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule. `field` is a dotted name or a JSON pointer, "" for the whole file;
    `text` names it too.
    """

    rule: str
    file: str
    text: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding, and the folder it is of."""

    folder: str
    finding: Finding

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
