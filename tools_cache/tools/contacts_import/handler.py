"""Imports the contacts of a vCard file."""

import base64
from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.contact_cards import ContactCards, counted, counts

MAX_BYTES: Final = 128 * 1024
DEADLINE_S: Final = 20.0


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store each card that can be stored; returns once they are on disk."""
    try:
        raw = args["vcard"].encode()
    except UnicodeEncodeError:
        raise _invalid("is not text in Unicode", "Give the text of a vCard file") from None
    if len(raw) > MAX_BYTES:
        raise _invalid("is larger than 128 KiB", "Give the cards in several calls")
    request = {"do": "parse", "vcard": base64.b64encode(raw).decode()}
    cards = (await ctx.workers.ask("contacts", request, deadline_s=DEADLINE_S))["cards"]
    if not cards:
        raise _invalid("has no card", "A card begins with BEGIN:VCARD and ends with END:VCARD")
    results = await ContactCards(ctx.db).take(cards)
    numbers = counts(results)
    return {"data": {**numbers, "results": results, "text": f"Imported: {counted(numbers)}"}}


def _invalid(problem: str, suggestion: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: /vcard {problem}", suggestion=suggestion
    )
