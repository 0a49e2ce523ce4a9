"""The cast, each a process of its own: broker, network, cloud, mini-app, witness, glasses, air tap,
and the daemon.

Knows how each is started, hurt and ended (by its own pid); decides nothing.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos.callers import BrokeOff, NotThere, request
from tests.chaos.miniapp import MANIFEST, PACKAGE
from tests.system import find

MOSQUITTO = find("mosquitto") or "mosquitto"
EDGE = "chaos"
HOST = "127.0.0.1"
SOON_S = 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def until(
    condition: Callable[[], Any], what: str, *, within_s: float = SOON_S, every_s: float = 0.02
) -> Any:
    """Poll until true. Raises TimeoutError naming what was waited for."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(every_s)
    raise TimeoutError(f"not within {within_s:g} s: {what}")


class Child:
    """One process, its log, and (when it announces itself) its first line of JSON. `tell`
    writes a line to its stdin.
    """

    def __init__(
        self,
        argv: list[str],
        log: Path,
        *,
        announces: bool = False,
        env: dict[str, str] | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if announces else out,
                stderr=out,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self.announcement: dict[str, Any] = {}
        if announces:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"{argv} said nothing: {self.said()}")
            self.announcement = json.loads(line)

    def said(self, most: int = 1500) -> str:
        return self.log.read_text(errors="replace")[-most:]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> Any:
        """One line out, one line of JSON back."""
        self.tell(line)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill9(self) -> None:
        """With everything it started: a daemon's voice, a cloud's apps."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self._shut()

    def stop(self) -> None:
        if self.alive:
            self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill9()
        self._shut()

    def _shut(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class Cast:
    """Everybody. `state` is where the daemon lives (perhaps on a small file system); records
    and logs are in `folder`.
    """

    def __init__(
        self,
        folder: Path,
        state: Path | None = None,
        *,
        glasses: bool = True,
        settings: str = "",
        stock_broker: bool = False,
    ) -> None:
        """`stock_broker`: the broker keeps its own limits (20 in flight, 1,000 waiting, nothing
        on disk).
        """
        self.folder = folder
        self.state = state or folder / "state"
        self.socket = folder / "s"
        self.broker_port = free_port()
        self.cloud_port = free_port()
        self._glasses = glasses
        self._settings = settings
        self._broker_limits = (
            ""
            if stock_broker
            else (
                "max_inflight_messages 64\nmax_queued_messages 10000\npersistence true\n"
                f"persistence_location {folder / 'broker'}/\nautosave_interval 1\n"
            )
        )
        self._offset = folder / "offset"
        self._lock = threading.RLock()
        self.children: dict[str, Child] = {}
        self.boot = ""
        self.step_clock(0.0)

    # -------------------------------------------------------------- coming on

    def start(self) -> "Cast":
        self.start_broker()
        app = self._start(
            "miniapp", "-m", "tests.chaos.miniapp", "0", str(self.folder / "effects.jsonl")
        )
        self.app_url = f"http://{HOST}:{app.announcement['port']}"
        proxy = self._start(
            "proxy",
            "-m",
            "tests.chaos.proxy",
            str(self.broker_port),
            str(self.folder / "network.jsonl"),
        )
        self.uplink_port = int(proxy.announcement["port"])
        self._start(
            "witness",
            "-m",
            "tests.chaos.cloudside",
            str(self.broker_port),
            EDGE,
            str(self.folder / "cloud.jsonl"),
        )
        self.start_cloud()
        self._hand_in_app()
        if self._glasses:
            mock = self._start(
                "glasses",
                "-m",
                "edge.cli",
                "sim",
                "mock:full",
                "--radio",
                f"tcp:{HOST}:0",
                "--control",
                str(self.folder / "m"),
                "--out",
                str(self.folder / "out"),
                "--json",
            )
            tap = self._start(
                "tap",
                "-m",
                "tests.chaos.tap",
                mock.announcement["radio"].rpartition(":")[2],
                str(self.folder / "air.bin"),
            )
            self.radio = f"tcp:{HOST}:{tap.announcement['port']}"
        self._write_settings()
        return self

    def _start(self, name: str, *words: str, announces: bool = True) -> Child:
        with self._lock:
            self.children[name] = child = Child(
                [sys.executable, *words], self.folder / f"{name}.log", announces=announces
            )
            return child

    def start_broker(self) -> None:
        config = self.folder / "mosquitto.conf"
        store = self.folder / "broker"
        store.mkdir(exist_ok=True)
        store.chmod(0o777)
        config.write_text(
            f"listener {self.broker_port} {HOST}\nset_tcp_nodelay true\nuser "
            f"root\nallow_anonymous true\n{self._broker_limits}"
        )
        with self._lock:
            self.children["broker"] = Child(
                [MOSQUITTO, "-c", str(config)], self.folder / "broker.log"
            )
        until(self._broker_answers, "the broker answers")

    def _broker_answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.broker_port), timeout=0.2):
            return True
        return False

    def end_broker(self, *, wiped: bool, hard: bool) -> None:
        """Stop the broker: with its store kept, or deleted. `hard`: by kill -9, so that what it
        had not saved is lost.
        """
        broker = self.children["broker"]
        broker.kill9() if hard else broker.stop()
        if wiped:
            for left in (self.folder / "broker").glob("*"):
                left.unlink()

    def start_cloud(self) -> None:
        self._start(
            "cloud",
            "-m",
            "edge.cli",
            "devcloud",
            "--http",
            f"{HOST}:{self.cloud_port}",
            "--broker",
            f"{HOST}:{self.broker_port}",
            "--state",
            str(self.folder / "cloud"),
            "--json",
        )

    def _hand_in_app(self) -> None:
        body = json.dumps({**MANIFEST, "publicUrl": self.app_url}).encode()
        where = f"http://{HOST}:{self.cloud_port}/api/apps/{PACKAGE}/tools"
        ask = urllib.request.Request(
            where, body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(ask, timeout=10) as answer:
            assert answer.status in (200, 201), answer.status

    def _write_settings(self) -> None:
        glasses = (
            f'radio = "{self.radio}"\nmodel = "mock:full"\n'
            if self._glasses
            else 'radio = "inproc"\nconnect = "paired"\n'  # none is paired: no radio is loaded
        )
        (self.folder / "glassd.toml").write_text(f"""
