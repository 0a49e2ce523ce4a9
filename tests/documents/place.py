"""A machine of its own for one document: a home, terminals, ports that are free. Commands run
as they are printed.
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from edge.control.client import ControlClient
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets
from tests.e2e.broker import free_port

ROOT = Path(__file__).parents[2]
SOON_S = 40.0
STOP_S = 15.0


class Place:
    """`run` waits for a command, `start` leaves it in a terminal, `type_into` is a person at
    one. `close()` ends all of them.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="glassd-docs-"))
        self.ports: dict[str, str] = {}
        self.terminals: list[Terminal] = []
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("GLASSD_", "XDG_", "PYTEST"))
        }
        self.env = {
            **kept,
            "HOME": str(self.folder),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "NO_COLOR": "1",
            "no_proxy": "*",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            "TERM": "dumb",
            # standard output and standard error in the order in which a terminal shows them
            "PYTHONUNBUFFERED": "1",
        }

    def with_own_ports(self, text: str) -> str:
        """The same text with a free port in the place of each that is printed."""

        def port(found: re.Match[str]) -> str:
            return self.ports.setdefault(found[0], str(free_port()))

        return re.sub(r"\b(?:8787|1884|6402|8001|8788)\b", port, text)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.with_own_ports(text), encoding="utf-8")
        return path

    def run(
        self,
        command: str,
        *,
        fine: tuple[int, ...] = (0,),
        given: str | None = None,
        within_s: float = 60.0,
    ) -> str:
        """Run a command as it is printed; what it says, errors included."""
        done = subprocess.run(
            ["bash", "-c", self.with_own_ports(command)],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            text=True,
            timeout=within_s,
            check=False,
        )
        assert done.returncode in fine, f"$ {command}\n{done.stdout}\nexit code {done.returncode}"
        return done.stdout

    def start(self, command: str) -> "Terminal":
        """Run a command in a terminal of its own."""
        terminal = Terminal(self.with_own_ports(command), self)
        self.terminals.append(terminal)
        return terminal

    def status(self) -> dict[str, object]:
        """What `glassd status --json` would print, without a process each time; {} where no
        daemon answers.
        """
        client = ControlClient(client_sockets(self.env))
        try:
            return dict(client.request("GET", "/v1/status")[1])
        except UserError:
            return {}

    def is_ready(self) -> bool:
        """The daemon wears its glasses and has the tools of its cloud, where it has one."""
        status = self.status()
        if not status or status["glasses"]["state"] != "ready":
            return False
        return (
            status["uplink"]["state"] == "off"
            or not status["uplink"].get("broker")
            or status["registry"]["origin"] == "cloud"
        )

    def until(self, condition: Callable[[], object], what: str, within_s: float = SOON_S) -> object:
        end = time.monotonic() + within_s
        while not (value := condition()):
            assert time.monotonic() < end, f"not within {within_s:g} s: {what}\n" + "\n".join(
                t.said for t in self.terminals
            )
            time.sleep(0.05)
        return value

    def ask_mock(self, where: str, **order: object) -> dict[str, object]:
        """One request on a mock's control channel."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(SOON_S)
            wire.connect(str(self.folder / where))
            wire.sendall(json.dumps(order).encode() + b"\n")
            with wire.makefile() as answers:
                return json.loads(answers.readline())

    def close(self) -> None:
        for terminal in reversed(self.terminals):
            terminal.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Terminal:
    """One command on a terminal of its own, with a person before it."""

    def __init__(self, command: str, place: Place) -> None:
        self.command = command
        self.said = ""
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=place.folder,
            env=place.env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def read(self, seconds: float = 0.0) -> str:
        """Everything that was printed until now, or within this time."""
        while self._master >= 0 and select.select([self._master], [], [], seconds)[0]:
            seconds = 0.0
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""  # nobody has the terminal open any more
            if not data:
                break
            self.said += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return self.said

    def wait_for(self, words: str, *, within_s: float = SOON_S, after: int = 0) -> str:
        """Wait until these words were printed (a regular expression)."""
        end = time.monotonic() + within_s
        while not re.search(words, self.read(0.1)[after:]):
            assert time.monotonic() < end, (
                f"{words!r} was not printed within {within_s:g} s by {self.command}:\n{self.said}"
            )
            assert self.process.poll() is None or re.search(words, self.read(0.2)[after:]), (
                f"{self.command} ended:\n{self.said}"
            )
        return self.said

    def type(self, line: str) -> int:
        """Type a line; returns how much had been printed before it."""
        before = len(self.read())
        os.write(self._master, line.encode() + b"\n")
        return before

    def end(self, code: int | None = None) -> str:
        """Wait until it ends by itself; what it printed."""
        end = time.monotonic() + SOON_S
        while self.process.poll() is None:
            self.read(0.1)
            assert time.monotonic() < end, f"{self.command} does not end:\n{self.said}"
        self.read(0.2)
        assert code is None or self.process.returncode == code, (
            f"{self.command} ended with {self.process.returncode}:\n{self.said}"
        )
        return self.said

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(STOP_S)
        self.read()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
