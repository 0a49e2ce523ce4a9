"""Creates a document."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.domain_documents import DomainDocument, DomainDocuments, read_sections


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store a document; returns once it is on disk."""
    title = " ".join(args["title"].split())
    if not title:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /title holds only blanks",
            suggestion="Give the document a title",
        )
    new = DomainDocument(
        title, tuple(args.get("labels", ())), read_sections(args.get("text", "")), ctx.now()
    )
    stored = await DomainDocuments(ctx.db).create(new)
    text = f"Created: {title}{_count(stored)}"
    return {"data": {"id": stored.id, "title": title, "version": 1, "text": text}}


def _count(document: DomainDocument) -> str:
    number = len(document.sections)
    if not number:
        return ""
    return ", 1 section" if number == 1 else f", {number} sections"
