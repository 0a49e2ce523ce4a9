"""Every verb of `glassd` with its options; shell completion and the manual page are generated
from them too.

Imports nothing heavy: `glassd --help` loads all of this.
"""

import argparse
from collections.abc import Callable
from typing import Final

Add = Callable[[argparse.ArgumentParser], None]


def as_json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--json", action="store_true", help="machine-readable output on stdout, nothing else"
    )


def _socket(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--socket",
        metavar="PATH",
        help=(
            "the daemon's control socket (default: where it usually is); "
            "the owner's socket is looked for beside it"
        ),
    )


def _run(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--config", metavar="FILE", help="the configuration file")


def _demo(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--glasses",
        metavar="MODEL",
        choices=MOCKS,
        help="mock:display, mock:audio, mock:full (default) or sim:even_g1",
    )
    verb.add_argument(
        "--script", metavar="FILE", help="play the steps of this file instead of asking you"
    )
    verb.add_argument("--seconds", metavar="N", type=_seconds, help="end after this long")
    verb.add_argument(
        "--keep",
        action="store_true",
        help="keep its folder (logs, lens.png, sound) at the end",
    )


def _tools(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "act",
        metavar="ACT",
        nargs="?",
        choices=("show", "enable", "disable", "usage"),
        help=(
            "show TOOL (its details and documentation), enable TOOL, disable TOOL, "
            "usage (how often each was called); without it: list the tools"
        ),
    )
    verb.add_argument("tool", metavar="TOOL", nargs="?", help="package:tool")
    verb.add_argument(
        "--all", action="store_true", help="also list hidden tools, and why they are hidden"
    )
    verb.add_argument("--category", metavar="C", help="only this category")
    verb.add_argument(
        "--mode", choices=("text", "voice"), help="only what a caller of this mode is offered"
    )


def _servers(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "act",
        metavar="ACT",
        nargs="?",
        choices=("refresh", "authorize"),
        help=(
            "refresh ID (list its tools again), authorize ID (show where to sign in), "
            "authorize ID CODE (finish signing in); without it: list the servers"
        ),
    )
    verb.add_argument(
        "server",
        metavar="ID",
        nargs="?",
        help="the server's id, or the code of its sign-in on the lens",
    )
    verb.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="the code, or the whole address the browser was sent to",
    )


def _call(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("tool", metavar="TOOL", help="package:tool")
    verb.add_argument(
        "args",
        metavar="ARGS",
        nargs="*",
        default=[],
        help=(
            "a JSON object, or key=value pairs (a value that is JSON is "
            "taken as such), or - for JSON on stdin"
        ),
    )
    verb.add_argument(
        "--mode",
        choices=("text", "voice"),
        help="how the caller talks with glassd (default: the session's mode, else text)",
    )
    verb.add_argument(
        "--wait",
        choices=("answer", "delivery"),
        default="answer",
        help="wait for the answer (default), or until its delivery is complete",
    )
    verb.add_argument(
        "--no-wait",
        action="store_true",
        help="print the call's id once the call is stored; show it later: glassd calls ID",
    )
    verb.add_argument(
        "--confirm",
        metavar="TOKEN",
        help="the token of a confirmation request; only for the call that got it",
    )
    verb.add_argument("--key", metavar="KEY", help="idempotency key: the same key never runs twice")
    verb.add_argument(
        "--session", metavar="S", help="the session it belongs to; a session keeps its mode"
    )
    verb.add_argument(
        "--turn", metavar="T", help="the turn it belongs to; a voice turn has a budget"
    )
    verb.add_argument(
        "--provider-id",
        metavar="ID",
        help="the id a model's provider gave this call; one under 9 characters is no key",
    )
    verb.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=_seconds,
        default=40.0,
        help="how long the call may live (default 40)",
    )


def _confirm(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "token",
        metavar="TOKEN",
        nargs="?",
        help=(
            "the token of a confirmation request; without it, every call that waits "
            "is shown, and you type the answer"
        ),
    )
    verb.add_argument("--deny", action="store_true", help="say no")
    lasting = verb.add_mutually_exclusive_group()
    lasting.add_argument(
        "--always", action="store_true", help="yes, and do not ask about this tool again"
    )
    lasting.add_argument(
        "--never", action="store_true", help="no, and refuse this tool from now on without asking"
    )


