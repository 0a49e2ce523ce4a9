"""glassd as its users run it: the CLI in processes of its own, ended by pid. It imports nothing
of what it tests.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos.callers import BrokeOff, NotThere, request

CLI = [sys.executable, "-m", "edge.cli"]
SOON_S = 30.0
WILL_DELAY_S = 4


class Child:
    """One process; with `announces`, its first line of JSON is `announcement`."""

    def __init__(
        self,
        argv: list[str],
        *,
        log: Path,
        env: dict[str, str] | None = None,
        announces: bool = False,
    ) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                argv,
                stdout=subprocess.PIPE if announces else out,
                stderr=out,
                env={**os.environ, **(env or {})},
            )
        self.announcement: dict[str, Any] = {}
        if announces:
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            assert line, f"{argv} said nothing: {self.said()}"
            self.announcement = json.loads(line)
            threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]

    def kill9(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self._shut()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(15)
        self._shut()
        return code

    def _shut(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


class House:
    """Mock, cloud and daemon as three processes; the fourth is whoever asks."""

    def __init__(
        self, folder: Path, *, model: str = "mock:display", broker: str = "embedded"
    ) -> None:
        self.folder = folder
        self.model = model
        self.broker = broker
        self.children: list[Child] = []
        self.radio = "tcp:127.0.0.1:0"
        self.env = {"GLASSD_SOCKET": str(folder / "control.sock"), "NO_COLOR": "1"}

    # -------------------------------------------------------------- the cast

    def start_mock(self) -> Child:
        """The port is kept over restarts, as an address of real glasses would be."""
        self.mock = self._child(
            "sim",
            self.model,
            "--radio",
            self.radio,
            "--control",
            str(self.folder / "mock.sock"),
            "--out",
            str(self.folder),
            "--json",
            announces=True,
        )
        self.radio = self.mock.announcement["radio"]
        return self.mock

    def start_cloud(self) -> Child:
        self.cloud = self._child(
            "devcloud",
            "--http",
            "127.0.0.1:0",
            "--broker",
            self.broker,
            "--state",
            str(self.folder / "cloud"),
            "--json",
            announces=True,
        )
        return self.cloud

    def start_daemon(self) -> Child:
        host, _, port = self.cloud.announcement["mqtt"].rpartition(":")
        config = self.folder / "glassd.toml"
        config.write_text(f"""
version = 1
[edge]
id = "e2e"
state_dir = "{self.folder / "state"}"
[glasses]
radio = "{self.radio}"
model = "{self.model}"
backoff_max_s = 1.0
[uplink]
host = "{host}"
port = {port}
tls = false
reconnect_max_s = 1.0
will_delay_s = {WILL_DELAY_S}
[cloud]
url = "{self.cloud.announcement["http"]}"
[control]
socket = "{self.folder / "control.sock"}"
group = ""
""")
        self.daemon = self._child("run", "--config", str(config))
        return self.daemon

    def start(self) -> "House":
        self.start_mock()
        self.start_cloud()
        self.start_daemon()
        return self.wait_until_ready()

    def start_what_was_killed(self) -> "House":
        """Start the mock and the daemon where they do not run."""
        if self.mock.process.poll() is not None:
            self.start_mock()
        if self.daemon.process.poll() is not None:
            self.start_daemon()
        return self.wait_until_ready()

    def wait_until_ready(self) -> "House":
        self.until(lambda: self.status()["glasses"]["state"] == "ready", "glasses ready")
        self.until(lambda: self.status()["uplink"]["state"] == "up", "uplink up")
        self.until(lambda: self.status()["registry"]["origin"] == "cloud", "registry synced")
        return self

    def _child(self, *words: str, announces: bool = False) -> Child:
        child = Child(
            [*CLI, *words], log=self.folder / f"{words[0]}.log", env=self.env, announces=announces
        )
        self.children.append(child)
        return child

    def close(self) -> None:
        for child in reversed(self.children):
            child.stop()

    # -------------------------------------------------------------- asking

    def glassd(self, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLI, *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **self.env},
            check=False,
        )

    def status(self) -> dict[str, Any]:
        """Asked on the socket, because it is asked often and a process for each would keep the
        machine busy.
        """
        with suppress(NotThere, BrokeOff):
            return request(self.folder / "control.sock", "GET", "/v1/status", timeout_s=10)[1]
        return {"glasses": {"state": ""}, "uplink": {"state": ""}}

    def lens(self) -> list[str]:
        """The mock's own word, over its own channel: what came over the air."""
        return self.ask_mock(do="lens")["lines"]

    def ask_mock(self, **order: Any) -> dict[str, Any]:
        import socket

        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(10)
            wire.connect(str(self.folder / "mock.sock"))
            wire.sendall(json.dumps(order).encode() + b"\n")
            return json.loads(wire.makefile().readline())

    def until(self, condition: Callable[[], Any], what: str, within_s: float = SOON_S) -> Any:
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.05)
        raise AssertionError(
            f"not within {within_s} s: {what}\n" + "\n".join(c.said() for c in self.children)
        )
