"""`glassd tools`: the tools that can be called now, and how old the registry is; with `--all` also
the hidden tools, and why they are hidden. `show`, `enable` and `disable` are for one tool, `usage`
tells how often each was called.

Without a running daemon it lists the tools stored on disk (`tools/offline_listing.py`), and says
so.
"""

import os
import time
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, json_text, plain
from edge.runtime.durations import duration
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets

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
AVAILABLE: Final = "available; models find it by searching"


def tools(args: Namespace, screen: Screen) -> int:
    if args.act == "usage":
        return _usage(args, screen)
    if args.act and not args.tool:
        example = f"for example: glassd tools {args.act} notes:add"
        raise UserError("USAGE", f"{args.act} which tool?", example)
    if args.act:
        return _show(args, screen) if args.act == "show" else _switch(args, screen)
    document = _document(args)
    listed = document["tools"]
    for warning in document.get("warnings", ()):
        screen.note(f"warning: {warning}")
    if screen.as_json:
        screen.json(document)
        return _exit_code(args, listed)
    if not listed:
        of_category = f" of category {plain(args.category)}" if args.category else ""
        screen.line(f"No tools{of_category}. See also: glassd tools --all")
    else:
        about = partial(_about, every=args.all)
        screen.table([(t["name"], t["category"], t["source"], about(t)) for t in listed])
    if args.all and (document.get("loader") or {}).get("crowded"):
        counts = document["counts"]
        screen.line(
            f"{counts['offered']} of {counts['offered'] + counts['available']} are offered "
            "to models; they find the others with registry:search"
        )
    if age := _age(document):
        screen.line(plain(age))
    if document.get("running") is False:
        screen.note(ASLEEP)
    return _exit_code(args, listed)


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
    may_read_disk = not args.socket and not os.environ.get("GLASSD_SOCKET")
    if may_read_disk and not any(_exists(path) for path in client_sockets(os.environ)):
        return _offline(args)
    given = {"category": args.category, "mode": args.mode}
    query = {"all": str(int(args.all)), **{key: value for key, value in given.items() if value}}
    from edge.runtime.control_api import list_tools  # noqa: PLC0415 - see `_ask`

    try:
        document = list_tools(partial(_ask, args, "GET"), query)
    except UserError as e:
        if e.code != "NOT_RUNNING" or not may_read_disk:
            raise
        return _offline(args)
    return document


def _ask(args: Namespace, method: str, path: str, query: Any = None, body: Any = None) -> Any:
    """Ask the daemon: as the owner if there is a body."""
    from urllib.parse import urlencode  # noqa: PLC0415 - with http.client it takes half the time of an answer from disk

    from edge.commands.shared.daemon import ask  # noqa: PLC0415 - see above

    path = f"{path}?{urlencode(query)}" if query else path
    return ask(args, method, path, body, who="caller" if body is None else "owner")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory we may not read: ask, so that the error is reported
        return True


def _offline(args: Namespace) -> dict[str, Any]:
    from edge.tools import offline_listing  # noqa: PLC0415 - not needed if the daemon answers

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


def _about(tool: dict[str, Any], *, every: bool) -> str:
    first: str = tool["description"].split(". ")[0].strip()
    needs = f" (needs: {', '.join(tool['needs']).lower()})" if tool.get("needs") else ""
    warning = f" ({tool['warnings'][0]})" if every and tool.get("warnings") else ""
    if tool.get("hidden"):
        return f"hidden: {tool['hidden']}"
    available = every and tool.get("state") == "available"
    offered = f" ({AVAILABLE})" if available else ""
    return first + needs + warning + offered


def _age(document: dict[str, Any]) -> str:
    """Return where the tools come from and how old the registry is."""
    registry = document.get("registry") or {}
    if not registry:
        return ""
    age, origin = registry.get("age_s"), ORIGINS.get(str(registry.get("origin")), "")
    words = f"registry {registry.get('version', '')}: {origin}"
    words += f", {duration(age)} old" if isinstance(age, int | float) else ""
    if registry.get("error"):
        words += f"; {registry['error']}"
    return words


# ------------------------------------------------------------------ one tool


def _switch(args: Namespace, screen: Screen) -> int:
    on = args.act == "enable"
    done = _ask(args, "PUT", "/v1/tools", body={"tool": args.tool, "enabled": on})
    already = "" if args.tool in done["changed"] else " already"
    lines = [f"{plain(done['tool'])} is {args.act}d{already}"]
    if also := [plain(name) for name in done["changed"] if name != done["tool"]]:
        lines.append(f"with what it depends on: {', '.join(also)}")
    mark = screen.paint("warning:", "yellow")
    lines += [f"{mark} {plain(warning)}" for warning in done["warnings"]]
    if on and done["state"] == "hidden":
        lines.append(f"It is still hidden: {plain(done['reason'])}")
    return screen.result(done, *lines)


def _show(args: Namespace, screen: Screen) -> int:
    tool = _ask(args, "GET", "/v1/tools/one", {"tool": args.tool})
    if screen.as_json:
        return screen.result(tool)
    screen.table([(name, plain(_text(value))) for name, value in _facts(tool)])
    if rows := _parameters(tool.get("inputSchema") or {}):
        screen.line("\nparameters")
        screen.table(rows, indent="  ")
    if tool["documentation"]:
        screen.line()
        for line in tool["documentation"].splitlines():
            screen.line(plain(line))
    return 0


def _facts(tool: dict[str, Any]) -> list[tuple[str, Any]]:
    state = f"{tool['state']}: {tool['reason']}" if tool["reason"] else tool["state"]
    state = AVAILABLE if tool["state"] == "available" else state
    names = {"tool": "tool", "about": "summary", "app": "app", "source": "source"}
    rows = [(name, tool[key]) for name, key in names.items()]
    depends = [("dependsOn", tool["dependsOn"])] if tool["dependsOn"] else []
    return [*rows, ("state", state), *tool["policy"].items(), *depends]


def _parameters(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the arguments as (name, type, description); a star marks a required one. The schema
    is not under our control, so nothing about it is assumed.
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    needed = required if isinstance(required, list) else []
    return [
        (name + "*" * (name in needed), *_describe(value)) for name, value in properties.items()
    ]


def _describe(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "anything", ""
    kind = _text(value.get("enum") or value.get("const") or value.get("type") or "anything")
    default = f" (default {json_text(value['default'])})" if "default" in value else ""
    return kind, f"{value.get('description', '')}{default}".strip()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _usage(args: Namespace, screen: Screen) -> int:
    document = _ask(args, "GET", "/v1/tools/usage")
    if screen.as_json or not document["tools"]:
        return screen.result(document, "No tool has been called yet.")
    screen.table([_row(used) for used in document["tools"]])
    return 0


def _row(used: dict[str, Any]) -> tuple[str, ...]:
    failed = f"{used['failed']} failed" if used["failed"] else ""
    calls = f"{used['calls']} call{'s' * (used['calls'] != 1)}"
    last = time.strftime("last %Y-%m-%d %H:%M", time.localtime(used["last_wall"]))
    return used["tool"], calls, failed, last