version = 1
[edge]
id = "{EDGE}"
state_dir = "{self.state}"
[glasses]
{glasses}backoff_min_s = 0.2
backoff_max_s = 1.0
[uplink]
host = "{HOST}"
port = {self.uplink_port}
tls = false
reconnect_min_s = 0.1
reconnect_max_s = 0.5
[cloud]
url = "http://{HOST}:{self.cloud_port}"
[audio]
speech = "off"
[policy]
confirmation_s = 5.0
cloud_may = ["glasses", "declared", "notes:add"]
[control]
socket = "{self.socket}"
group = ""
{self._settings}""")

    def move_state(self, state: Path) -> None:
        """The next daemon lives there."""
        self.state = state
        self._write_settings()

    def start_daemon(self) -> Child:
        words = [
            "-m",
            "tests.chaos.daemon",
            str(self.folder / "glassd.toml"),
            str(self._offset),
            *([self.boot] if self.boot else []),
        ]
        return self._start("daemon", *words, announces=False)

    def kill_daemon(self) -> None:
        self.children["daemon"].kill9()

    # -------------------------------------------------------------- asking and hurting

    def control(self, method: str, where: str, body: Any = None, *, timeout_s: float = 10.0) -> Any:
        return request(self.socket, method, where, body, timeout_s=timeout_s)[1]

    def status(self) -> dict[str, Any]:
        """The daemon's own word; an empty one while it does not answer."""
        with suppress(NotThere, BrokeOff):
            found: dict[str, Any] = self.control("GET", "/v1/status")
            return found
        return {}

    def answers(self) -> bool:
        return bool(self.status())

    def await_daemon(self) -> None:
        def up() -> bool:
            if not self.children["daemon"].alive:
                raise RuntimeError(f"the daemon ended by itself: {self.children['daemon'].said()}")
            return self.answers()

        until(up, "the daemon answers")

    def await_ready(self) -> None:
        """Uplink up, the mini-app's tools known, and the glasses there if there are any."""

        def ready() -> bool:
            status = self.status()
            if (
                not status
                or status["uplink"]["state"] != "up"
                or (self._glasses and status["glasses"]["state"] != "ready")
            ):
                return False
            tools = self.control("GET", "/v1/tools")["tools"]
            return any(tool["name"].startswith(PACKAGE) for tool in tools)

        until(ready, "uplink, tools and glasses are there", every_s=0.1)

    def running(self) -> list[str]:
        """Tokens the mini-app works on now."""
        with urllib.request.urlopen(f"{self.app_url}/running", timeout=5) as answer:
            found: list[str] = json.loads(answer.read())["running"]
            return found

    def step_clock(self, seconds: float) -> None:
        if not self._offset.exists():
            self._offset.write_bytes(struct.pack("<d", seconds))
            return
        with self._offset.open("r+b") as file:  # in place: the daemon has it mapped
            file.write(struct.pack("<d", seconds))

    def network(self, **order: Any) -> None:
        self.children["proxy"].tell(json.dumps(order))

    def invoke(self, **order: Any) -> None:
        self.children["witness"].tell(json.dumps({"do": "invoke", **order}))

    def wearer(self, **order: Any) -> dict[str, Any]:
        """The mock's own control channel."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(5)
            wire.connect(str(self.folder / "m"))
            wire.sendall(json.dumps(order).encode() + b"\n")
            said: dict[str, Any] = json.loads(wire.makefile().readline())
            return said

    def close(self) -> None:
        for name in ("daemon", "cloud", "tap", "glasses", "proxy", "witness", "miniapp", "broker"):
            if name in self.children:
                self.children[name].kill9() if name in (
                    "tap",
                    "proxy",
                    "witness",
                    "miniapp",
                ) else self.children[name].stop()
