"""Changes what the glasses do by themselves."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

_DEEDS: Final = {
    "wear_detection": ("wear_detection", "on", "Wear detection: {}"),
    "head_up_angle": ("head_up_angle", "degrees", "Looking up counts from {}°"),
    "head_up": ("head_up", "opens", "Looking up opens: {}"),
    "double_tap": ("double_tap", "opens", "A double tap opens: {}"),
    "notification_s": ("notification_time", "seconds", "Notifications stay for {} s"),
    "language": ("language", "language", "Language of the glasses: {}"),
}
"""Argument → action of the glasses, the name of its value there, what is said."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Apply the given settings, one after another."""
    if not args:
        why = f"Nothing to set: give one of {', '.join(_DEEDS)}"
        raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, why)
    said = []
    for name, (deed, key, sentence) in _DEEDS.items():
        if name in args:
            await ctx.glasses_do(deed, {key: args[name]})
            value = ("off", "on")[args[name]] if isinstance(args[name], bool) else args[name]
            said.append(sentence.format(value))
    return {"data": {**args, "text": "\n".join(said)}}
