"""Every verb of `glassd` and its options, as data for the door; completion and the manual are
generated from it too.

Refuses to know what a verb does. Imports nothing that costs: `glassd --help` loads all of this.
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
    verb.add_argument("--script", metavar="FILE", help="what happens, instead of asking you")
    verb.add_argument("--seconds", metavar="N", type=_seconds, help="end after this long")
    verb.add_argument(
        "--keep",
        action="store_true",
        help="leave its folder (logs, lens.png, sound) there at the end",
    )


def _tools(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "act",
        metavar="ACT",
        nargs="?",
        choices=("show", "enable", "disable", "usage"),
        help=(
            "show TOOL (all that is known of it), enable TOOL, disable TOOL, "
            "usage (how often each was called); without it: list them"
        ),
    )
    verb.add_argument("tool", metavar="TOOL", nargs="?", help="package:tool")
    verb.add_argument(
        "--all", action="store_true", help="also the hidden ones, and why they are hidden"
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
            "refresh ID (look at its tools anew), authorize ID (where to sign in), "
            "authorize ID CODE (finish); without it: list them"
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
        help="how the caller talks with us (default: as the session does, else text)",
    )
    verb.add_argument(
        "--wait",
        choices=("answer", "delivery"),
        default="answer",
        help="until the answer is there, or until it is also told in full",
    )
    verb.add_argument(
        "--no-wait",
        action="store_true",
        help="print the call's id once it is on disk; see it later: glassd calls ID",
    )
    verb.add_argument(
        "--confirm",
        metavar="TOKEN",
        help="the token of a confirmation request, for the very call that got it",
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
            "the token of a confirmation request; without it, "
            "all that waits is shown, and you type the answer"
        ),
    )
    verb.add_argument("--deny", action="store_true", help="say no")
    lasting = verb.add_mutually_exclusive_group()
    lasting.add_argument(
        "--always", action="store_true", help="yes, and do not ask for this tool any more"
    )
    lasting.add_argument(
        "--never", action="store_true", help="no, and refuse this tool from now on"
    )


def _grants(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    change = verb.add_mutually_exclusive_group()
    change.add_argument("--always", metavar="TOOL", help="this tool needs no yes any more")
    change.add_argument("--never", metavar="TOOL", help="this tool is refused from now on")
    change.add_argument("--revoke", metavar="TOOL", help="ask about this tool every time again")


def _cancel(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("id", metavar="ID", help="the call's id")
    verb.add_argument("--reason", metavar="TEXT", help="why, for its story")


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
            "or - for JSON on stdin; an object with ok is a whole envelope"
        ),
    )
    verb.add_argument("--session", metavar="S", help="the session the call belongs to")


def _say(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("text", metavar="TEXT", nargs="+", help="what the wearer says")


def _calls(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("id", metavar="ID", nargs="?", help="tell this call's whole story")
    verb.add_argument("--pending", action="store_true", help="only those without a final answer")
    verb.add_argument("--limit", metavar="N", type=_count, default=20, help="how many (default 20)")


def _lens(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument("--png", metavar="FILE", help="draw it into a PNG file")
    verb.add_argument("--watch", action="store_true", help="again and again, as it changes")


def _events(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "--kind", metavar="PREFIX", help="only events whose name begins so: call, link, lens …"
    )
    verb.add_argument("--count", metavar="N", type=_count, help="end after this many")
    verb.add_argument(
        "--after", metavar="ID", help="begin after this event id, as far as it is remembered"
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
            f"{text!r} is no code; it has six digits, for example 012345"
        )
    return digits


def _code(verb: argparse.ArgumentParser) -> None:
    told = "the code the glasses show, or the number they show too, instead of asking for it"
    verb.add_argument("--code", metavar="DIGITS", type=_six_digits, help=told)


def _pair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        help="these glasses (see: glassd scan); without it the only ones there are",
    )
    _code(verb)
    verb.add_argument(
        "--seconds",
        metavar="N",
        type=_seconds,
        default=120.0,
        help="how long the pairing window stays open (default 120, which is the most)",
    )
    verb.add_argument(
        "--cancel", action="store_true", help="close a window that somebody else has open"
    )


def _unpair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "address",
        metavar="ADDRESS",
        nargs="?",
        help="these glasses; without it the only paired ones",
    )


def _up(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    verb.add_argument(
        "enrol",
        metavar="CODE",
        nargs="?",
        help="a cloud's enrolment code (GLASSD1-…), or - to read it from stdin, which nobody sees",
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
        help="unix socket (or tcp:HOST:PORT) on which tests steer the wearer",
    )
    verb.add_argument(
        "--out",
        metavar="DIR",
        help="where PNGs of the lens and sound go (default: a temporary directory)",
    )
    verb.add_argument(
        "--script",
        metavar="FILE",
        help="what the wearer does, one step a line; faults are steps too",
    )
    verb.add_argument(
        "--mtu", metavar="BYTES", type=_count, help="the ATT MTU offered (default 247; a G1 251)"
    )
    verb.add_argument(
        "--fault",
        metavar="FAULT",
        action="append",
        default=[],
        help="something that goes wrong, at once or @SECONDS; repeatable",
    )
    verb.add_argument(
        "--quirk",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="be the firmware that does it so; repeatable",
    )
    verb.add_argument(
        "--pairing",
        metavar="HOW",
        choices=("none", "just_works", "passkey", "compare"),
        help=(
            "none, just_works, passkey or compare: nobody may write before (default: "
            "as the model is paired, strangers may write until somebody is)"
        ),
    )
    verb.set_defaults(words=_sim_words, offered=MOCKS)
    verb.formatter_class = argparse.RawDescriptionHelpFormatter


def _sim_words() -> str:
    """Tell the words of --fault and --quirk, as the mock itself lists them."""
    from firmware_bridge.sim.even_g1_quirks import QUIRKS
    from firmware_bridge.sim.faults import usage

    faults = "\n".join(f"  {form:<24} {does}" for form, does in usage())
    quirks = "\n".join(f"  {name}={'|'.join(values)}" for name, values in QUIRKS.items())
    return (
        "faults (the same words in scripts and on the control channel; "
        f"SIDE is left or right; @3s waits):\n{faults}\n"
        "quirks of sim:even_g1 (what its known hosts disagree "
        f"about; the first is stock):\n{quirks}"
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
        help="embedded (default), mosquitto, or HOST:PORT of one that runs already",
    )
    verb.add_argument(
        "--tenant", default="default", help="topic level of the tenant (default: default)"
    )
    verb.add_argument("--pool", default="tools", help="worker pool (default: tools)")
    verb.add_argument(
        "--state",
        metavar="DIR",
        help="where it keeps what it must not forget (default: a temporary directory)",
    )
    verb.add_argument(
        "--worker",
        action="store_true",
        help="only one more worker, beside a cloud of the same --state and --broker HOST:PORT",
    )
    verb.add_argument(
        "--legacy",
        action="store_true",
        help="also serve the endpoints that the tool redesign removed",
    )
    verb.add_argument(
        "--tls",
        metavar="NAME",
        nargs="?",
        const="localhost",
        help=(
            "with certificates of its own and enrolment codes, "
            "for edges that reach this machine by NAME (default localhost); needs Mosquitto"
        ),
    )


def _llm(verb: argparse.ArgumentParser) -> None:
    acts = verb.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(verb)
    )
    for name, text in (
        ("tools", "the tools in force, as the `tools` of a request to this provider"),
        ("answer", "run what a model asks for; print what is appended to the conversation"),
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
                help="the turn they belong to: repeated after a fault, nothing is done twice",
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
        help="with mock glasses and a daemon that wears them, for as long as it runs",
    )
    verb.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve streamable HTTP there instead of stdio (or: systemd, the socket it hands over)",
    )
    verb.add_argument(
        "--token-file",
        metavar="FILE",
        help=(
            "clients must bring this bearer token (default: "
            "the systemd credential glassd-mcp-token, if there is one)"
        ),
    )
    verb.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a further name or address clients may use; repeatable",
    )
    verb.add_argument(
        "--confirm-in-client",
        action="store_true",
        help=(
            "let the client's user say yes to a call. Only for a program that shows "
            "its user every question: the client itself answers it"
        ),
    )
    verb.add_argument(
        "--rate",
        metavar="N",
        type=_rate,
        default=600,
        help="calls a minute, a fifth of them at once (default 600)",
    )


def _registry(verb: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(verb)
    )
    for name, text in (
        ("build", "compile the tools into tool_registry.json"),
        ("check", "verify that it is as the tools are"),
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
                help="tell everything that a provider's form leaves out",
            )
        if name == "show":
            action.add_argument(
                "tool", metavar="TOOL", nargs="?", help="one tool, with its documentation"
            )
            action.add_argument(
                "--provider",
                choices=FORMS,
                help="the form in which models of this provider are told of the tool",
            )
            action.add_argument(
                "--prompt",
                choices=("text", "voice"),
                help="what models are told of all tools that may be called so",
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
    ("up", "find your glasses, pair, connect, save: one step after the other", _up),
    ("demo", "everything on this machine, with nothing to configure", _demo),
    ("status", "one state per layer, and the one thing to do next", _socket),
    ("tools", "the tools in force", _tools),
    ("servers", "the other MCP servers whose tools are yours", _servers),
    ("call", "call a tool, and tell how the answer reached the wearer", _call),
    ("confirm", "say yes or no to a call that waits for it", _confirm),
    ("grants", "the tools allowed or forbidden for good", _grants),
    ("cancel", "call a call off", _cancel),
    ("answer", "hand in the result of a pending call", _answer),
    ("say", "say something as if the wearer had said it", _say),
    ("calls", "what was called, what is pending", _calls),
    ("lens", "what the lens shows now", _lens),
    ("events", "follow what happens, one JSON object a line", _events),
    ("scan", "the glasses that are near", _scan),
    ("pair", "pair with glasses; pair again when a bond was lost", _pair),
    ("unpair", "forget paired glasses", _unpair),
    ("metrics", "counters and latencies per tool, as OpenMetrics text", _socket),
    ("doctor", "examine this machine: numbered checks, each with the exact fix", _doctor),
    ("sim", "mock glasses on a virtual radio", _sim),
    ("devcloud", "the reference cloud alone", _devcloud),
    ("mcp", "our tools as an MCP server, for any agent", _mcp),
    (
        "registry",
        "build, verify and print the tools of this installation; fetch the cloud's",
        _registry,
    ),
    ("llm", "models' own tool formats: their tools, and the answers to what they ask for", _llm),
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
