"""Commands that need no glasses. `glassd demo`: everything on this machine, with nothing to
configure. `glassd sim`: mock glasses on a virtual radio, until Ctrl-C. `glassd devcloud`: the
reference cloud alone, until Ctrl-C; with `--tls` it shows the first enrolment code, to paste or to
scan.
"""

import errno
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, announcer, os_problem, plain
from edge.commands.shared.extras import load, missing, require
from edge.commands.shared.run_loop import run_until_signal
from edge.runtime.errors import UserError
from firmware_bridge.errors import RadioError, RadioReason


@contextmanager
def _explaining(verb: str) -> Iterator[None]:
    """Raise `UserError` for a missing library and for wrong usage."""
    try:
        yield
    except ModuleNotFoundError as e:
        raise missing(e, verb) from None
    except ValueError as e:
        raise UserError("USAGE", str(e), f"see: glassd {verb} --help") from None


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def demo(args: Namespace, screen: Screen) -> int:
    require("demo")
    main = load("edge.demo.main", "demo")
    try:
        return run_until_signal(
            lambda: main.run_demo(
                glasses=args.glasses,
                script=_path(args.script),
                seconds=args.seconds,
                as_json=screen.as_json,
                keep=args.keep,
            )
        )
    except ModuleNotFoundError as e:
        raise missing(e, "demo") from None


# ------------------------------------------------------------------ the simulator


def sim(args: Namespace, screen: Screen) -> int:
    replay: Any = None
    if args.script and not Path(args.script).is_file():
        problem = f"{args.script}: there is no such script"
        raise UserError("USAGE", problem, "see: glassd sim --help")
    try:
        with _explaining("sim"):
            options = load("firmware_bridge.sim.options", "sim")
            replay, model = _replayed(args)
            options.check(model, radio=args.radio, mtu=args.mtu, faults=args.fault)
            simulator = load("firmware_bridge.sim.main", "sim")
            return run_until_signal(
                lambda: simulator.run_sim(
                    model,
                    radio=args.radio,
                    control=_path(args.control),
                    out_dir=_path(args.out),
                    script=_path(args.script),
                    mtu=args.mtu,
                    faults=args.fault,
                    quirks=args.quirk,
                    pairing=args.pairing,
                    announce=_sim_announcer(screen, model),
                    watch=None if screen.as_json else _printer(screen),
                    replay=replay,
                )
            )
    except RadioError as e:
        code = 2 if e.reason is RadioReason.OTHER else 1  # a radio that does not exist: wrong usage
        fix = e.hint or "choose another radio: --radio tcp:127.0.0.1:0"
        raise UserError("RADIO", str(e), fix, exit_code=code) from None
    except OSError as e:
        fix = "name another path: --out DIR, --control SOCKET"
        raise UserError("SIM_FAILED", os_problem(e), fix) from None
    finally:
        _report_replay(replay, screen)


def _replayed(args: Namespace) -> tuple[Any, str]:
    """Return the glasses of `--replay` (None without it) and the model to simulate. Raise
    `UserError`, ValueError.
    """
    if not args.replay:
        if not args.model:
            problem = "name the model, or a recording: --replay FILE"
            raise UserError("USAGE", problem, "see: glassd sim --help")
        return None, args.model
    files = load("firmware_bridge.recording.files", "sim")
    try:
        recording = files.read(Path(args.replay))
    except OSError as e:
        raise UserError("USAGE", os_problem(e), "name a file of: glassd record FILE") from None
    model = recording.header.model
    if args.model and args.model.removeprefix("sim:") != model:
        problem = f"{args.replay} is of {model}, not of {args.model}"
        raise UserError("USAGE", problem, "leave the model out; the recording names it")
    return load("firmware_bridge.sim.replay", "sim").ReplayedGlasses(recording), model


def _report_replay(replay: Any, screen: Screen) -> None:
    """Say what was asked of a recording that it does not know."""
    report = None if replay is None else replay.report
    if report is None or not (report.known or report.nearest or report.unanswered):
        return
    if screen.as_json:
        screen.json(report.to_json(), lines=True)
        return
    screen.progress(f"{report.known} packets were known to the recording")
    for what, counted in (
        ("not known, answered like the nearest", report.nearest),
        ("not known, not answered", report.unanswered),
    ):
        for packet, times in counted.most_common():
            screen.progress(f"{what}: {packet}" + (f" ({times} times)" if times > 1 else ""))


