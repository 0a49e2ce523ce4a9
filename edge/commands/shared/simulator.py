"""The control channel of simulated glasses, as `glassd sim --control` opens it."""

import json
import os
import socket
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from edge.runtime.paths import client_sockets

NAME: Final = "mock.sock"
"""The control channel of the simulator that the demos start, beside the daemon's socket."""
ANSWER_S: Final = 3.0
MAX_ANSWER: Final = 64 * 1024


class SimulatorSilent(Exception):
    """The simulator did not answer; the text says why."""


class Simulator:
    """The control channel of simulated glasses."""

    def __init__(self, where: str) -> None:
        self.where = where

    def is_there(self) -> bool:
        try:
            self._connect(ANSWER_S).close()
        except OSError:
            return False
        return True

    def do(self, what: str) -> str:
        """Do what the wearer does; return why it failed, or ""."""
        try:
            return str(self.ask({"do": what}).get("error") or "")
        except SimulatorSilent as e:
            return f"the simulator does not answer: {e}"

    def ask(self, request: Mapping[str, Any], *, within_s: float = ANSWER_S) -> dict[str, Any]:
        """Send one request and return its answer. Raises `SimulatorSilent`."""
        try:
            with self._connect(within_s) as channel, channel.makefile("rb") as answers:
                channel.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(answers.readline(MAX_ANSWER))
        except (OSError, ValueError) as e:
            why = e.strerror if isinstance(e, OSError) and e.strerror else "not understood"
            raise SimulatorSilent(why) from None
        return answer if isinstance(answer, dict) else {}

    def _connect(self, within_s: float) -> socket.socket:
        if self.where.startswith("tcp:"):
            host, _, port = self.where.removeprefix("tcp:").rpartition(":")
            return socket.create_connection((host, int(port)), timeout=within_s)
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(within_s)
        try:
            channel.connect(self.where)
        except OSError:
            channel.close()
            raise
        return channel


def simulator_beside(args: Namespace) -> Simulator | None:
    """Return the simulator that --control names, else the one beside the daemon's socket that
    answers; None without one.
    """
    if args.control:
        return Simulator(args.control)
    sockets = (Path(args.socket),) if args.socket else client_sockets(os.environ)
    beside = next((path.with_name(NAME) for path in sockets if path.exists()), None)
    found = None if beside is None else Simulator(str(beside))
    return found if found is not None and found.is_there() else None
