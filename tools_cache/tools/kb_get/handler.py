"""Returns one document of the knowledge base."""

from collections.abc import Mapping

from tools_cache.api.knowledge import cut, moment
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the document from `offset`, as much as requested and as fits an answer."""
    document = await ctx.knowledge.get(args["id"])
    if document is None:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /id no document has the id {args['id']!r}",
            suggestion="Use an id from kb:search",
        )
    offset = args.get("offset", 0)
    content = cut(document.text, offset, args.get("max_chars", 20000))
    end = offset + len(content)
    more = end < len(document.text)
    return {
        "data": {
            "id": document.id,
            "type": document.type,
            "title": document.title,
            "content": content,
            "truncated": more,
            **({"next_offset": end} if more else {}),
            "total_chars": len(document.text),
            "source_type": document.source_type,
            "last_updated": moment(document.updated),
            "url": document.url,
            "tags": list(document.tags),
        }
    }
