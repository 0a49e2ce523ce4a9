"""The door: `glassd VERB …`. Exit codes, and how an error is told.

Refuses to know what a verb does: each lives in `edge/verbs/` and is imported only when it is the one asked for.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from edge import __version__
from edge.options import VERBS, as_json
from edge.verbs.screen import CliError, Screen

DONE, FAILED, USAGE, NOT_RUNNING, NOTHING, TIMED_OUT = range(6)
"""Exit codes of contract §1."""
INTERRUPTED: Final = 130

_EPILOG: Final = """\
exit codes: 0 done · 1 failed · 2 wrong usage or configuration · 3 the daemon is not running · 4 nothing found · 5 timed out
first steps: glassd demo (nothing needed) · glassd run (the daemon) · glassd status (what is, and what to do next)
something is wrong: glassd doctor (what, and the exact fix)"""


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of exiting, and knows the nearest word."""

    def error(self, message: str) -> NoReturn:
        raise CliError("USAGE", message, _nearest(message) or f"see: {self.prog} --help", exit_code=USAGE)

    def format_help(self) -> str:
        """Tell also the words that only a verb's own code knows; it is loaded for whoever asks for that help alone."""
        words = self.get_default("words")
        if words is not None:
            self.epilog = words()
        return super().format_help()


def _nearest(message: str) -> str:
    """Find the nearest choice in argparse's own words: invalid choice: 'statsu' (choose from 'status', …)."""
    import difflib
    import re

    found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    choices = [c.strip("' ") for c in found[2].split(",")] if found else []
    near = difflib.get_close_matches(found[1], choices, n=1) if found else []
    return f"did you mean {near[0]}?" if near else ""


def build_parser() -> argparse.ArgumentParser:
    """Build the whole tree; completion is generated from it."""
    parser = _Parser(
        prog="glassd", description="A companion daemon for smart glasses.", epilog=_EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"glassd {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name, text, add in VERBS:
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        verb.set_defaults(run=f"edge.verbs.{name}")
        add(verb)
        if not any(a.dest == "action" for a in verb._actions):  # noqa: SLF001 - argparse has no public way to list them
            as_json(verb)
    return parser


# ------------------------------------------------------------------ running one verb


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and give its exit code; nothing an operator can cause ends in a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen(sys.stdout, sys.stderr, os.environ, as_json="--json" in words)
    try:
        code = _told(words, screen)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read us has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # keeps the interpreter quiet at exit
        return DONE
    return code


def _told(words: list[str], screen: Screen) -> int:
    try:
        return _dispatch(words, screen)
    except CliError as e:
        screen.error(e)
        return e.exit_code


def _dispatch(words: list[str], screen: Screen) -> int:
    parser = build_parser()
    if not words:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        args = parser.parse_args(words)
    except SystemExit as e:  # --help and --version
        return int(e.code or 0)
    args.parser = parser
    verb: Any = import_module(args.run)
    return int(verb.run(args, screen))


if __name__ == "__main__":
    sys.exit(main())
