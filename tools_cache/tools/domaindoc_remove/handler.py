"""Removes a document."""

from collections.abc import Mapping

from tools_cache.api.notes import folded
from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.domain_documents import DomainDocument, DomainDocuments


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove a document; returns once it is gone from disk."""
    documents = DomainDocuments(ctx.db)
    found = await _find(documents, args)
    await documents.remove(found)
    return {"data": {"id": found.id, "text": f"Removed: {found.title}"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the title of the document that is meant; no two have the same."""
    found = await _find(DomainDocuments(ctx.db), args)
    return {"document": Named("document", found.title)}


async def _find(documents: DomainDocuments, args: Mapping[str, Json]) -> DomainDocument:
    """Return the document of this title or number. Raise `ToolFailure`."""
    word = args["document"].strip()
    found = await documents.find(word)
    if word.lstrip("#") != str(found.id) and folded(word) != folded(found.title):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /document {word!r} is only a part of {found.title!r}",
            suggestion="Give the whole title, or the number, so that it is clear what is confirmed",
            for_wearer=f"Say the whole title: “{found.title}”.",
        )
    return found
