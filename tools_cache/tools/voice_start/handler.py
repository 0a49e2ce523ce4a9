"""Begins a voice session, by an intent."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the new session's id and the intent to start it; the end of a call id is random."""
    state = ctx.session.state()
    if ctx.voice_active and state.get("session_id"):  # else it was begun by a sentence
        raise ToolFailure.of(
            ErrorCode.SESSION_ACTIVE,
            "Voice session is already active",
            suggestion="Continue in it, or end it: voice:end",
        )
    session = f"voice-{round(ctx.now() * 1000)}-{ctx.call.call_id[-6:].rjust(6, '0')}"
    pending = args.get("pending_request", "") or None
    data: dict[str, Json] = {
        "sessionId": session,
        "pendingRequest": pending,
        "text": "Voice session started",
    }
    if "cannot_listen" in state:
        data["listening"] = state["cannot_listen"] or "on"
    return {
        "data": data,
        "intents": [
            {"type": "START_VOICE_SESSION", "sessionId": session},
            {"type": "SET_PENDING_MESSAGE", "message": pending},
        ],
    }