def _grants(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    change = verb.add_mutually_exclusive_group()
    change.add_argument("--always", metavar="TOOL", help="run this tool without asking")
    change.add_argument("--never", metavar="TOOL", help="refuse this tool without asking")
    change.add_argument("--revoke", metavar="TOOL", help="ask about this tool every time again")


def _cancel(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("id", metavar="ID", help="the call's id")
    verb.add_argument("--reason", metavar="TEXT", help="reason, shown in glassd calls ID")


def _answer(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "id", metavar="ID", help="the pending call's id (see: glassd calls --pending)"
    )
    verb.add_argument(
        "result",
        metavar="RESULT",
        nargs="*",
        default=[],
        help=(
            "JSON, key=value pairs, one word of text, "
            "or - for JSON on stdin; an object with `ok` is taken as a complete response"
        ),
    )
    verb.add_argument("--session", metavar="S", help="the session the call belongs to")


def _say(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("text", metavar="TEXT", nargs="+", help="what the wearer says")


def _calls(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("id", metavar="ID", nargs="?", help="show this call in detail")
    verb.add_argument("--pending", action="store_true", help="only calls without a final answer")
    verb.add_argument("--limit", metavar="N", type=_count, default=20, help="how many (default 20)")


def _lens(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("--png", metavar="FILE", help="draw it into a PNG file")
    verb.add_argument("--watch", action="store_true", help="show it again whenever it changes")


def _events(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "--kind",
        metavar="PREFIX",
        help="only events whose name begins with this: call, link, lens …",
    )
    verb.add_argument("--count", metavar="N", type=_count, help="end after this many")
    verb.add_argument(
        "--after", metavar="ID", help="start after this event id, if it is still kept"
    )


def _doctor(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "--config",
        metavar="FILE",
        help="examine the daemon of this configuration (default: the service's)",
    )
    verb.add_argument(
        "--bundle",
        metavar="FILE",
        help="also write everything into a tar.gz on this machine, without secrets",
    )


def _scan(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "--seconds", metavar="N", type=_seconds, default=8.0, help="how long to listen (default 8)"
    )


def _six_digits(text: str) -> str:
    digits = text.replace(" ", "")
    if len(digits) != 6 or not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a code; a code has six digits, for example 012345"
        )
    return digits


def _code(verb: argparse.ArgumentParser) -> None:
    text = "the code or number that the glasses show, instead of being asked for it"
    verb.add_argument("--code", metavar="DIGITS", type=_six_digits, help=text)


def _pair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        help="these glasses (see: glassd scan); not needed if only one pair is near",
    )
    _code(verb)
    verb.add_argument(
        "--seconds",
        metavar="N",
        type=_seconds,
        default=120.0,
        help="how long the pairing window stays open (default and maximum 120)",
    )
    verb.add_argument(
        "--cancel", action="store_true", help="close a pairing window that another client opened"
    )


def _unpair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        help="these glasses; not needed if only one pair is paired",
    )


def _up(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "enrol",
        metavar="CODE",
        nargs="?",
        help="a cloud's enrolment code (GLASSD1-…), or - to read it from stdin, hidden from others",
    )
    verb.add_argument("--no-glasses", action="store_true", help="enrol only")
    verb.add_argument("--address", metavar="ADDRESS", help="these glasses, instead of asking which")
    _code(verb)
    verb.add_argument(
        "--yes", action="store_true", help="take the nearest of several glasses without asking"
    )


def _sim(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "model", metavar="MODEL", help="mock:display, mock:audio, mock:full or sim:even_g1"
    )
    verb.add_argument(
        "--radio",
        metavar="R",
        default="tcp:127.0.0.1:6402",
        help="tcp:HOST:PORT (default tcp:127.0.0.1:6402), usb:N or vhci",
    )
    verb.add_argument(
        "--control",
        metavar="PATH",
        help="unix socket (or tcp:HOST:PORT) on which tests control the wearer",
    )
    verb.add_argument(
        "--out",
        metavar="DIR",
        help="where lens images and sound are written (default: a temporary directory)",
    )
    verb.add_argument(
        "--script",
        metavar="FILE",
        help="what the wearer does, one step per line; faults are steps too",
    )
    verb.add_argument(
        "--mtu", metavar="BYTES", type=_count, help="the ATT MTU offered (default 247; a G1 251)"
    )
    verb.add_argument(
        "--fault",
        metavar="FAULT",
        action="append",
        default=[],
        help="a fault to inject, at once or @SECONDS; repeatable",
    )
    verb.add_argument(
        "--quirk",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="choose a firmware variant; repeatable",
    )
    verb.add_argument(
        "--pairing",
        metavar="HOW",
        choices=("none", "just_works", "passkey", "compare"),
        help=(
            "pairing mode: none, just_works, passkey or compare; with a mode set, unpaired "
            "centrals cannot write (default: the model's own mode, in which unpaired "
            "centrals may write until one has paired)"
        ),
    )
    verb.set_defaults(words=_sim_words, offered=MOCKS)
    verb.formatter_class = argparse.RawDescriptionHelpFormatter


def _sim_words() -> str:
    """Return the help for the values of --fault and --quirk, as the simulator lists them."""
    from firmware_bridge.sim.even_g1.quirks import QUIRKS
    from firmware_bridge.sim.faults import usage

    faults = "\n".join(f"  {form:<24} {does}" for form, does in usage())
    quirks = "\n".join(f"  {name}={'|'.join(values)}" for name, values in QUIRKS.items())
    return (
        "faults (written the same way in scripts and on the control channel; "
        f"SIDE is left or right; @3s waits):\n{faults}\n"
        "quirks of sim:even_g1 (where its known hosts disagree; "
        f"the first value is the default):\n{quirks}"
    )


def _devcloud(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--http",
        metavar="HOST:PORT",
        default="127.0.0.1:8787",
        help="where the registry is served (default 127.0.0.1:8787)",
    )
    verb.add_argument(
        "--broker",
        default="embedded",
        help="embedded (default), mosquitto, or HOST:PORT of a running broker",
    )
    verb.add_argument(
        "--tenant", default="default", help="topic level of the tenant (default: default)"
    )
    verb.add_argument("--pool", default="tools", help="worker pool (default: tools)")
    verb.add_argument(
        "--state",
        metavar="DIR",
        help="where its state is stored (default: a temporary directory)",
    )
    verb.add_argument(
        "--worker",
        action="store_true",
        help="run one more worker for a cloud with the same --state and --broker HOST:PORT",
    )
    verb.add_argument(
        "--legacy",
        action="store_true",
        help="also serve the older endpoints that the current tool API replaced",
    )
    verb.add_argument(
        "--tls",
        metavar="NAME",
        nargs="?",
        const="localhost",
        help=(
            "serve with TLS, its own certificates and enrolment codes, for daemons that "
            "reach this machine by NAME (default localhost); needs Mosquitto"
        ),
    )


def _llm(verb: argparse.ArgumentParser) -> None:
    acts = verb.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(verb)
    )
    for name, text in (
        ("tools", "the active tools, in the form of the `tools` of a request to this provider"),
        ("answer", "run the calls a model asks for; print what to append to the conversation"),
    ):
        act = acts.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        _socket(act)
        act.add_argument(
            "provider", metavar="PROVIDER", choices=PROVIDERS, help=", ".join(PROVIDERS)
        )
        as_json(act)
        if name == "answer":
            act.add_argument(
                "file",
                metavar="FILE",
                nargs="?",
                default="-",
                help="what the provider's API answered, as JSON (default: standard input)",
            )
            act.add_argument(
                "--mode", choices=("text", "voice"), help="how the model talks with the wearer"
            )
            act.add_argument(
                "--session",
                metavar="S",
                help="the session the calls belong to; a session keeps its mode",
            )
            act.add_argument(
                "--turn",
                metavar="T",
                help="the turn they belong to: a turn sent again after an error repeats no action",
            )
            act.add_argument(
                "--ttl",
                metavar="SECONDS",
                type=_seconds,
                default=40.0,
                help="how long each call may live (default 40)",
            )


def _mcp(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "--demo",
        action="store_true",
        help="start mock glasses and a daemon connected to them, for as long as it runs",
    )
    verb.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve streamable HTTP instead of stdio (or: systemd, to use the socket it passes)",
    )
    verb.add_argument(
        "--token-file",
        metavar="FILE",
        help=(
            "clients must send this bearer token (default: "
            "the systemd credential glassd-mcp-token, if there is one)"
        ),
    )
    verb.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="another host name or address that clients may use; repeatable",
    )
    verb.add_argument(
        "--confirm-in-client",
        action="store_true",
        help=(
            "let the client's user confirm calls. Only for a program that shows its user "
            "every question, since it is the client that sends the answer"
        ),
    )
    verb.add_argument(
        "--rate",
        metavar="N",
        type=_rate,
        default=600,
        help="calls per minute; up to a fifth of them at once (default 600)",
    )


