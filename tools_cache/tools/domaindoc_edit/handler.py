"""Changes a document."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.domain_documents import (
    DomainDocument,
    DomainDocuments,
    Section,
    changed_meanwhile,
    check,
    find_section,
)

_DONE: Final = {
    "replace": "changed",
    "append": "changed",
    "add": "added",
    "remove": "removed",
}


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store the next version; returns once it is on disk."""
    action, text = args.get("action", "replace"), args.get("text", "")
    if bool(text.strip()) == (action == "remove"):
        problem = "has no text" if action == "remove" else "needs text"
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /text {action} {problem}",
            suggestion="Leave text out" if action == "remove" else "Give the text",
        )
    documents = DomainDocuments(ctx.db)
    old = await documents.find(args["document"])
    if args.get("version", old.version) != old.version:
        raise changed_meanwhile(old.title)
    sections, heading = _changed(old, args, action, text.strip("\n"))
    new = replace(old, sections=check(sections), changed=ctx.now())
    stored = await documents.replace(old, new)
    return {
        "data": {
            "id": stored.id,
            "title": old.title,
            "version": stored.version,
            "previous": old.version,
            "text": f"{old.title}, {heading}: {_DONE[action]}",
        }
    }


def _changed(
    document: DomainDocument, args: Mapping[str, Json], action: str, text: str
) -> tuple[tuple[Section, ...], str]:
    """Return the sections with the change made, and the heading of the one that changed."""
    sections = list(document.sections)
    if action == "add":
        after = find_section(document, args["after"]) if "after" in args else len(sections)
        level = sections[after - 1].level if sections else 1
        heading = " ".join(args["section"].split())
        sections.insert(after, Section(heading, text, level))
        return tuple(sections), heading
    place = find_section(document, args["section"]) - 1
    section = sections[place]
    if action == "remove":
        del sections[place]
    elif action == "append" and section.text:
        sections[place] = replace(section, text=f"{section.text}\n\n{text}")
    else:
        sections[place] = replace(section, text=text)
    return tuple(sections), section.heading
