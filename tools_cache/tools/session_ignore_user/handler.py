"""Leaves the wearer alone: returns intents that end the session and suppress speech."""

from collections.abc import Mapping

from tools_cache.api.durations import spoken
from tools_cache.api.tool import FAREWELL, Json, Mode, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return a farewell, and intents to end the session and stay quiet afterwards."""
    seconds, farewell = args["duration"], args.get("farewell", "").strip()
    quiet = {"type": "SUPPRESS_AUDIO", "value": True, "after": FAREWELL, "duration": seconds}
    over = {"type": "END_VOICE_SESSION", "after": FAREWELL}
    speaking = ctx.voice_active or ctx.call.mode is Mode.VOICE
    return {
        "data": {"duration": seconds, "text": farewell or f"Quiet for {spoken(seconds)}"},
        "render": {
            "display": {"layout": "text_wall", "text": farewell or f"Quiet for {spoken(seconds)}"},
            "audio": {"text": farewell} if farewell else {"suppressVoiceResponse": True},
        },
        "intents": [over, quiet] if speaking else [quiet],
    }
