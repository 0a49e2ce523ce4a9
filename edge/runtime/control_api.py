"""What a client of the control API reports when there is no answer, or an error as the answer;
shared by the client of the commands and the one of the MCP server. Standard library only.
"""

import grp
import json
import pwd
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from edge.runtime.errors import UserError

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes."""
CONNECT_S: Final = 5.0
QUIET_S: Final = 60.0
"""A stream that is silent this long is lost: the daemon sends something every 15 s."""
MAX_STARTS: Final = 5
"""How often a listing is begun again because the registry changed between two of its pages."""


class ToolPages:
    """All pages of `GET /v1/tools`: ask for `path` and `take` the answer, until that returns True;
    then `document` has all tools.
    """

    def __init__(self, query: Mapping[str, str] | None = None) -> None:
        self._query = dict(query or {})
        self._starts = 0
        self._begin()

    def _begin(self) -> None:
        self._starts += 1
        self._tools: list[Any] = []
        self._version: Any = None
        self.document: dict[str, Any] = {}
        self._ask_after("")

    def _ask_after(self, name: str) -> None:
        self.path = f"/v1/tools?{urlencode({**self._query, 'after': name})}"

    def take(self, answer: Mapping[str, Any]) -> bool:
        """Add a page; return whether it was the last one."""
        version = answer.get("version")
        if self.document and version != self._version and self._starts < MAX_STARTS:
            self._begin()
            return False
        self._version = version
        self._tools += answer["tools"]
        self.document = {**answer, "tools": self._tools}
        if name := answer.get("next"):
            self._ask_after(name)
        return not name


def list_tools(
    ask: Callable[[str], Mapping[str, Any]], query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return `GET /v1/tools` with the tools of all pages; `ask` returns the answer of a path."""
    pages = ToolPages(query)
    while not pages.take(ask(pages.path)):
        pass
    return pages.document


def refusal(status: int, raw: bytes) -> UserError:
    """Return the error of an answer whose status is an error."""
    try:
        error = json.loads(raw)["error"]
        code, message, fix = (str(error.get(key, "")) for key in ("code", "message", "fix"))
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"the daemon answered {status} without a reason"
        return UserError("INTERNAL", message, status=status)
    return UserError(code, message, fix, status=status)


def not_connected(sockets: Sequence[Path], forbidden: Path | None) -> UserError:
    """Return the error when none of the sockets answers. `forbidden` is one that this user may not
    open.
    """
    if forbidden is not None:
        return _forbidden(forbidden)
    tried = ", ".join(map(str, sockets))
    return UserError(
        "NOT_RUNNING",
        f"glassd is not running (no answer at {tried})",
        "start it: systemctl start glassd (or, in a terminal: glassd run); "
        "it does not stay up? glassd doctor; no glasses at hand? glassd demo",
    )


def late(timeout_s: float) -> UserError:
    return UserError(
        "TIMEOUT",
        f"the daemon did not answer within {timeout_s:g} s",
        "find the cause: glassd doctor, and in its journal: journalctl -u glassd -n 50",
        may_have_run=True,
    )


def stopped() -> UserError:
    fix = "see whether it runs: glassd status"
    return UserError("NOT_RUNNING", "the daemon closed the connection", fix, may_have_run=True)


def _forbidden(path: Path) -> UserError:
    if user := _only_user(path):
        message = f"you may not use {path}: it is for the user {user} alone"
        fix = f"ask as that user: sudo -u {user} glassd …"
    else:
        group = _group_of(path)
        message = f"you may not use {path}: it is for the group {group}"
        fix = f"join the group: sudo usermod -aG {group} $USER, then log in again"
    return UserError("PERMISSION", message, fix, exit_code=3)


def _only_user(path: Path) -> str:
    """Return the user who owns this socket, if no group may use it; "" if one may, or if it is
    unknown.
    """
    try:
        found = path.stat()
        return "" if found.st_mode & 0o060 else pwd.getpwuid(found.st_uid).pw_name
    except (OSError, KeyError):
        return ""


def _group_of(path: Path) -> str:
    for place in (path, path.parent):
        try:
            return grp.getgrgid(place.stat().st_gid).gr_name
        except (OSError, KeyError):
            continue
    return "glassd"
