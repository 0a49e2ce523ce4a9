"""`glassd doctor`: checks this machine and prints every result, with its fix."""

import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.extras import load
from edge.commands.shared.run_loop import run_until_signal
from edge.runtime.errors import UserError

_COLOUR: Final = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "dim"}


def doctor(args: Namespace, screen: Screen) -> int:
    env = os.environ
    named = args.config or args.socket or env.get("GLASSD_CONFIG") or env.get("GLASSD_SOCKET")
    return run_until_signal(lambda: _examine(args, screen, named=bool(named)))


async def _examine(args: Namespace, screen: Screen, *, named: bool) -> int:
    examine = load("edge.doctor.examination", "doctor")
    report = load("edge.doctor.report", "doctor")
    sockets = (Path(args.socket),) if args.socket else ()
    machine = load("edge.doctor.this_machine", "doctor").this_machine(dict(os.environ), sockets)
    began, entries = time.monotonic(), []
    lines = _OutputLines(screen, report.lines)
    config = Path(args.config) if args.config else None
    async with examine.examining(machine, config=config, named=named) as (examined, results):
        async for entry in results:
            if not screen.as_json:
                lines.show(entry)
            entries.append(entry)
        lines.flush()
        document = report.document(entries, machine.version)
        if args.bundle:
            document["bundle"] = await _bundle(Path(args.bundle), examined, document)
    action, written = plain(document["next_action"]), plain(document.get("bundle", ""))
    screen.result(
        document,
        f"\n{report.summary(entries, time.monotonic() - began)}",
        *([f"Next: {action}"] if action else []),
        *([f"Bundle: {written} (without secrets; read it before you send it)"] if written else []),
    )
    return 0 if document["ok"] else 1


class _OutputLines:
    """Prints entries as they come; checks not reached for the same reason share a line."""

    def __init__(self, screen: Screen, lines: Any) -> None:
        self._screen = screen
        self._lines = lines
        self._layer = ""
        self._waiting: list[Any] = []

    def show(self, entry: Any) -> None:
        if entry.check.layer != self._layer:
            self.flush()
            gap = "\n" if self._layer else ""
            self._screen.line(self._screen.paint(f"{gap}{entry.check.layer}", "bold"))
            self._layer = entry.check.layer
        if entry.finding.said.startswith("not reached"):
            self._waiting.append(entry)
            return
        self.flush()
        self._print(f"{entry.number:>2}", entry, *self._lines(entry))

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            first, *others = waiting
            number, titles = f"{first.number:>2}", ""
            if others:
                number = f"{first.number}-{others[-1].number}"
                titles = f", for {', '.join(e.check.title for e in others)} too"
            self._print(number, first, first.finding.said + titles)
        self._screen.flush()

    def _print(self, number: str, entry: Any, first: str, *more: str) -> None:
        mark = entry.finding.mark.value
        painted = self._screen.paint(f"{mark:<4}", _COLOUR[mark])
        self._screen.line(f"{number:>5}  {painted}  {entry.check.title:<17} {plain(first)}")
        for line in more:
            self._screen.line(f"{' ' * 13}{plain(line)}")


async def _bundle(path: Path, examined: Any, document: dict[str, Any]) -> str:
    bundle = load("edge.doctor.bundle", "doctor")
    try:
        await bundle.write(path, examined, document)
    except OSError as e:
        fix = "choose a directory with free space that you may write to: --bundle FILE"
        problem = f"{path}: the bundle cannot be written: {e.strerror}"
        raise UserError("CANNOT_WRITE", problem, fix) from None
    return str(path)
