"""`glassd tools`: the tools that can be called now, and how old the registry is; with `--all` also
the hidden tools, and why they are hidden.

Without a running daemon it lists the tools stored on disk (`tools/offline_listing.py`), and says
so.
"""

import os
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, duration, plain

NOT_RUNNING: Final = 3
NOTHING: Final = 4
ORIGINS: Final = {
    "cloud": "confirmed by the cloud",
    "disk": "the copy kept on disk",
    "local": "the tools of this installation",
}
ASLEEP: Final = (
    "glassd is not running: these are the tools it would start with; "
    "which of them work with your glasses is known when it runs"
)


def run(args: Namespace, screen: Screen) -> int:
    if args.act:
        from edge.commands.shared.one_tool import act  # noqa: PLC0415 - listing does not need it

        return act(args, screen)
    document = _document(args)
    tools = document["tools"]
    for warning in document.get("warnings", ()):
        screen.note(f"warning: {warning}")
    if screen.as_json:
        screen.json(document)
        return _exit_code(args, tools)
    if not tools:
        screen.line(
            "No tools"
            + (f" of category {plain(args.category)}" if args.category else "")
            + ". See also: glassd tools --all"
        )
    else:
        screen.table(
            [(t["name"], t["category"], t["source"], _about(t, warn=args.all)) for t in tools]
        )
    if (document.get("loader") or {}).get("crowded"):
        counts = document["counts"]
        screen.line(
            f"{counts['offered']} of {counts['offered'] + counts['available']} are offered "
            "to models; they find the others with registry:search"
        )
    if age := _age(document):
        screen.line(plain(age))
    if document.get("running") is False:
        screen.note(ASLEEP)
    return _exit_code(args, tools)


def _exit_code(args: Namespace, tools: list[dict[str, Any]]) -> int:
    """Return 0, also for an empty list; but NOTHING for a category that no tool has, hidden tools
    included.
    """
    if tools or not args.category:
        return 0
    every = _document(Namespace(**{**vars(args), "all": True, "mode": None}))["tools"]
    return 0 if every else NOTHING


def _document(args: Namespace) -> dict[str, Any]:
    """Ask the daemon; if none runs, and no socket was named, read the disk."""
    if not args.socket and not os.environ.get("GLASSD_SOCKET") and not _somebody_there():
        return _cold(args)
    from urllib.parse import urlencode  # noqa: PLC0415 - with http.client it takes half the time of an answer from disk

    from edge.commands.shared.daemon_client import ask  # noqa: PLC0415 - see above

    given = {"category": args.category, "mode": args.mode}
    query = {
        "all": "1" if args.all else "0",
        **{key: value for key, value in given.items() if value},
    }
    try:
        document: dict[str, Any] = ask(args, "GET", f"/v1/tools?{urlencode(query)}")
    except CliError as e:
        if (
            e.exit_code != NOT_RUNNING
            or e.code != "NOT_RUNNING"
            or args.socket
            or os.environ.get("GLASSD_SOCKET")
        ):
            raise
        return _cold(args)
    return document


def _somebody_there() -> bool:
    """Return whether a socket file exists; without one the client need not be imported."""
    from edge.runtime.paths import client_sockets  # noqa: PLC0415 - as below

    return any(_exists(path) for path in client_sockets(os.environ))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory we may not read: ask, so that the error is reported
        return True


def _cold(args: Namespace) -> dict[str, Any]:
    import time  # noqa: PLC0415 - not needed when the daemon answers

    from edge.tools import offline_listing  # noqa: PLC0415 - see above

    found = offline_listing.read(os.environ, now=time.time())
    tools = [t | {"hidden": t["hidden"] or _not_offered(t, args.mode)} for t in found.tools]
    shown = [
        t
        for t in tools
        if (args.all or not t["hidden"]) and args.category in (None, "", t["category"])
    ]
    return {
        "version": found.registry["version"],
        "tools": shown,
        "running": False,
        "registry": found.registry,
        "warnings": found.warnings,
    }


def _not_offered(tool: dict[str, Any], mode: str | None) -> str:
    return f"not for {mode} mode" if mode and mode not in tool["allowedModes"] else ""


def _about(tool: dict[str, Any], *, warn: bool) -> str:
    first: str = tool["description"].split(". ")[0].strip()
    needs = f" (needs: {', '.join(tool['needs']).lower()})" if tool.get("needs") else ""
    warning = f" ({tool['warnings'][0]})" if warn and tool.get("warnings") else ""
    if tool.get("hidden"):
        return f"hidden: {tool['hidden']}"
    return (
        first + needs + warning + (" (not offered now)" if tool.get("state") == "available" else "")
    )


def _age(document: dict[str, Any]) -> str:
    """Return where the tools come from and how old the registry is."""
    registry = document.get("registry") or {}
    if not registry:
        return ""
    age = registry.get("age_s")
    words = (
        f"registry {registry.get('version', '')}: {ORIGINS.get(str(registry.get('origin')), '')}"
    )
    words += f", {duration(age)} old" if isinstance(age, int | float) else ""
    if registry.get("error"):
        words += f"; {registry['error']}"
    return words
