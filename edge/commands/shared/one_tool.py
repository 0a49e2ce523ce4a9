"""`glassd tools show|enable|disable TOOL` and `glassd tools usage`: one tool in detail, switched
on or off, and how often each was called.
"""

import time
from argparse import Namespace
from typing import Any
from urllib.parse import urlencode

from edge.commands.shared.console import CliError, Screen, json_text, plain
from edge.commands.shared.daemon_client import ask


def act(args: Namespace, screen: Screen) -> int:
    if args.act == "usage":
        return _usage(args, screen)
    if not args.tool:
        raise CliError(
            "USAGE",
            f"{args.act} which tool?",
            "for example: glassd tools " + args.act + " notes:add",
            exit_code=2,
        )
    return _show(args, screen) if args.act == "show" else _switch(args, screen)


def _switch(args: Namespace, screen: Screen) -> int:
    on = args.act == "enable"
    done = ask(args, "PUT", "/v1/tools", {"tool": args.tool, "enabled": on}, who="owner")
    if screen.as_json:
        screen.json(done)
        return 0
    word = "enabled" if on else "disabled"
    also = [plain(name) for name in done["changed"] if name != done["tool"]]
    screen.line(
        f"{plain(done['tool'])} is {word}" + ("" if args.tool in done["changed"] else " already")
    )
    if also:
        screen.line(f"with what it depends on: {', '.join(also)}")
    for warning in done["warnings"]:
        screen.line(f"{screen.paint('warning:', 'yellow')} {plain(warning)}")
    if on and done["state"] == "hidden":
        screen.line(f"It is still hidden: {plain(done['reason'])}")
    return 0


def _show(args: Namespace, screen: Screen) -> int:
    tool = ask(args, "GET", f"/v1/tools/one?{urlencode({'tool': args.tool})}")
    if screen.as_json:
        screen.json(tool)
        return 0
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
    rows = [
        ("tool", tool["tool"]),
        ("about", tool["summary"]),
        ("app", tool["app"]),
        ("source", tool["source"]),
        ("state", state),
    ]
    return [
        *rows,
        *tool["policy"].items(),
        *([("dependsOn", tool["dependsOn"])] if tool["dependsOn"] else []),
    ]


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
    document = ask(args, "GET", "/v1/tools/usage")
    if screen.as_json:
        screen.json(document)
    elif document["tools"]:
        screen.table([_row(used) for used in document["tools"]])
    else:
        screen.line("No tool has been called yet.")
    return 0


def _row(used: dict[str, Any]) -> tuple[str, ...]:
    failed = f"{used['failed']} failed" if used["failed"] else ""
    calls = f"{used['calls']} call{'s' * (used['calls'] != 1)}"
    return (
        used["tool"],
        calls,
        failed,
        time.strftime("last %Y-%m-%d %H:%M", time.localtime(used["last_wall"])),
    )
