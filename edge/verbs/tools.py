"""`glassd tools`: what can be called now; with `--all` also what cannot, and why."""

from argparse import Namespace
from urllib.parse import urlencode

from edge.verbs.screen import Screen, plain
from edge.verbs.talk import ask


def run(args: Namespace, screen: Screen) -> int:
    query = {"all": "1" if args.all else "0", **({"category": args.category} if args.category else {})}
    document = ask(args, "GET", f"/v1/tools?{urlencode(query)}")
    tools = document["tools"]
    if screen.as_json:
        screen.json(document)
    elif not tools:
        screen.line("No tools" + (f" of category {plain(args.category)}" if args.category else "") + ". See also: glassd tools --all")
    else:
        screen.table([(t["name"], t["category"], t["source"], _about(t)) for t in tools])
    return 0 if tools else 4


def _about(tool: dict[str, str]) -> str:
    first = tool["description"].split(". ")[0].strip()
    return f"hidden: {tool['hidden']}" if tool.get("hidden") else first
