"""Answers a mail. The user confirmed the call before it runs."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday import mail
from tools_cache.everyday.mail import name_arguments

__all__ = ["execute", "name_arguments"]


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Send an answer; a repeated call sends none."""
    done = await mail.send(ctx, args)
    text = f"Sent to {', '.join(args['to'])}"
    return {"data": {**done, "to": args["to"], "subject": args["subject"], "text": text}}
