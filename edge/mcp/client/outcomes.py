"""What a server answered → an `Outcome`. Pure: knows no connection.

Content goes through verbatim. Structured content has to keep the tool's own output schema; JSON in
the one text block counts as structured when it is an object (S1-27).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.client.models import CallFault, Json, Outcome, fault
from edge.runtime.logs import clean
from tools_cache.errors import BadDefinition
from tools_cache.schema import compile_schema

MAX_MESSAGE: Final = 300
MAX_TEXT: Final = 1024 * 1024
"""Characters of one text block that is tried as JSON."""
MAX_DEPTH: Final = 100
"""Levels of JSON in a text; in the message itself the parser allows about 200, and whoever
walks it has room for those.
"""


def outcome(
    raw: Mapping[str, Any], schema: Mapping[str, Json] | None, *, most_bytes: int
) -> Outcome:
    """Read a result that the SDK found to be one. `schema`: what the tool promises of its
    structured content.
    """
    meta = raw.get("_meta") or {}
    if raw.get("resultType") == "input_required":
        return Outcome(
            input_requests=dict(raw.get("inputRequests") or {}),
            request_state=raw.get("requestState"),
            meta=meta,
        )
    content = tuple(raw.get("content") or ())
    if raw.get("isError"):
        return Outcome(
            content=content,
            structured=raw.get("structuredContent"),
            is_error=True,
            message=_said(content),
            meta=meta,
        )
    structured, told = raw.get("structuredContent"), "structuredContent" in raw
    if not told:
        structured = _json_in(content)
    problem = _problem(structured, schema, most_bytes) if schema is not None else ""
    if problem and (told or not content):
        return fault(
            CallFault.INVALID,
            clean(f"the answer is not what the tool promises: {problem}", MAX_MESSAGE),
        )
    if problem:
        return fault(
            CallFault.INVALID,
            "the tool promises structured content and gave none that keeps its schema",
        )
    return Outcome(content=content, structured=structured, meta=meta)


def _problem(value: Json, schema: Mapping[str, Json], most_bytes: int) -> str:
    try:
        found = compile_schema(dict(schema)).errors(value, most_bytes=most_bytes)
    except BadDefinition as e:
        return str(e)
    return f"{found[0]['path']}: {found[0]['problem']}" if found else ""


def _json_in(content: tuple[Mapping[str, Any], ...]) -> Json:
    """The JSON object that is all of the one text block there is; None when it is not."""
    if len(content) != 1 or content[0].get("type") != "text":
        return None
    text = str(content[0].get("text", ""))
    if len(text) > MAX_TEXT or text.lstrip()[:1] != "{":
        return None
    try:
        found = json.loads(text, parse_constant=_no_number)
        json.dumps(
            found, ensure_ascii=False, allow_nan=False
        ).encode()  # half a character, and 1e999, are no JSON either
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not _too_deep(found) else None


def _too_deep(value: Json) -> bool:
    """Look level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (
            part
            for outer in level
            for part in (outer.values() if isinstance(outer, dict) else outer)
        )
        level = [part for part in inner if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def _no_number(word: str) -> Json:
    raise ValueError(f"{word} is not JSON")


def _said(content: tuple[Mapping[str, Any], ...]) -> str:
    """What a failing tool says, as one line."""
    texts = [str(block.get("text", "")) for block in content if block.get("type") == "text"]
    return clean(" ".join(texts) or "the tool failed and does not say why", MAX_MESSAGE)
