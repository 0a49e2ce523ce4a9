"""`glassd doctor`: checks this machine and prints every result, with its fix."""

import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, plain
from edge.commands.shared.extras import load
from edge.commands.shared.run_loop import run_until_told

_COLOUR: Final = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "dim"}


def run(args: Namespace, screen: Screen) -> int:
    named = bool(
        args.config
        or args.socket
        or os.environ.get("GLASSD_CONFIG")
        or os.environ.get("GLASSD_SOCKET")
    )
    return run_until_told(lambda: _examine(args, screen, named=named))


async def _examine(args: Namespace, screen: Screen, *, named: bool) -> int:
    examine, report = (
        load("edge.doctor.examination", "doctor"),
        load("edge.doctor.report", "doctor"),
    )
    machine = load("edge.doctor.this_machine", "doctor").this_machine(
        dict(os.environ), (Path(args.socket),) if args.socket else ()
    )
    began, entries = time.monotonic(), []
    told = _OutputLines(screen, report.lines)
    config = Path(args.config) if args.config else None
    async with examine.examining(machine, config=config, named=named) as (patient, coming):
        async for entry in coming:
            if not screen.as_json:
                told.show(entry)
            entries.append(entry)
        told.flush()
        document = report.document(entries, machine.version)
        if args.bundle:
            document["bundle"] = await _bundle(Path(args.bundle), patient, document)
    _close(screen, report, document, entries, time.monotonic() - began)
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
            self._screen.line(
                self._screen.paint(f"{chr(10) if self._layer else ''}{entry.check.layer}", "bold")
            )
            self._layer = entry.check.layer
        if entry.finding.said.startswith("not reached"):
            self._waiting.append(entry)
            return
        self.flush()
        self._print(f"{entry.number:>2}", entry, *self._lines(entry))

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            first, last = waiting[0], waiting[-1]
            titles = (
                ""
                if first is last
                else f", for {', '.join(e.check.title for e in waiting[1:])} too"
            )
            number = f"{first.number:>2}" if first is last else f"{first.number}-{last.number}"
            self._print(number, first, first.finding.said + titles)
        self._screen.flush()

    def _print(self, number: str, entry: Any, first: str, *more: str) -> None:
        mark = entry.finding.mark.value
        painted = self._screen.paint(f"{mark:<4}", _COLOUR[mark])
        self._screen.line(f"{number:>5}  {painted}  {entry.check.title:<17} {plain(first)}")
        for line in more:
            self._screen.line(f"{' ' * 13}{plain(line)}")


def _close(
    screen: Screen, report: Any, document: dict[str, Any], entries: list[Any], seconds: float
) -> None:
    if screen.as_json:
        screen.json(document)
        return
    screen.line(f"\n{report.summary(entries, seconds)}")
    if document["next_action"]:
        screen.line(f"Next: {plain(document['next_action'])}")
    if document.get("bundle"):
        screen.line(
            f"Bundle: {plain(document['bundle'])} (without secrets; read it before you send it)"
        )


async def _bundle(path: Path, patient: Any, document: dict[str, Any]) -> str:
    bundle = load("edge.doctor.bundle", "doctor")
    try:
        await bundle.write(path, patient, document)
    except OSError as e:
        fix = "choose a directory with free space that you may write to: --bundle FILE"
        raise CliError(
            "CANNOT_WRITE", f"{path}: the bundle cannot be written: {e.strerror}", fix
        ) from None
    return str(path)
