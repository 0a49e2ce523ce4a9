"""glassd(1), made from the very tree of verbs that parses the command line; `python3 man.py` prints
it.

Made when it is installed, not kept: two people adding verbs should not meet in a generated file.
No verb is named here.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

_FILES: Final = (
    ("/etc/glassd/glassd.toml", "the settings; explains every key, none is required"),
    ("/var/lib/glassd", "what must survive a restart"),
    ("/run/glassd/control.sock", "the control socket, for members of the group glassd"),
    (
        "/etc/credstore/glassd-*",
        (
            "secrets, each optional: glassd-mqtt-password, "
            "glassd-cloud-token and others named in the settings file"
        ),
    ),
    ("PREFIX/share/doc/glassd", "the README and the guides"),
    ("PREFIX/share/glassd/radio", "drop-ins for radios that need more than BlueZ"),
)
_ENVIRONMENT: Final = (
    ("GLASSD_CONFIG", "the settings file, instead of the usual places"),
    ("GLASSD_SOCKET", "the control socket, for the verbs"),
    ("GLASSD_SECTION__KEY", "any setting: GLASSD_UPLINK__HOST=broker.local"),
)
_EXIT: Final = (
    ("0", "done"),
    ("1", "the operation failed"),
    ("2", "wrong usage or configuration"),
    ("3", "the daemon is not running"),
    ("4", "nothing found"),
    ("5", "timed out"),
)


def page(parser: argparse.ArgumentParser) -> str:
    """Give the page as man(7) source; the same tree gives the same bytes."""
    from edge import __version__  # noqa: PLC0415 - the checkout comes onto the path first

    return "\n".join(
        (
            f'.TH GLASSD 1 "" "glassd {__version__}" "User Commands"',
            ".SH NAME",
            "glassd \\- companion daemon for smart glasses",
            ".SH SYNOPSIS",
            ".B glassd",
            ".I VERB",
            "[options]",
            ".SH DESCRIPTION",
            _DESCRIPTION,
            ".SH VERBS",
            *_verbs(parser),
            ".SH EXIT STATUS",
            *_terms(_EXIT),
            ".SH FILES",
            *_terms(_FILES),
            ".SH ENVIRONMENT",
            *_terms(_ENVIRONMENT),
            ".SH EXAMPLES",
            *_EXAMPLES,
            ".SH SEE ALSO",
            ".BR systemctl (1),",
            ".BR journalctl (1),",
            ".BR bluetoothctl (1)",
            "",
        )
    )


_DESCRIPTION: Final = """\
glassd runs without a screen, finds your smart glasses over Bluetooth LE, learns what they can do, and runs tool calls:
on this machine, in the cloud over MQTT, or on the glasses. It starts without any
configuration;
.B glassd status
says what to do next.
.PP
Every verb takes
.B \\-\\-json
(one JSON document on standard output, nothing else)."""  # noqa: E501
_EXAMPLES: Final = (
    ".TP",
    ".B systemctl enable \\-\\-now glassd && glassd status",
    "start the service, and see what it needs",
    ".TP",
    ".B glassd call com.example.calc:evaluate expression=2^10",
    "call a tool and see how the answer reached the wearer",
    ".TP",
    ".B glassd demo",
    "everything on this machine, with simulated glasses",
)


def _verbs(parser: argparse.ArgumentParser) -> Iterator[str]:
    tree = _subparsers(parser)
    texts = {choice.dest: choice.help or "" for choice in tree._choices_actions}  # noqa: SLF001 - argparse has no public way
    for name, verb in tree.choices.items():
        yield from _verb(f"glassd {name}", texts.get(name, ""), verb)


def _verb(path: str, text: str, verb: argparse.ArgumentParser) -> Iterator[str]:
    """Write one verb; a verb with actions gets a part for each action."""
    inner = _subparsers(verb)
    if inner is not None:
        texts = {choice.dest: choice.help or "" for choice in inner._choices_actions}  # noqa: SLF001 - same
        for name, action in inner.choices.items():
            yield from _verb(f"{path} {name}", texts.get(name, text), action)
        return
    usage = " ".join(_operand(a) for a in _actions(verb) if not a.option_strings)
    yield f'.SS "{_plain(path)}{" " + _plain(usage) if usage else ""}"'
    yield f"{_plain(text[:1].upper() + text[1:])}."
    for action in _actions(verb):
        yield from _option(action)


def _option(action: argparse.Action) -> Iterator[str]:
    if action.option_strings:
        value = f" \\fI{_plain(_value(action))}\\fR" if action.nargs != 0 else ""
        term = ", ".join(f"\\fB{_plain(name)}\\fR{value}" for name in action.option_strings)
    else:
        term = f"\\fI{_plain(_operand(action))}\\fR"
    yield ".TP"
    yield term
    yield _plain((action.help or "") % {"default": action.default, "prog": "glassd"})


def _value(action: argparse.Action) -> str:
    if action.metavar is None and action.choices:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _operand(action: argparse.Action) -> str:
    name = _value(action)
    return (
        f"[{name}]"
        if action.nargs == "?"
        else f"[{name} ...]"
        if action.nargs == "*"
        else f"{name} ..."
        if action.nargs == "+"
        else name
    )


def _actions(verb: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden = (argparse._HelpAction, argparse._SubParsersAction)  # noqa: SLF001 - same
    return [a for a in verb._actions if not isinstance(a, hidden) and a.help != argparse.SUPPRESS]  # noqa: SLF001 - same


def _subparsers(parser: argparse.ArgumentParser) -> Any:
    return next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)  # noqa: SLF001 - same


def _terms(pairs: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for term, text in pairs:
        yield from (".TP", f"\\fB{_plain(term)}\\fR", _plain(text))


def _plain(text: str) -> str:
    """Text as text: no escapes, no requests, hyphens that can be copied into a shell."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", " ".join(text.split()))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from edge.cli import build_parser

    sys.stdout.write(page(build_parser()))
