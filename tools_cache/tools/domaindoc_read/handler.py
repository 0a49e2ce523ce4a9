"""Reads a document."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.domain_documents import DomainDocument, DomainDocuments, find_section


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return a document, or a section with those below it."""
    documents = DomainDocuments(ctx.db)
    document = await documents.find(args["document"])
    if "version" in args:
        document = await documents.earlier(document, args["version"])
    expand: bool = args.get("expand", False)
    if "section" in args:
        chosen = find_section(document, args["section"])
        numbers, whole = [chosen, *document.children(chosen)], {chosen}
    else:
        numbers, whole = [*range(1, len(document.sections) + 1)], set()
    found = [_section(document, number, whole=expand or number in whole) for number in numbers]
    text = "\n\n".join(f"{one['heading']}\n{one['text']}".strip() for one in found if "text" in one)
    outline = "\n".join(filter(None, map(_line, found)))
    head = "" if "section" in args else f"{document.title}\n"
    shown = "\n".join(filter(None, (text, outline)))
    return {
        "data": {
            "id": document.id,
            "title": document.title,
            "labels": list(document.labels),
            "version": document.version,
            "sections": found,
            "text": head + (shown or "Empty"),
        }
    }


def _section(document: DomainDocument, number: int, *, whole: bool) -> dict[str, Json]:
    section = document.sections[number - 1]
    about: dict[str, Json] = {
        "number": number,
        "heading": section.heading,
        "level": section.level,
        "characters": len(section.text),
    }
    if whole:
        return {**about, "text": section.text}
    return {**about, "first_line": next(filter(None, section.text.splitlines()), "")}


def _line(section: Mapping[str, Json]) -> str:
    """Return a section of which only the first line is shown."""
    if "text" in section:
        return ""
    line = f"{section['number']} {section['heading']}"
    return f"{line}: {section['first_line']}" if section["first_line"] else line