def _registry(verb: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(verb)
    )
    for name, text in (
        ("build", "compile the tools into tool_registry.json"),
        ("check", "verify that tool_registry.json matches the tools"),
        ("show", "print the built tools"),
        ("sync", "have the daemon fetch the cloud's registry now"),
    ):
        action = actions.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        if name == "sync":
            _socket(action)
            as_json(action)
            continue
        action.add_argument(
            "--file",
            metavar="FILE",
            help=(
                "the registry (default: the one of this installation; "
                "with --tools, tool_registry.json in DIR)"
            ),
        )
        action.add_argument(
            "--tools",
            metavar="DIR",
            help="the folder of tool folders (default: those of this installation)",
        )
        as_json(action)
        if name == "build":
            action.add_argument(
                "--losses",
                action="store_true",
                help="list everything that a provider's form leaves out",
            )
        if name == "show":
            action.add_argument(
                "tool", metavar="TOOL", nargs="?", help="one tool, with its documentation"
            )
            action.add_argument(
                "--provider",
                choices=FORMS,
                help="print the tool in the form of this provider",
            )
            action.add_argument(
                "--prompt",
                choices=("text", "voice"),
                help="print the prompt text for all tools that may be called in this mode",
            )


def _completion(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help="print the completion script of this shell"
    )


