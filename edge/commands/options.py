"""Every verb of `glassd` with its options; shell completion and the manual page are generated
from them too.

Imports nothing heavy: `glassd --help` loads all of this.
"""

import argparse
from collections.abc import Callable
from typing import Any, Final

Add = Callable[[argparse.ArgumentParser], None]


def _add(verb: argparse._ActionsContainer, form: str, text: str, **more: Any) -> None:
    """Add an option that takes a value, or a positional argument. `form` is its name, and the word
    that stands for its value in the help.
    """
    name, _, metavar = form.partition(" ")
    verb.add_argument(name, metavar=metavar or None, help=text, **more)


def _flag(verb: argparse._ActionsContainer, name: str, text: str) -> None:
    verb.add_argument(name, action="store_true", help=text)


def add_parser(tree: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add a verb, or an action of a verb, with its help text."""
    description = f"{text[0].upper()}{text[1:]}."
    parser: argparse.ArgumentParser = tree.add_parser(
        name, help=text, description=description, allow_abbrev=False
    )
    return parser


def _actions(verb: argparse.ArgumentParser) -> Any:
    return verb.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(verb)
    )


def as_json(verb: argparse.ArgumentParser) -> None:
    _flag(verb, "--json", "machine-readable output on stdout, nothing else")


def _socket(verb: argparse.ArgumentParser) -> None:
    _add(
        verb,
        "--socket PATH",
        "the daemon's control socket (default: where it usually is); the owner's socket "
        "is looked for beside it",
    )


def _run(verb: argparse.ArgumentParser) -> None:
    _add(verb, "--config FILE", "the configuration file")


def _mocks() -> str:
    return f"{', '.join(MOCKS[:-1])} or {MOCKS[-1]}"


def _demo(verb: argparse.ArgumentParser) -> None:
    _add(
        verb,
        "--glasses MODEL",
        "simulated glasses (default mock:full)",
        choices=MOCKS,
    )
    _add(verb, "--script FILE", "play the steps of this file instead of asking you")
    _add(verb, "--seconds N", "end after this long", type=_seconds)
    _flag(verb, "--keep", "keep its folder (logs, lens.png, sound) at the end")


def _tools(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(
        verb,
        "act ACT",
        "show TOOL (its details and documentation), enable TOOL, disable TOOL, usage (how "
        "often each was called); without it: list the tools",
        nargs="?",
        choices=("show", "enable", "disable", "usage"),
    )
    _add(verb, "tool TOOL", "package:tool", nargs="?")
    _flag(verb, "--all", "also list hidden tools, and why they are hidden")
    _add(verb, "--category C", "only this category")
    _add(verb, "--mode", "only what a caller of this mode is offered", choices=("text", "voice"))


def _servers(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(
        verb,
        "act ACT",
        "refresh ID (list its tools again), authorize ID (show where to sign in), "
        "authorize ID CODE (finish signing in); without it: list the servers",
        nargs="?",
        choices=("refresh", "authorize"),
    )
    _add(verb, "server ID", "the server's id, or the code of its sign-in on the lens", nargs="?")
    _add(verb, "code CODE", "the code, or the whole address the browser was sent to", nargs="?")


def _call(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "tool TOOL", "package:tool")
    _add(
        verb,
        "args ARGS",
        "a JSON object, or key=value pairs (a value that is JSON is taken as such), or - "
        "for JSON on stdin",
        nargs="*",
        default=[],
    )
    _add(
        verb,
        "--mode",
        "how the caller talks with glassd (default: the session's mode, else text)",
        choices=("text", "voice"),
    )
    _add(
        verb,
        "--wait",
        "wait for the answer (default), or until its delivery is complete",
        choices=("answer", "delivery"),
        default="answer",
    )
    _flag(
        verb,
        "--no-wait",
        "print the call's id once the call is stored; show it later: glassd calls ID",
    )
    _add(
        verb,
        "--confirm TOKEN",
        "the token of a confirmation request; only for the call that got it",
    )
    shown = verb.add_mutually_exclusive_group()
    _flag(shown, "--present", "show the wearer the answer, whatever the tool")
    _flag(shown, "--silent", "show the wearer neither the call nor its answer")
    _add(verb, "--key KEY", "idempotency key: the same key never runs twice")
    _add(verb, "--session S", "the session it belongs to; a session keeps its mode")
    _add(verb, "--turn T", "the turn it belongs to; a voice turn has a budget")
    _add(
        verb,
        "--provider-id ID",
        "the id a model's provider gave this call; one under 9 characters is no key",
    )
    _add(
        verb,
        "--ttl SECONDS",
        "how long the call may live (default 40)",
        type=_seconds,
        default=40.0,
    )


def _confirm(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(
        verb,
        "token TOKEN",
        "the token of a confirmation request; without it, every call that waits is shown, "
        "and you type the answer",
        nargs="?",
    )
    _flag(verb, "--deny", "say no")
    lasting = verb.add_mutually_exclusive_group()
    _flag(lasting, "--always", "yes, and do not ask about this tool again")
    _flag(lasting, "--never", "no, and refuse this tool from now on without asking")


def _grants(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    change = verb.add_mutually_exclusive_group()
    _add(change, "--always TOOL", "run this tool without asking")
    _add(change, "--never TOOL", "refuse this tool without asking")
    _add(change, "--revoke TOOL", "ask about this tool every time again")


def _cancel(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "id ID", "the call's id")
    _add(verb, "--reason TEXT", "reason, shown in glassd calls ID")


def _answer(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "id ID", "the pending call's id (see: glassd calls --pending)")
    _add(
        verb,
        "result RESULT",
        "JSON, key=value pairs, one word of text, or - for JSON on stdin; an object with "
        "`ok` is taken as a complete response",
        nargs="*",
        default=[],
    )
    _add(verb, "--session S", "the session the call belongs to")


def _say(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "text TEXT", "what the wearer says", nargs="+")


def _hear(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "file FILE", "a WAV file, or - for stdin", nargs="?")
    _add(verb, "--say TEXT", "a text instead, in the machine's own voice (extra voice)")
    _add(verb, "--language LANGUAGE", "of the text (default: en-US)", default="en-US")
    _add(
        verb,
        "--control PATH",
        "the control channel of the simulator (default: the one beside the daemon's socket)",
    )


def _calls(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "id ID", "show this call in detail", nargs="?")
    _flag(verb, "--pending", "only calls without a final answer")
    _add(verb, "--limit N", "how many (default 20)", type=_count, default=20)


def _lens(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    text = "preview: how a text would look, without glasses: pages, pixels, glyphs, reading time"
    _add(verb, "what", text, nargs="?", choices=("preview",))
    _add(verb, "text TEXT", "the text of the preview; - reads standard input", nargs="*")
    _add(verb, "--glasses MODEL", "the glasses of the preview (default mock:display)")
    _add(verb, "--png FILE", "draw it into a PNG file; further pages of a preview are numbered")
    _flag(verb, "--watch", "show it again whenever it changes; with keys for simulated glasses")
    _add(
        verb,
        "--control PATH",
        "the control channel of the simulated glasses that the keys are for "
        "(default: mock.sock beside the daemon's socket)",
    )


def _events(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "--kind PREFIX", "only events whose name begins with this: call, link, lens …")
    _add(verb, "--count N", "end after this many", type=_count)
    _add(verb, "--after ID", "start after this event id, if it is still kept")


def _record(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "file FILE", "where the recording is written; it must not exist yet")
    _add(
        verb,
        "--seconds N",
        "end so long after the glasses connected (default: at Ctrl-C)",
        type=_seconds,
    )
    _flag(verb, "--sound", "leave the sound of the microphone and of the loudspeaker in")
    _flag(verb, "--photos", "leave photos in")
    _flag(verb, "--yes", "do not ask; you know that the texts of all pages are in it")
    verb.epilog = (
        "What is on the lens and in notifications is in the packets, and so in the file. "
        "Hardware addresses, serial numbers and the glasses' names are replaced. "
        "The link to the glasses is closed and opened again when it begins."
    )


def _validate(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "file FILE", "where the recording with your answers is written")
    _flag(verb, "--sound", "leave the sound of the microphone and of the loudspeaker in")
    _flag(verb, "--photos", "leave photos in")
    _flag(verb, "--yes", "do not ask whether to record; you know what is in a recording")


def _doctor(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "--config FILE", "examine the daemon of this configuration (default: the service's)")
    _add(
        verb,
        "--bundle FILE",
        "also write everything into a tar.gz on this machine, without secrets",
    )


def _scan(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "--seconds N", "how long to listen (default 8)", type=_seconds, default=8.0)


def _six_digits(text: str) -> str:
    digits = text.replace(" ", "")
    if len(digits) != 6 or not (digits.isascii() and digits.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a code; a code has six digits, for example 012345"
        )
    return digits


def _code(verb: argparse.ArgumentParser) -> None:
    text = "the code or number that the glasses show, instead of being asked for it"
    _add(verb, "--code DIGITS", text, type=_six_digits)


def _pair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(
        verb,
        "address ADDRESS",
        "these glasses (see: glassd scan); not needed if only one pair is near",
        nargs="?",
    )
    _code(verb)
    _add(
        verb,
        "--seconds N",
        "how long the pairing window stays open (default and maximum 120)",
        type=_seconds,
        default=120.0,
    )
    _flag(verb, "--cancel", "close a pairing window that another client opened")


def _unpair(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(verb, "address ADDRESS", "these glasses; not needed if only one pair is paired", nargs="?")


def _up(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _add(
        verb,
        "enrol CODE",
        "a cloud's enrolment code (GLASSD1-…), or - to read it from stdin, hidden from others",
        nargs="?",
    )
    _flag(verb, "--no-glasses", "enrol only")
    _add(verb, "--address ADDRESS", "these glasses, instead of asking which")
    _code(verb)
    _flag(verb, "--yes", "take the nearest of several glasses without asking")


def _sim(verb: argparse.ArgumentParser) -> None:
    _add(verb, "model MODEL", ", ".join(MOCKS), nargs="?")
    _add(
        verb,
        "--replay FILE",
        "glasses that answer as those of this recording did (glassd record), of its model; at the "
        "end it says what it was asked that the recording does not know",
    )
    _add(
        verb,
        "--radio R",
        "tcp:HOST:PORT (default tcp:127.0.0.1:6402), usb:N or vhci",
        default="tcp:127.0.0.1:6402",
    )
    _add(verb, "--control PATH", "unix socket (or tcp:HOST:PORT) on which tests control the wearer")
    _add(
        verb,
        "--out DIR",
        "where lens images and sound are written (default: a temporary directory)",
    )
    _add(verb, "--script FILE", "what the wearer does, one step per line; faults are steps too")
    _add(verb, "--mtu BYTES", "the ATT MTU offered (default 247; a G1 251)", type=_count)
    _add(
        verb,
        "--fault FAULT",
        "a fault to inject, at once or @SECONDS; repeatable",
        action="append",
        default=[],
    )
    _add(
        verb,
        "--quirk NAME=VALUE",
        "choose a firmware variant; repeatable",
        action="append",
        default=[],
    )
    _add(
        verb,
        "--pairing HOW",
        "pairing mode: none, just_works, passkey or compare; with a mode set, unpaired "
        "centrals cannot write (default: the model's own mode, in which unpaired centrals "
        "may write until one has paired)",
        choices=("none", "just_works", "passkey", "compare"),
    )
    verb.set_defaults(words=_sim_words, offered=MOCKS)
    verb.formatter_class = argparse.RawDescriptionHelpFormatter


def _sim_words() -> str:
    """Return the help for the values of --fault and --quirk, as the simulator lists them."""
    from importlib import import_module

    from firmware_bridge.catalog import supported
    from firmware_bridge.sim.faults import usage

    faults = "\n".join(f"  {form:<24} {does}" for form, does in usage())
    text = (
        "faults (written the same way in scripts and on the control channel; "
        f"SIDE is left or right; @3s waits):\n{faults}"
    )
    packages: dict[str, list[str]] = {}
    for model in supported():
        if model.simulator:
            packages.setdefault(model.simulator, []).append(f"sim:{model.key}")
    for package, names in packages.items():
        quirks = import_module(f"{package}.quirks").QUIRKS
        lines = "\n".join(f"  {name}={'|'.join(values)}" for name, values in quirks.items())
        text += (
            f"\nquirks of {', '.join(names)} (where sources disagree; "
            f"the first value is the default):\n{lines}"
        )
    return text


def _devcloud(verb: argparse.ArgumentParser) -> None:
    _add(
        verb,
        "--http HOST:PORT",
        "where the registry is served (default 127.0.0.1:8787)",
        default="127.0.0.1:8787",
    )
    _add(
        verb,
        "--broker",
        "embedded (default), mosquitto, or HOST:PORT of a running broker",
        default="embedded",
    )
    _add(verb, "--tenant", "topic level of the tenant (default: default)", default="default")
    _add(verb, "--pool", "worker pool (default: tools)", default="tools")
    _add(verb, "--state DIR", "where its state is stored (default: a temporary directory)")
    _flag(
        verb,
        "--worker",
        "run one more worker for a cloud with the same --state and --broker HOST:PORT",
    )
    _flag(verb, "--legacy", "also serve the older endpoints that the current tool API replaced")
    _add(
        verb,
        "--tls NAME",
        "serve with TLS, its own certificates and enrolment codes, for daemons that reach "
        "this machine by NAME (default localhost); needs Mosquitto",
        nargs="?",
        const="localhost",
    )


def _llm(verb: argparse.ArgumentParser) -> None:
    acts = _actions(verb)
    for name, text in (
        ("tools", "the active tools, in the form of the `tools` of a request to this provider"),
        ("answer", "run the calls a model asks for; print what to append to the conversation"),
    ):
        act = add_parser(acts, name, text)
        _socket(act)
        _add(act, "provider PROVIDER", ", ".join(PROVIDERS), choices=PROVIDERS)
        as_json(act)
        if name == "answer":
            _add(
                act,
                "file FILE",
                "what the provider's API answered, as JSON (default: standard input)",
                nargs="?",
                default="-",
            )
            _add(act, "--mode", "how the model talks with the wearer", choices=("text", "voice"))
            _add(act, "--session S", "the session the calls belong to; a session keeps its mode")
            _add(
                act,
                "--turn T",
                "the turn they belong to: a turn sent again after an error repeats no action",
            )
            _add(
                act,
                "--ttl SECONDS",
                "how long each call may live (default 40)",
                type=_seconds,
                default=40.0,
            )


def _mcp(verb: argparse.ArgumentParser) -> None:
    _socket(verb)
    _flag(
        verb, "--demo", "start mock glasses and a daemon connected to them, for as long as it runs"
    )
    _add(
        verb,
        "--http HOST:PORT",
        "serve streamable HTTP instead of stdio (or: systemd, to use the socket it passes)",
    )
    _add(
        verb,
        "--token-file FILE",
        "clients must send this bearer token (default: the systemd credential "
        "glassd-mcp-token, if there is one)",
    )
    _add(
        verb,
        "--allow-host NAME",
        "another host name or address that clients may use; repeatable",
        action="append",
        default=[],
    )
    _flag(
        verb,
        "--confirm-in-client",
        "let the client's user confirm calls. Only for a program that shows its user "
        "every question, since it is the client that sends the answer",
    )
    _add(
        verb,
        "--rate N",
        "calls per minute; up to a fifth of them at once (default 600)",
        type=_rate,
        default=600,
    )


def _registry(verb: argparse.ArgumentParser) -> None:
    actions = _actions(verb)
    for name, text in (
        ("build", "compile the tools into tool_registry.json"),
        ("check", "verify that tool_registry.json matches the tools"),
        ("show", "print the built tools"),
        ("sync", "have the daemon fetch the cloud's registry now"),
    ):
        action = add_parser(actions, name, text)
        if name == "sync":
            _socket(action)
            as_json(action)
            continue
        _add(
            action,
            "--file FILE",
            "the registry (default: the one of this installation; with --tools, "
            "tool_registry.json in DIR)",
        )
        _add(
            action,
            "--tools DIR",
            "the folder of tool folders (default: those of this installation)",
        )
        as_json(action)
        if name == "build":
            _flag(action, "--losses", "list everything that a provider's form leaves out")
        if name == "show":
            _add(action, "tool TOOL", "one tool, with its documentation", nargs="?")
            _add(action, "--provider", "print the tool in the form of this provider", choices=FORMS)
            _add(
                action,
                "--prompt",
                "print the prompt text for all tools that may be called in this mode",
                choices=("text", "voice"),
            )


def _completion(verb: argparse.ArgumentParser) -> None:
    _add(
        verb, "shell", "print the completion script of this shell", choices=("bash", "zsh", "fish")
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
MOCKS: Final = (
    "mock:display",
    "mock:audio",
    "mock:full",
    "sim:even_g1",
    "sim:even_g2",
    "sim:frame",
    "sim:halo",
    "sim:mentra_live",
    "sim:mentra_nex",
    "sim:monocle",
    "sim:omi",
    "sim:omi_glass",
    "sim:openglass",
)
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
    ("hear", "play sound to the microphone of simulated glasses", _hear),
    ("calls", "recent and pending calls", _calls),
    ("lens", "what the lens shows now", _lens),
    ("events", "follow what happens, one line per event", _events),
    ("scan", "the glasses that are near", _scan),
    ("pair", "pair with glasses; pair again when a bond was lost", _pair),
    ("unpair", "forget paired glasses", _unpair),
    ("metrics", "counters and latencies per tool, as OpenMetrics text", _socket),
    ("doctor", "check this machine: numbered checks, each with the exact fix", _doctor),
    ("record", "record the packets between glassd and the glasses into a file", _record),
    ("validate", "a minute of checks of your glasses, recorded with your answers", _validate),
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
