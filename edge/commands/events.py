"""`glassd events`: follow the bus, one JSON object a line."""

import json
from argparse import Namespace

from edge.commands.shared.console import Screen
from edge.commands.shared.daemon_client import follow


def run(args: Namespace, screen: Screen) -> int:
    left = args.count
    for event_id, name, data in follow(args, args.after):
        document = json.loads(data)
        if name == "missed":
            screen.json(document, lines=True)
            continue
        if args.kind and not str(document.get("event", "")).startswith(args.kind):
            continue
        screen.json({**document, "id": event_id}, lines=True)
        if left is not None:
            left -= 1
            if not left:
                break
    return 0
