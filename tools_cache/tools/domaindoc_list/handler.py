"""Lists documents."""

from collections.abc import Mapping

from tools_cache.api.notes import folded
from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.domain_documents import DomainDocuments


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the documents, by title."""
    label = folded(args.get("label", ""))
    documents = [
        document
        for document in await DomainDocuments(ctx.db).all()
        if not label or label in map(folded, document.labels)
    ]
    listed = [
        {
            "id": document.id,
            "title": document.title,
            "labels": list(document.labels),
            "version": document.version,
            "sections": [section.heading for section in document.sections],
        }
        for document in documents
    ]
    text = "\n".join(f"- {document.title}" for document in documents) or "No documents"
    return {"data": {"documents": listed, "text": text}}
