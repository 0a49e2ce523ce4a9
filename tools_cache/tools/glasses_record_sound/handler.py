"""Records sound with the glasses' microphone."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import CallOrigin, ErrorCode, Json, ToolContext, ToolFailure

_TYPE: Final = "audio/wav"
_FULL_S: Final = 4
"""Seconds at 16 kHz that a result holds: 128 kB."""
_HALF_S: Final = 8
"""Seconds at 8 kHz."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Record it. The sound is content of its own; the data says what it is."""
    seconds = int(args.get("seconds", _FULL_S))
    uploaded = ctx.call.origin is CallOrigin.CLOUD
    if seconds > _HALF_S and not uploaded:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"seconds: {seconds}; a result holds {_HALF_S} seconds of sound",
            suggestion="Only a call of the cloud, which takes uploads, records for longer",
        )
    rate = 16000 if seconds <= _FULL_S or uploaded else 8000
    wav = await ctx.microphone.record(seconds, rate=rate)
    sound = await ctx.attach(wav, _TYPE)
    said = "Sound was recorded"
    return {
        "ok": True,
        "data": {"text": said, "type": _TYPE, "bytes": len(wav), "rate": rate},
        "render": {
            "display": {"layout": "text_wall", "text": said, "durationMs": 3000, "recall": False}
        },
        "meta": {"content": [{"type": "text", "text": said}, sound]},
    }
