"""From the control API to a lit lens, beside a raw write on the same kind of link: what
everything in glassd costs.
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

CONFIG = """version = 1
[glasses]
radio = "{radio}"
[audio]
speech = "off"
[control]
group = ""
"""


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("glassd", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))


def measure(calls: int) -> list[tuple[str, float, str, float]]:
    """[(what, median ms, baseline, its median ms)]: the daemon's way, then the bare link to the
    same mock.
    """
    with tempfile.TemporaryDirectory() as name, mock() as radio:
        folder = Path(name)
        with process.daemon(folder, CONFIG.format(radio=radio)):
            through = _through_the_daemon(folder / "glassd" / "control.sock", calls)
        raw = asyncio.run(_raw_writes(radio, calls))
    return [
        ("control API to lens acknowledged", through, "a raw write answered on the same link", raw)
    ]


@contextmanager
def mock() -> Iterator[str]:
    """Simulated glasses in a process of their own; gives their radio."""
    glasses = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "edge.cli",
            "sim",
            "mock:display",
            "--radio",
            "tcp:127.0.0.1:0",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert glasses.stdout is not None
        yield json.loads(glasses.stdout.readline())["radio"]
    finally:
        os.kill(glasses.pid, signal.SIGTERM)
        glasses.wait(10)


def _through_the_daemon(control: Path, calls: int) -> float:
    wire = UnixConnection(control)
    until_ready(wire)
    taken = []
    for n in range(calls):
        args = {"text": f"number {n}", "duration_s": 0.1}
        body = json.dumps({"tool": "glasses:show_text", "args": args, "wait": "answer"})
        began = time.perf_counter()
        wire.request("POST", "/v1/call", body, {"Content-Type": "application/json"})
        answer = json.loads(wire.getresponse().read())
        taken.append((time.perf_counter() - began) * 1e3)
        assert answer["meta"]["delivery"] == "shown", answer
        time.sleep(0.5)  # dark again: for how long a page stays is policy, not cost
    return statistics.median(taken)


def until_ready(wire: UnixConnection) -> None:
    for _ in range(200):
        wire.request("GET", "/v1/status")
        if json.loads(wire.getresponse().read())["glasses"]["state"] == "ready":
            return
        time.sleep(0.1)
    raise SystemExit("the mock glasses did not become ready")


async def _raw_writes(radio: str, calls: int) -> float:
    """A ping of the profile as bare bytes: one GATT write without response, one notification
    back.
    """
    from firmware_bridge.codec import NEED_DATA, Role
    from firmware_bridge.codecs.reference.codec import ReferenceCodec
    from firmware_bridge.messages import Ping
    from firmware_bridge.transports import ble, ble_connection

    air = await ble.open_radio(radio)
    transport = await ble_connection.connect(air, await ble.scan(air, timeout_s=10), timeout_s=10)
    codec = ReferenceCodec(Role.CENTRAL, max_packet=transport.max_packet)
    packets = transport.packets()
    taken = []
    for _ in range(calls):
        codec.send(Ping(), time.monotonic())
        began = time.perf_counter()
        for packet in codec.packets_to_send(time.monotonic()):
            await transport.write(packet)
        answered = False
        while not answered:
            codec.receive_packet(await anext(packets), time.monotonic())
            while codec.next_event() is not NEED_DATA:
                answered = True
        taken.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(0.02)
    await transport.close()
    await air.close()
    return statistics.median(taken)
