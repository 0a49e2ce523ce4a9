"""`glassd demo`: starts mock glasses, a cloud and the daemon, performs the steps of a script or a
person, and ends every child.

It uses the daemon as any client can.
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
from edge.demo.clients import DaemonHttp, HttpClient, MockClient
from edge.demo.player import Clients, Player, Unmet
from edge.demo.processes import SIMULATED, StartFailed, folder_for_sockets, start, start_daemon
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
"""The configuration for a broker and a cloud of one's own; on the loopback interface, so without
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
    """Run the demo; return the exit code (0 done, 1 the script's expectation was not met, 2 a bad
    script).
    """
    show = _printer(as_json=as_json)
    try:
        interactive = script is None and sys.stdin.isatty() and not as_json
        steps = [] if interactive else load(str(script or "tour"), glasses or DEFAULT_GLASSES)
        async with timeout(seconds), AsyncExitStack() as stack:
            out = stack.enter_context(_folder(keep=keep))
            model = glasses or DEFAULT_GLASSES
            player = await _open(stack, model, show, out=out, forgiving=interactive)
            await player.run(_from_person(show) if interactive else _from_script(steps))
    except TimeoutError:
        show({"event": "step", "title": f"{seconds:g} seconds are over"})
    except (BadScript, StartFailed, Unmet) as wrong:
        show({"event": "problem", "text": str(wrong)})
        return 2 if isinstance(wrong, BadScript) else 1
    return 0


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Make the demo's folder. It is deleted when every process has ended, unless `keep` is set, or
    something failed: the logs in it say why.
    """
    out = Path(tempfile.mkdtemp(prefix="glassd-demo-"))
    try:
        yield out
    except (StartFailed, Unmet):
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
    show({"event": "starting", "glasses": model})
    sockets = stack.enter_context(folder_for_sockets(out))
    control, mock_control = sockets / "control.sock", sockets / "mock.sock"
    radio = ("--radio", "tcp:127.0.0.1:0", "--control", str(mock_control), "--out", str(out))
    state = ("--http", "127.0.0.1:0", "--state", str(out / "cloud"))
    started = await asyncio.gather(
        start(stack, out, "glasses", "sim", model, *radio, "--json"),
        start(stack, out, "cloud", "devcloud", *state, "--json"),
    )
    mock, cloud = (child.announcement for child in started)
    show({"event": "cast", "name": f"{model} glasses", "where": mock["radio"]})
    where = f"{cloud['http']}, MQTT at {cloud['mqtt']}"
    show({"event": "cast", "name": "a small cloud", "where": where})
    config = _write_config(out, control, mock, cloud, model)
    await start_daemon(stack, out, config, control)
    where = f"{config} (logs, lens.png and sound beside it; --keep leaves them there)"
    show({"event": "cast", "name": "the daemon", "where": where})
    daemon, cloud_client = DaemonHttp(owner_beside(control)), HttpClient(cloud["http"])
    stack.push_async_callback(daemon.close)
    stack.push_async_callback(cloud_client.close)
    mock_client = MockClient(mock_control)
    clients = Clients(daemon, mock_client, cloud_client)
    return Player(clients, emit=show, edge_id=EDGE_ID, forgiving=forgiving)


def _write_config(
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


async def _from_script(steps: list[ScriptStep]) -> AsyncIterator[ScriptStep]:
    for step in steps:
        yield step


async def _from_person(show: Callable[[dict[str, Any]], None]) -> AsyncIterator[ScriptStep]:
    """Yield the steps that a person types, until `quit` or the end of input."""
    reader = asyncio.StreamReader()
    loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()

    def typed() -> None:
        # Not connect_read_pipe: that would leave the terminal non-blocking for the shell.
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
