"""Brings back an earlier version of a document."""

from collections.abc import Mapping
from dataclasses import replace

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.domain_documents import DomainDocuments


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store an earlier version as the newest; returns once it is on disk."""
    documents = DomainDocuments(ctx.db)
    newest = await documents.find(args["document"])
    earlier = await documents.earlier(newest, args["version"])
    if earlier.version != newest.version:
        newest = await documents.replace(newest, replace(earlier, changed=ctx.now()))
    return {
        "data": {
            "id": newest.id,
            "version": newest.version,
            "text": f"{newest.title}: version {args['version']} is back",
        }
    }
