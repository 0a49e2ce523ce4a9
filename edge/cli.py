"""The command line `glassd VERB …`: parsing, exit codes and error output.

Each verb is a function of its name in a module of `edge/commands/`, imported only when it is used.
"""

import argparse
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn, TextIO, cast

from edge import __version__
from edge.commands.options import VERBS, add_parser, as_json
from edge.commands.shared.console import Screen, columns
from edge.runtime.errors import UserError

DONE, FAILED, USAGE, NOT_RUNNING, NOTHING, TIMED_OUT = range(6)
"""Exit codes; `glassd --help` lists them."""
INTERRUPTED: Final = 130

_EPILOG: Final = """\
exit codes: 0 done · 1 failed · 2 wrong usage or configuration · 3 the daemon is not running · 4 nothing found · 5 timed out
            (a list with nothing in it is 0; 4 is for what was named and does not exist, and a scan that hears no glasses)
first steps: glassd demo (nothing needed) · glassd run (the daemon) · glassd status (the state, and what to do next)
something is wrong: glassd doctor (finds the cause, and shows the exact fix)"""  # noqa: E501


class _Formatter(argparse.HelpFormatter):
    """Of the terminal's width, which is found without shutil: each argument makes one."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns(80) - 2)


class _RawFormatter(_Formatter, argparse.RawDescriptionHelpFormatter):
    """Leaves the lines of descriptions as they are."""


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of exiting, suggests the nearest choice, and
    accepts options anywhere after their verb.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Formatter, **settings})

    def error(self, message: str) -> NoReturn:
        raise UserError("USAGE", message, _nearest(message) or f"see: {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, after moving the options of a verb together.

        argparse stops at an option between two words that go to one positional argument; its
        `parse_intermixed_args` cannot be used for verbs, and differs between the Python versions we
        support.
        """
        has_actions = any(action.nargs == argparse.PARSER for action in self._actions)
        return super().parse_known_args(
            args if args is None or has_actions else self._options_last(list(args)), namespace
        )

    def _options_last(self, words: list[str]) -> list[str]:
        """Return the words, then the options with their values; with `--` the options come first,
        so that they stay on its left.
        """
        end = words.index("--") if "--" in words else len(words)
        places, options, at = [], [], 0
        while at < end:
            word, taken = words[at], 1
            if self._parse_optional(word) is None:
                places.append(word)
            else:
                option = self._option_string_actions.get(word)
                if (
                    option is not None
                    and option.nargs in {None, argparse.OPTIONAL}
                    and at + 1 < end
                    and self._parse_optional(words[at + 1]) is None
                ):
                    taken = 2
                options += words[at : at + taken]
            at += taken
        return (
            [*places, *options]
            if end == len(words)
            else [*options, "--", *places, *words[end + 1 :]]
        )

    def format_help(self) -> str:
        """Add the part of the help that a verb's own code provides; it is imported only for that
        verb's help.
        """
        words = self.get_default("words")
        if words is not None:
            self.epilog = words()
        return super().format_help()


def _nearest(message: str) -> str:
    """Return a suggestion for a message of argparse: invalid choice: 'statsu' (choose from
    'status', …).
    """
    import re

    from tools_cache.nearest import did_you_mean

    found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
    choices = [c.strip("' ") for c in found[2].split(",")] if found else []
    return did_you_mean(found[1], choices) if found else ""


_NO_VERB: Final = frozenset({"", "-h", "--help", "--version"})
"""First words after which no verb is looked at."""
MODULES: Final = {
    **dict.fromkeys(("say", "answer"), "call"),
    "cancel": "calls",
    "grants": "confirm",
    **dict.fromkeys(("scan", "pair", "unpair"), "pairing"),
    "metrics": "status",
    **dict.fromkeys(("demo", "sim", "devcloud"), "sandbox"),
}
"""Verb → the module of `edge/commands/` that has it; the others have modules of their own name."""


class _NameOnly:
    """In the place of a verb's parser, where only its name and its line of help are used."""

    def __init__(self, **_: object) -> None: ...


def build_parser(only: str = "", *, names: bool = False) -> argparse.ArgumentParser:
    """Build the parser of every verb, or of one verb only: the daemon keeps its parser in memory
    for as long as it runs. `names`: of every verb no more than its name and its line of help.
    """
    parser = _Parser(
        prog="glassd",
        description="A companion daemon for smart glasses.",
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=_RawFormatter,
    )
    parser.add_argument("--version", action="version", version=f"glassd {__version__}")
    of_verbs: Any = _NameOnly if names else _Parser
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=of_verbs)
    for name, text, add in VERBS:
        if only and name != only:
            continue
        verb = add_parser(verbs, name, text)
        if names:
            continue
        add(verb)
        if not any(a.dest == "action" for a in verb._actions):  # noqa: SLF001 - argparse has no public way to list them
            as_json(verb)
    return parser


# ------------------------------------------------------------------ running one verb


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; no error that an operator can cause ends in a
    traceback.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see edge/__main__.py
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_missing_streams()
        with _StandardOutput.watched() as out:
            return _run(words, out)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: list[str], out: "_StandardOutput") -> int:
    screen = Screen(cast("TextIO", out), sys.stderr, os.environ, as_json="--json" in words)
    try:
        code = _run_reporting_errors(words, screen)
        out.flush()
    except (OSError, ExceptionGroup):
        if out.problem is None:
            raise
        code = FAILED
    if out.problem is None:
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # keeps the interpreter quiet at exit
    if isinstance(out.problem, BrokenPipeError):  # the reader has seen enough
        return DONE
    with contextlib.suppress(OSError):
        sys.stderr.write(
            f"error: standard output cannot be written: {out.problem.strerror or out.problem}\n"
        )
    return FAILED


class _StandardOutput:
    """Standard output that remembers why it could not be written, even if the error is caught."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.problem: OSError | None = None

    @classmethod
    @contextlib.contextmanager
    def watched(cls) -> "Iterator[_StandardOutput]":
        """Replace `sys.stdout` by one of these for a while."""
        before = sys.stdout
        sys.stdout = out = cls(before)
        try:
            yield out
        finally:
            sys.stdout = before

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except OSError as e:
            self.problem = e
            raise

    def flush(self) -> None:
        try:
            self._out.flush()
        except OSError as e:
            self.problem = e
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def _open_missing_streams() -> None:
    """Open the standard streams that the caller closed (`>&-`): Python has None there, and the next
    file that is opened would get the stream's number. Reading returns nothing, errors are
    discarded; writing to standard output fails, so that a verb's answer is never lost silently.
    """
    for number, (name, mode, flags) in enumerate(
        (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    ):
        if getattr(sys, name) is None:
            found = os.open(os.devnull, flags)
            if found != number:
                os.dup2(found, number)
                os.close(found)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - open as long as we run


def _run_reporting_errors(words: list[str], screen: Screen) -> int:
    try:
        return _dispatch(words, screen)
    except UserError as e:
        screen.error(e)
        return e.exit_code


def _dispatch(words: list[str], screen: Screen) -> int:
    first = words[0] if words else ""
    only = next((name for name, _, _ in VERBS if name == first), "")
    parser = build_parser(only, names=first in _NO_VERB)
    if not words:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        args = parser.parse_args(words)
    except SystemExit as e:  # --help and --version
        return int(e.code or 0)
    args.build_parser = build_parser
    module = import_module(f"edge.commands.{MODULES.get(args.verb, args.verb)}")
    return int(getattr(module, args.verb)(args, screen))


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        gc.freeze()  # as in edge/__main__.py
