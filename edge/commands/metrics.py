"""`glassd metrics`: counters and latencies per tool, as OpenMetrics text."""

from argparse import Namespace

from edge.commands.shared.console import Screen
from edge.commands.shared.daemon_client import fetch


def run(args: Namespace, screen: Screen) -> int:
    text = fetch(args, "/v1/metrics")
    if screen.as_json:
        screen.json({"format": "openmetrics", "text": text})
    else:
        for line in text.splitlines():
            screen.line(line)
    return 0
