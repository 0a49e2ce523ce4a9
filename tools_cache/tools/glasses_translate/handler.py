"""Shows a translation on the screen that the glasses have for it."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Begin, show what was said and what it means, or end."""
    said = {key: args[key] for key in ("original", "translated") if args.get(key)}
    begins, end = "from" in args, args.get("end") is True
    if ("to" in args) is not begins:
        raise _wrong("from and to go together: give both")
    if end is bool(said or begins):
        raise _wrong("Give languages, texts, or end alone")
    if end:
        await ctx.glasses_do("dashboard", {})
        return {"data": {"text": "Translation: over"}}
    if begins:
        pair = {"source": args["from"], "target": args["to"]}
        await ctx.glasses_do("begin_translation", pair)
    if said:
        await ctx.glasses_do("translation", said)
    shown = list(said.values()) or [f"Translation: {args['from']} to {args['to']}"]
    return {"data": {"text": "\n".join(shown)}}


def _wrong(message: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message)
