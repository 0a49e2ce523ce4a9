"""Searches documents."""

from collections.abc import Mapping

from tools_cache.api.knowledge import terms
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.domain_documents import (
    DomainDocument,
    DomainDocuments,
    matching_line,
    search,
)


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the sections with these words, best first."""
    words = terms(args["query"])
    if not words:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /query contains no word",
            suggestion="Give a word",
        )
    found = search(await DomainDocuments(ctx.db).all(), args["query"])
    results = [
        _result(score, document, number, words)
        for score, document, number in found[: args.get("limit", 5)]
    ]
    lines = [f"- {one['title']}, {one['heading']}: {one['line']}".rstrip(": ") for one in results]
    text = "\n".join(lines) or f"Nothing found: {args['query']}"
    return {"data": {"results": results, "total": len(found), "text": text}}


def _result(
    score: float, document: DomainDocument, number: int, words: tuple[str, ...]
) -> dict[str, Json]:
    section = document.sections[number - 1]
    return {
        "document": document.id,
        "title": document.title,
        "section": number,
        "heading": section.heading,
        "line": matching_line(section, words),
        "score": round(score, 3),
    }
