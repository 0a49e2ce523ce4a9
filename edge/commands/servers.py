"""`glassd servers`: list the other MCP servers with their state, list a server's tools again,
complete a sign-in.

A person signs in with a browser, and pastes the address it was redirected to.
"""

from argparse import Namespace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.daemon_client import ask

SETTLES_S: Final = 75.0
"""The daemon itself gives up earlier than this."""
_GOOD: Final = {
    "connected": "green",
    "disconnected": "",
    "loading": "yellow",
    "authorizing": "yellow",
}
_READ_AS: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
"""Corrects letters that are easily confused when a code is read from the lens."""
NAMED: Final = 8


def run(args: Namespace, screen: Screen) -> int:
    if args.act is None:
        return _list(ask(args, "GET", "/v1/servers")["servers"], screen)
    if not args.server:
        raise CliError(
            "USAGE",
            f"glassd servers {args.act} needs a server's id",
            "list them: glassd servers",
            exit_code=2,
        )
    if args.act == "refresh":
        return _one(
            ask(
                args,
                "POST",
                f"/v1/servers/{args.server}/refresh",
                {},
                timeout_s=SETTLES_S,
                who="owner",
            ),
            screen,
        )
    return _authorize(args, screen)


def _list(servers: list[dict[str, Any]], screen: Screen) -> int:
    if screen.as_json:
        screen.json({"servers": servers})
    elif not servers:
        screen.line(
            "No other MCP servers. Add one as [[mcp.servers]] in the "
            "configuration, then: systemctl reload glassd"
        )
    else:
        screen.table([_row(screen, one) for one in servers])
        for one in servers:
            _beside(one, screen)
    return 0


def _row(screen: Screen, one: dict[str, Any]) -> tuple[str, ...]:
    state = "off" if not one["enabled"] else one["status"]
    tools = len(one.get("tools") or ())
    colour = (
        "red"
        if one["enabled"] and one.get("error") and state == "disconnected"
        else _GOOD.get(state, "")
    )
    return (
        plain(one["id"]),
        screen.paint(state, colour),
        f"{tools} tool{'s' * (tools != 1)}",
        plain(one.get("error", "")),
    )


def _beside(one: dict[str, Any], screen: Screen) -> None:
    """Print notes on what the owner may want to do about this server."""
    name = plain(one["id"])
    if url := one.get("authorize_url"):
        screen.note(
            f"{name}: sign in at {plain(url)}\nthen: "
            f"glassd servers authorize {name} 'THE ADDRESS YOU ARE SENT TO'"
        )
    if left := one.get("not_allowed"):
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        screen.note(f"{name}: not in allowed_tools: {plain(', '.join(left[:NAMED]))}{more}")
    for text in (one.get("left_out") or ())[:NAMED]:
        screen.note(f"{name}: left out: {plain(text)}")


def _one(server: dict[str, Any], screen: Screen) -> int:
    if screen.as_json:
        screen.json(server)
    else:
        screen.table([_row(screen, server)])
        _beside(server, screen)
    return 0 if server["status"] == "connected" else 1


# ------------------------------------------------------------------ a sign-in


def _authorize(args: Namespace, screen: Screen) -> int:
    """Without a code show where to sign in; with a code, or the whole address that the browser was
    redirected to, complete the sign-in.
    """
    server = _meant(ask(args, "GET", "/v1/servers")["servers"], args.server)
    if args.code is None:
        if screen.as_json:
            screen.json(server)
        else:
            _beside({**server, "not_allowed": (), "left_out": ()}, screen)
        return 0
    body = _brought(args.code)
    return _one(
        ask(
            args,
            "POST",
            f"/v1/servers/{server['id']}/authorize",
            body,
            timeout_s=SETTLES_S,
            who="owner",
        ),
        screen,
    )


def _meant(servers: list[dict[str, Any]], word: str) -> dict[str, Any]:
    """Find a server by its id, or by the code of its sign-in on the lens."""
    code = word.strip().upper().translate(_READ_AS)
    for one in servers:
        if one["id"] == word or (
            one.get("sign_in_code") and one["sign_in_code"].replace("-", "") == code
        ):
            if not one.get("authorize_url"):
                raise CliError(
                    "NOT_FOUND",
                    f"{word} needs no sign-in now; it is {one['status']}",
                    "see: glassd servers",
                    exit_code=4,
                )
            return one
    raise CliError(
        "NOT_FOUND",
        f"there is no server {word}, and no sign-in with this code",
        "see: glassd servers",
        exit_code=4,
    )


def _brought(text: str) -> dict[str, str]:
    """Read a code, or the address that contains it."""
    if "://" not in text and "code=" not in text:
        return {"code": text}
    given = parse_qs(urlsplit(text).query or text.partition("?")[2] or text)
    if "error" in given:
        raise CliError(
            "DENIED",
            f"the sign-in was refused: {plain(given['error'][0])}",
            "start it again: glassd servers",
        )
    if "code" not in given:
        raise CliError(
            "USAGE",
            "there is no code in this address",
            "paste the whole address that the browser was sent to",
            exit_code=2,
        )
    return {key: given[key][0] for key in ("code", "state", "iss") if key in given}
