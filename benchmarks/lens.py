"""From the control API to a lit lens, beside the same page sent raw over the same kind of link to
the same mock: what everything in glassd costs.
"""

import asyncio
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import process
from benchmarks.table import Lines, Row
from benchmarks.usage import Usage

CONFIG = """version = 1
[glasses]
radio = "{radio}"
[audio]
speech = "off"
[control]
group = ""
"""
PAUSE_S = 0.5
"""Between two pages, until the lens is dark again: for how long a page stays is policy, not cost.
The raw page has the same pause, because what rests for so long is slower at first.
"""


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("glassd", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))


def measure(calls: int) -> Lines:
    """Yield the daemon's way, then the bare link to the same mock."""
    with tempfile.TemporaryDirectory() as name, mock() as radio:
        folder = Path(name)
        with process.daemon(folder, CONFIG.format(radio=radio)) as (pid, _, _):
            usage = Usage(pid, folder / "state")
            ms = _through_the_daemon(folder / "glassd" / "control.sock", usage, calls)
        page, ping = asyncio.run(_raw_commands(radio, calls))
    what = "control API to lens acknowledged"
    yield Row(what, ms, "ms", "the same page, raw", page)
    yield from usage.rows(what)
    yield Row("the same page, raw", page, "ms", "a raw ping", ping)


@contextmanager
def mock(model: str = "mock:display") -> Iterator[str]:
    """Simulated glasses in a process of their own; gives their radio."""
    glasses = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "edge.cli",
            "sim",
            model,
            "--radio",
            "tcp:127.0.0.1:0",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=process.environment(),
    )
    try:
        assert glasses.stdout is not None
        yield json.loads(glasses.stdout.readline())["radio"]
    finally:
        os.kill(glasses.pid, signal.SIGTERM)
        glasses.wait(10)


def _through_the_daemon(control: Path, usage: Usage, calls: int) -> float:
    wire = UnixConnection(control)
    until_ready(wire)
    taken = []
    for n in range(calls):
        args = {"text": f"number {n}", "duration_s": 0.1}
        body = json.dumps({"tool": "glasses:show_text", "args": args, "wait": "answer"})
        with usage.of(1):
            began = time.perf_counter()
            wire.request("POST", "/v1/call", body, {"Content-Type": "application/json"})
            answer = json.loads(wire.getresponse().read())
            taken.append((time.perf_counter() - began) * 1e3)
            assert answer["meta"]["delivery"] == "shown", answer
            time.sleep(PAUSE_S)
    return statistics.median(taken)


def until_ready(wire: UnixConnection) -> None:
    for _ in range(200):
        wire.request("GET", "/v1/status")
        if json.loads(wire.getresponse().read())["glasses"]["state"] == "ready":
            return
        time.sleep(0.1)
    raise SystemExit("the mock glasses did not become ready")


async def _raw_commands(radio: str, calls: int) -> tuple[float, float]:
    """Return the median ms of a page and of a ping of the profile as bare bytes: what they are cut
    into is written, and one notification comes back. The mock draws a page before it answers.
    """
    from firmware_bridge.codec import NEED_DATA, Role
    from firmware_bridge.codecs.reference.codec import ReferenceCodec
    from firmware_bridge.messages import Command, Ping, ShowPage, TextLine
    from firmware_bridge.transports import ble, ble_connection

    air = await ble.open_radio(radio)
    transport = await ble_connection.connect(air, await ble.scan(air, timeout_s=10), timeout_s=10)
    codec = ReferenceCodec(Role.CENTRAL, max_packet=transport.max_packet)
    packets = transport.packets()

    async def send(command: Command) -> float:
        codec.send(command, time.monotonic())
        began = time.perf_counter()
        for packet in codec.packets_to_send(time.monotonic()):
            await transport.write(packet)
        answered = False
        while not answered:
            codec.receive_packet(await anext(packets), time.monotonic())
            while codec.next_event() is not NEED_DATA:
                answered = True
        return (time.perf_counter() - began) * 1e3

    pages, pings = [], []
    for n in range(calls):
        pages.append(await send(ShowPage(f"scene{n}", lines=(TextLine(0, f"number {n}"),))))
        await asyncio.sleep(PAUSE_S)
        pings.append(await send(Ping()))
        await asyncio.sleep(0.02)
    await transport.close()
    await air.close()
    return statistics.median(pages), statistics.median(pings)
