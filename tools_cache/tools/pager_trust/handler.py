"""Decides whose messages are taken."""

from collections.abc import Mapping
from dataclasses import replace

from tools_cache.api.tool import Json, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.pager import keys
from tools_cache.everyday.pager.book import CHANGING, CONFLICTED, PagerBook, Sender
from tools_cache.everyday.pager.inbox import Inbox
from tools_cache.everyday.pager.messages import invalid, readable


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Accept a sender with its latest key, or revoke it; a new key needs its fingerprint, which the
    wearer is shown in the question.
    """
    await Inbox(ctx.db).cleanup_expired(ctx.now())
    book = PagerBook(ctx.db)
    async with CHANGING:
        known = await book.sender(args["pager"])
        if known is None:
            raise invalid(
                f"/pager {args['pager']} has sent nothing here", "Wait for its first message"
            )
        changed = _accepted(known, args.get("fingerprint")) if args["accept"] else _revoked(known)
        if args.get("name"):
            alias = readable(args["name"])
            if not alias:
                raise invalid("/name there is nothing in it that can be read", "Give a name")
            changed = replace(changed, alias=alias)
        if changed != known:
            await book.keep(changed)
    who = f"{changed.alias or changed.name} ({changed.pager})"
    text = f"Messages of {who} are refused" if changed.revoked else f"You trust {who}"
    return {"data": {**changed.to_json(), "text": text}}


def _accepted(known: Sender, fingerprint: str | None) -> Sender:
    shown = keys.shown_fingerprint(known.latest_key)
    if fingerprint is not None and fingerprint != shown:
        raise invalid(
            f"/fingerprint is not that of the latest key of {known.pager}, {shown}",
            "Compare it with the sender, then give that one",
        )
    if fingerprint is None and (known.state == CONFLICTED or known.revoked):
        raise ToolFailure.of(
            ErrorCode.CONFLICT,
            f"The key of {known.pager} has to be compared with its owner first: {shown}",
            suggestion=f'Then accept it with fingerprint="{shown}"',
        )
    return replace(known, key=known.latest_key, new_key="", revoked=False)


def _revoked(known: Sender) -> Sender:
    return replace(known, revoked=True)