def _sim_announcer(screen: Screen, model: str) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that announces the glasses; for a pair both sides in one text."""
    announce = announcer(screen, model)

    def announce_sides(facts: Mapping[str, Any]) -> None:
        sides = facts.get("sides") or {}
        if sides and not screen.as_json:
            both = ", ".join(f"{side['name']} at {side['address']}" for side in sides.values())
            facts = {**facts, "sides": both}
        announce(facts)

    return announce_sides


def _printer(screen: Screen) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that prints each event of the glasses; programs use the control
    channel instead.
    """

    def show(event: Mapping[str, Any]) -> None:
        words = _WORDS.get(str(event.get("event")))
        if text := words(event) if words else "":
            screen.progress(plain(text))

    return show


def _lens(event: Mapping[str, Any]) -> str:
    sides: Mapping[str, Mapping[str, Any]] = event.get("sides") or {}
    if event.get("same") is False and all(side["connected"] for side in sides.values()):
        return ""  # one arm has it, the other has it in a moment
    alone = f" ({event['side']} arm alone)" if event.get("same") is False else ""
    lines = [str(line) for line in event.get("lines") or [] if line]
    lit = f"{event.get('lit')} pixels lit" if event.get("lit") else "dark"
    return f"lens{alone}: {' | '.join(lines) or lit}"


def _link(event: Mapping[str, Any]) -> str:
    at = f"{event['side']} arm " if event.get("side") else ""
    return f"{at}{event['event']} ({event.get('peer')})"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "lens": _lens,
    "prompt": _lens,
    "connected": _link,
    "disconnected": _link,
    "notification": lambda e: (
        f"notification: {' | '.join(line for line in e.get('lines') or [] if line)}"
    ),
    "fault": lambda e: f"fault: {e.get('fault')}",
    "speaker": lambda e: f"speaker: {e.get('seconds')} s, {e.get('wav')}",
    "microphone": lambda e: f"microphone {'open' if e.get('open') else 'closed'}",
    "pairing": lambda e: f"pairing: {e.get('passkey') or e.get('number')}",
}


# ------------------------------------------------------------------ the cloud


def devcloud(args: Namespace, screen: Screen) -> int:
    if args.worker and (args.state is None or args.tls):
        problem = (
            "--worker shares the --state of a cloud"
            if args.state is None
            else "--worker and --tls: a cloud with TLS is one process"
        )
        raise UserError("USAGE", problem, "see: glassd devcloud --help")
    try:
        with (
            _explaining("devcloud"),
            tempfile.TemporaryDirectory(prefix="glassd-devcloud-") as temporary,
        ):
            options = load("edge.devcloud.options", "devcloud")
            options.check(http=args.http, broker=args.broker, tenant=args.tenant, pool=args.pool)
            main = load("edge.devcloud.main", "devcloud")
            if args.worker:
                return _worker(args, screen, main.sample_apps())
            return run_until_signal(
                lambda: main.run_devcloud(
                    http=args.http,
                    broker=args.broker,
                    tenant=args.tenant,
                    pool=args.pool,
                    state_dir=Path(args.state or temporary),
                    announce=_cloud_announcer(screen),
                    tls=args.tls,
                    legacy=args.legacy,
                )
            )
    except OSError as e:
        raise _cloud_failed(e, args.http) from None


def _worker(args: Namespace, screen: Screen, apps: Any) -> int:
    worker = load("edge.devcloud.worker.worker", "devcloud")
    return run_until_signal(
        lambda: worker.run_worker(
            broker=args.broker,
            tenant=args.tenant,
            pool=args.pool,
            state_dir=Path(args.state),
            apps=apps,
            announce=announcer(screen, "worker"),
        )
    )


def _cloud_failed(error: OSError, http: str) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(
            "DEVCLOUD_FAILED",
            f"{http}: another program listens there already",
            "choose another, or any that is free: --http 127.0.0.1:0",
        )
    if error.filename is not None:
        return UserError("DEVCLOUD_FAILED", os_problem(error), "name another folder: --state DIR")
    return UserError("DEVCLOUD_FAILED", str(error), "see: glassd devcloud --help")


def _cloud_announcer(screen: Screen) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that announces the cloud; for people, its code is shown separately."""
    announce = announcer(screen, "devcloud")

    def announce_cloud(facts: Mapping[str, Any]) -> None:
        code = None if screen.as_json else facts.get("code")
        announce({key: value for key, value in facts.items() if key != "code" or code is None})
        if code is not None:
            _show_code(screen, str(code), str(facts["http"]), str(facts["ca_file"]))

    return announce_cloud


def _show_code(screen: Screen, code: str, url: str, ca_file: str) -> None:
    screen.line(
        "\nOne edge may enrol with this code, "
        "within half an hour (glassd up - and paste it, or scan it):\n"
    )
    screen.line(code + "\n")
    screen.line(load("edge.devcloud.enrolment.codes", "devcloud").qr(code))
    screen.line(
        f"\nAnother code: curl --cacert {ca_file} -X POST {url}/devcloud/codes --json '{{}}'"
    )
    screen.flush()