FORMS: Final = ("mcp", "openai", "openaiStrict", "anthropic", "gemini", "geminiNative")
PROVIDERS: Final = (
    "openai",
    "openai-strict",
    "openai-responses",
    "openai-responses-strict",
    "anthropic",
    "gemini",
)
MOCKS: Final = ("mock:display", "mock:audio", "mock:full", "sim:even_g1")
VERBS: Final[tuple[tuple[str, str, Add], ...]] = (
    ("run", "the daemon, in the foreground", _run),
    ("up", "find your glasses, pair, connect and save them, step by step", _up),
    ("demo", "everything on this machine, with nothing to configure", _demo),
    ("status", "one state per layer, and the one thing to do next", _socket),
    ("tools", "the active tools", _tools),
    ("servers", "the other MCP servers whose tools can be called", _servers),
    ("call", "call a tool, and show how the answer reached the wearer", _call),
    ("confirm", "say yes or no to a call that waits for confirmation", _confirm),
    ("grants", "the tools that are always allowed or never allowed", _grants),
    ("cancel", "cancel a call", _cancel),
    ("answer", "submit the result of a pending call", _answer),
    ("say", "submit text as if the wearer had said it", _say),
    ("calls", "recent and pending calls", _calls),
    ("lens", "what the lens shows now", _lens),
    ("events", "follow events, one JSON object per line", _events),
    ("scan", "the glasses that are near", _scan),
    ("pair", "pair with glasses; pair again when a bond was lost", _pair),
    ("unpair", "forget paired glasses", _unpair),
    ("metrics", "counters and latencies per tool, as OpenMetrics text", _socket),
    ("doctor", "check this machine: numbered checks, each with the exact fix", _doctor),
    ("sim", "mock glasses on a virtual radio", _sim),
    ("devcloud", "the reference cloud alone", _devcloud),
    ("mcp", "the tools as an MCP server, for any agent", _mcp),
    (
        "registry",
        "build, verify and print the tools of this installation; fetch the cloud's tools",
        _registry,
    ),
    ("llm", "tool formats of model providers: list tools, run the calls a model asks for", _llm),
    ("completion", "shell completion", _completion),
)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 86400 seconds")
    return value


def _rate(text: str) -> int:
    value = int(text) if text.isdecimal() and len(text) < 7 else 0
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 100000")
    return value


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 1000")
    return value
