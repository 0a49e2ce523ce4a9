"""`glassd demo`: starts the cast, wires it together, plays a script or asks a person, and ends
every child.

Refuses to reach into the daemon: what a demo can do, any client can.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import harmless, json_text
from edge.demo.clients import CloudWire, DaemonWire, MockWire
from edge.demo.player import Player, Unmet
from edge.demo.processes import SIMULATED, CastError, ChildProcess, glassd, until_there
from edge.demo.script import VERBS, BadScript, ScriptStep, load, parse_line
from edge.demo.view import View
from edge.runtime.paths import owner_beside
from firmware_bridge.deadlines import timeout

DEFAULT_GLASSES: Final = "mock:full"
EDGE_ID: Final = "demo"
READ_BYTES: Final = 65536

CONFIG: Final = """\
version = 1
[edge]
id = "{edge_id}"
state_dir = "{state}"
[glasses]
radio = "{radio}"
model = "{model}"
backoff_max_s = 2.0
[uplink]
host = "{host}"
port = {port}
tls = false
reconnect_min_s = 0.2
reconnect_max_s = 2.0
stable_s = 5.0
[cloud]
url = "{http}"
[control]
socket = "{socket}"
group = ""
"""
"""What a person with a broker and a cloud of their own would write; loopback only, so without
TLS.
"""


async def run_demo(
    *,
    glasses: str | None,
    script: Path | None,
    seconds: float | None,
    as_json: bool,
    keep: bool = False,
) -> int:
    """Run the demo; gives the exit code (0 done, 1 the script's expectation was not met, 2 a
    bad script).
    """
    show = _printer(as_json=as_json)
    try:
        interactive = script is None and sys.stdin.isatty() and not as_json
        steps = [] if interactive else load(str(script or "tour"), glasses or DEFAULT_GLASSES)
        async with timeout(seconds), AsyncExitStack() as stack:
            out = stack.enter_context(_folder(keep=keep))
            play = await _open(
                stack, glasses or DEFAULT_GLASSES, show, out=out, forgiving=interactive
            )
            await play.run(_asked(show) if interactive else _scripted(steps))
    except TimeoutError:
        show({"event": "step", "title": f"{seconds:g} seconds are over"})
    except (BadScript, CastError, Unmet) as wrong:
        show({"event": "problem", "text": str(wrong)})
        return 2 if isinstance(wrong, BadScript) else 1
    return 0


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Make the demo's own folder. It goes when everything in it has ended, unless it is to be
    kept, or something failed: its logs say why.
    """
    out = Path(tempfile.mkdtemp(prefix="glassd-demo-"))
    try:
        yield out
    except (CastError, Unmet):
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)


async def _open(
    stack: AsyncExitStack,
    model: str,
    show: Callable[[dict[str, Any]], None],
    *,
    out: Path,
    forgiving: bool,
) -> Player:
    """Start mock, cloud and daemon, in that order; they end in the reverse one."""
    control = out / "control.sock"
    mock_words = (
        "sim",
        model,
        "--radio",
        "tcp:127.0.0.1:0",
        "--control",
        str(out / "mock.sock"),
        "--out",
        str(out),
        "--json",
    )
    cloud_words = ("devcloud", "--http", "127.0.0.1:0", "--state", str(out / "cloud"), "--json")
    started = await asyncio.gather(
        _start(stack, out, "glasses", *mock_words), _start(stack, out, "cloud", *cloud_words)
    )
    mock, cloud = (member.announcement for member in started)
    show({"event": "cast", "name": f"{model} glasses", "where": mock["radio"]})
    show(
        {
            "event": "cast",
            "name": "a small cloud",
            "where": f"{cloud['http']}, MQTT at {cloud['mqtt']}",
        }
    )
    config = _configured(out, control, mock, cloud, model)
    await until_there(
        control, await _start(stack, out, "daemon", "run", "--config", str(config), announces=False)
    )
    show(
        {
            "event": "cast",
            "name": "the daemon",
            "where": f"{config} (logs, lens.png and sound beside it; --keep leaves them there)",
        }
    )
    daemon, cloud_wire = DaemonWire(owner_beside(control)), CloudWire(cloud["http"])
    stack.push_async_callback(daemon.close)
    stack.push_async_callback(cloud_wire.close)
    return Player(
        daemon,
        MockWire(out / "mock.sock"),
        cloud_wire,
        emit=show,
        edge_id=EDGE_ID,
        out=out,
        forgiving=forgiving,
    )


async def _start(
    stack: AsyncExitStack, out: Path, name: str, *words: str, announces: bool = True
) -> ChildProcess:
    member = ChildProcess(name, glassd(*words), log_dir=out)
    stack.push_async_callback(member.stop)
    await member.start(announces=announces)
    return member


def _configured(
    out: Path, control: Path, mock: dict[str, Any], cloud: dict[str, Any], model: str
) -> Path:
    """Write the daemon's configuration for this mock and this cloud."""
    host, _, port = str(cloud["mqtt"]).rpartition(":")
    config = out / "glassd.toml"
    text = CONFIG.format(
        edge_id=EDGE_ID,
        state=out / "state",
        radio=mock["radio"],
        model=model.removeprefix(SIMULATED),
        host=host,
        port=port,
        http=cloud["http"],
        socket=control,
    )
    config.write_text(text, encoding="utf-8")
    return config


async def _scripted(steps: list[ScriptStep]) -> AsyncIterator[ScriptStep]:
    for step in steps:
        yield step


async def _asked(show: Callable[[dict[str, Any]], None]) -> AsyncIterator[ScriptStep]:
    """Steps from a person, until `quit` or the end of input."""
    reader = asyncio.StreamReader()
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()

    def typed() -> None:
        # Not connect_read_pipe: that leaves the terminal non-blocking for the shell we came from.
        data = os.read(fd, READ_BYTES)
        if data:
            reader.feed_data(data)
        else:
            loop.remove_reader(fd)
            reader.feed_eof()

    loop.add_reader(fd, typed)
    try:
        async for step in _typed_steps(reader, show):
            yield step
    finally:
        loop.remove_reader(fd)


async def _typed_steps(
    reader: asyncio.StreamReader, show: Callable[[dict[str, Any]], None]
) -> AsyncIterator[ScriptStep]:
    print(  # noqa: T201
        "Type what the wearer does: say what time is it · call notes:add "
        "… · tap · offline · online · help · quit"
    )
    while line := (await reader.readline()).decode("utf-8", "replace"):
        word = line.strip()
        if word in {"quit", "exit"}:
            return
        if word == "help":
            print("\n".join(f"  {line}" for verb, line in VERBS.items() if verb != "expect"))  # noqa: T201
        elif word:
            try:
                yield parse_line(word)
            except BadScript as wrong:
                show({"event": "problem", "text": str(wrong)})


def _printer(*, as_json: bool) -> Callable[[dict[str, Any]], None]:
    view = View(colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))

    def show(event: dict[str, Any]) -> None:
        text = json_text(event) if as_json else harmless(view.text(event))
        if text:
            print(text, flush=True)  # noqa: T201 - the demo is what is printed

    return show
