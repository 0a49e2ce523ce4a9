"""A server's result → an `Outcome`. Pure.

Content stays verbatim. Structured content must match the tool's output schema; a JSON object in the
only text block counts as structured.
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
"""Levels of JSON in a text; the parser of messages allows about 200."""


def outcome(
    raw: Mapping[str, Any], schema: Mapping[str, Json] | None, *, most_bytes: int
) -> Outcome:
    """Return the outcome of a result that the SDK accepted. `schema`: the tool's output schema."""
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
            message=_failure(content),
            meta=meta,
        )
    explicit = "structuredContent" in raw
    structured = raw.get("structuredContent") if explicit else _json_in(content)
    problem = _problem(structured, schema, most_bytes) if schema is not None else ""
    if not problem:
        return Outcome(content=content, structured=structured, meta=meta)
    message = f"the answer does not match the tool's output schema: {problem}"
    if content and not explicit:
        message = "the tool has an output schema, but its answer has no structured content"
    return fault(CallFault.INVALID, clean(message, MAX_MESSAGE))


def _problem(value: Json, schema: Mapping[str, Json], most_bytes: int) -> str:
    try:
        found = compile_schema(dict(schema)).errors(value, most_bytes=most_bytes)
    except BadDefinition as e:
        return str(e)
    return f"{found[0]['path']}: {found[0]['problem']}" if found else ""


def _json_in(content: tuple[Mapping[str, Any], ...]) -> Json:
    """Return the JSON object in the only text block; None if there is none."""
    if len(content) != 1 or content[0].get("type") != "text":
        return None
    text = str(content[0].get("text", ""))
    if len(text) > MAX_TEXT or text.lstrip()[:1] != "{":
        return None
    try:
        found = json.loads(text, parse_constant=_no_number)
        # a lone surrogate and 1e999 are not JSON either
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not _too_deep(found) else None


def _too_deep(value: Json) -> bool:
    """Look level by level: recursion could exhaust the stack."""
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


def _failure(content: tuple[Mapping[str, Any], ...]) -> str:
    """Return what a failed tool says, as one line."""
    texts = [str(block.get("text", "")) for block in content if block.get("type") == "text"]
    return clean(" ".join(texts) or "the tool failed and does not say why", MAX_MESSAGE)
