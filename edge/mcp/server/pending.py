"""`get_pending_result`: our own tool, which returns the answer of an earlier call."""

import re
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.server import results
from edge.mcp.server.calls import Calls, refusal_of
from edge.runtime.errors import UserError

MAX_WAIT_S: Final = 50.0
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
PENDING: Final[dict[str, Any]] = {
    "name": results.GET_PENDING,
    "title": "Result of a pending call",
    "description": (
        "Give the result of a call that was answered `pending`, "
        "or that waits for the wearer's yes, once there is one; "
        "of any call, how far its answer got on the glasses."
    ),
    "inputSchema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "The call's id: pendingToolCallId, or callId.",
            },
            "wait_s": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_WAIT_S,
                "default": 0,
                "description": "Seconds to wait for it.",
            },
        },
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


async def pending(calls: Calls, args: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    """Return the CallToolResult of that call, or `pending` again."""
    call_id, wait_s = args.get("id"), args.get("wait_s", 0)
    if problem := _problem(args):
        fix = "See the tool's input schema"
        return results.result(results.refused("INVALID_ARGUMENTS", "VALIDATION", problem, fix))
    try:
        envelope = await calls.wait_for(str(call_id), max(wait_s, 0.05))
    except UserError as e:
        return results.result(refusal_of(e, looked_up=True))
    waiting = {
        "ok": True,
        "data": {"status": "pending", "pendingToolCallId": call_id},
        "meta": {"callId": call_id},
    }
    return results.result(envelope or waiting, modern=modern)


def _problem(args: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments; "" for valid ones."""
    call_id, wait_s = args.get("id"), args.get("wait_s", 0)
    unknown = next((key for key in args if key not in {"id", "wait_s"}), None)
    if unknown is not None:
        return f"Invalid parameters: {unknown[:40]} is unknown"
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        return "Invalid parameters: id must be the id of a call"
    number = isinstance(wait_s, int | float) and not isinstance(wait_s, bool)
    if not (number and 0 <= wait_s <= MAX_WAIT_S):
        return f"Invalid parameters: wait_s must be 0 to {MAX_WAIT_S:g}"
    return ""
