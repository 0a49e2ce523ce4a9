"""`glassd servers`: list the other MCP servers with their state, list a server's tools again,
complete a sign-in.

A person signs in with a browser, and pastes the address it was redirected to.
"""

from argparse import Namespace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask
from edge.runtime.errors import UserError

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


def servers(args: Namespace, screen: Screen) -> int:
    if args.act is None:
        return _list(ask(args, "GET", "/v1/servers")["servers"], screen)
    if not args.server:
        problem = f"glassd servers {args.act} needs a server's id"
        raise UserError("USAGE", problem, "list them: glassd servers")
    if args.act == "refresh":
        return _change(args, screen, f"{args.server}/refresh", {})
    return _authorize(args, screen)


def _change(args: Namespace, screen: Screen, path: str, body: dict[str, str]) -> int:
    """Have the daemon act on one server, and show its new state."""
    path = f"/v1/servers/{path}"
    server = ask(args, "POST", path, body, timeout_s=SETTLES_S, who="owner")
    if screen.as_json:
        screen.json(server)
    else:
        screen.table([_row(screen, server)])
        _notes(server, screen)
    return 0 if server["status"] == "connected" else 1


def _list(servers: list[dict[str, Any]], screen: Screen) -> int:
    if screen.as_json or not servers:
        none = (
            "No other MCP servers. Add one as [[mcp.servers]] in the "
            "configuration, then: systemctl reload glassd"
        )
        return screen.result({"servers": servers}, none)
    screen.table([_row(screen, one) for one in servers])
    for one in servers:
        _notes(one, screen)
    return 0


def _row(screen: Screen, one: dict[str, Any]) -> tuple[str, ...]:
    state = "off" if not one["enabled"] else one["status"]
    tools = len(one.get("tools") or ())
    failed = one["enabled"] and one.get("error") and state == "disconnected"
    painted = screen.paint(state, "red" if failed else _GOOD.get(state, ""))
    count = f"{tools} tool{'s' * (tools != 1)}"
    return plain(one["id"]), painted, count, plain(one.get("error", ""))


def _notes(one: dict[str, Any], screen: Screen) -> None:
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


# ------------------------------------------------------------------ a sign-in


def _authorize(args: Namespace, screen: Screen) -> int:
    """Without a code show where to sign in; with a code, or the whole address that the browser was
    redirected to, complete the sign-in.
    """
    server = _find(ask(args, "GET", "/v1/servers")["servers"], args.server)
    if args.code is None:
        if not screen.as_json:
            _notes({**server, "not_allowed": (), "left_out": ()}, screen)
        return screen.result(server)
    return _change(args, screen, f"{server['id']}/authorize", _redirect(args.code))


def _find(servers: list[dict[str, Any]], word: str) -> dict[str, Any]:
    """Find a server by its id, or by the code of its sign-in on the lens."""
    code = word.strip().upper().translate(_READ_AS)
    for one in servers:
        if one["id"] == word or (
            one.get("sign_in_code") and one["sign_in_code"].replace("-", "") == code
        ):
            if not one.get("authorize_url"):
                raise UserError(
                    "NOT_FOUND",
                    f"{word} needs no sign-in now; it is {one['status']}",
                    "see: glassd servers",
                )
            return one
    raise UserError(
        "NOT_FOUND",
        f"there is no server {word}, and no sign-in with this code",
        "see: glassd servers",
    )


def _redirect(text: str) -> dict[str, str]:
    """Read a code, or the address that contains it."""
    if "://" not in text and "code=" not in text:
        return {"code": text}
    given = parse_qs(urlsplit(text).query or text.partition("?")[2] or text)
    if "error" in given:
        raise UserError(
            "DENIED",
            f"the sign-in was refused: {plain(given['error'][0])}",
            "start it again: glassd servers",
        )
    if "code" not in given:
        raise UserError(
            "USAGE",
            "there is no code in this address",
            "paste the whole address that the browser was sent to",
        )
    return {key: given[key][0] for key in ("code", "state", "iss") if key in given}
