"""Leaves the wearer alone, by intents. Knows neither speaker nor clock: the session belongs to
the house.
"""

from collections.abc import Mapping

from tools_cache.durations import spoken
from tools_cache.tool import FAREWELL, Json, Mode, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Say farewell, and ask for the end of the session and for quiet after it."""
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
