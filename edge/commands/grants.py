"""`glassd grants`: list, add and revoke the tools that are always or never allowed."""

import time
from argparse import Namespace
from typing import Any, Final
from urllib.parse import urlencode

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon_client import ask

MEANS: Final = {"always": "runs without asking", "never": "is refused without asking"}


def run(args: Namespace, screen: Screen) -> int:
    if args.revoke:
        return _done(
            screen,
            ask(args, "DELETE", f"/v1/grants?{urlencode({'tool': args.revoke})}", who="owner"),
            "asks for confirmation again",
        )
    if given := args.always or args.never:
        grant = "always" if args.always else "never"
        return _done(
            screen,
            ask(args, "PUT", "/v1/grants", {"tool": given, "grant": grant}, who="owner"),
            MEANS[grant],
        )
    document = ask(args, "GET", "/v1/grants")
    if screen.as_json:
        screen.json(document)
    elif document["grants"]:
        screen.table([_row(grant) for grant in document["grants"]])
    else:
        screen.line(
            "No tool is always or never allowed: tools that need confirmation ask every time."
        )
    return 0


def _done(screen: Screen, answer: dict[str, Any], means: str) -> int:
    if screen.as_json:
        screen.json(answer)
    else:
        screen.line(f"{plain(answer['tool'])} {means}")
    return 0


def _row(grant: dict[str, Any]) -> tuple[str, ...]:
    since = grant.get("since_wall")
    day = (
        time.strftime("since %Y-%m-%d", time.localtime(since))
        if isinstance(since, int | float)
        else ""
    )
    word = str(grant.get("grant", ""))
    ended = str(grant.get("ended") or "")
    means = f"ended: {ended}; it asks again" if ended else MEANS.get(word, "")
    return str(grant.get("tool", "")), word, means, _bound(grant), day


def _bound(grant: dict[str, Any]) -> str:
    """Return what an “always” is bound to: the tool's origin and the definition it had. A “never”
    is bound to the name only.
    """
    if grant.get("grant") != "always" or not grant.get("definition"):
        return ""
    return f"from {grant.get('origin')}, definition {str(grant['definition'])[:12]}"
