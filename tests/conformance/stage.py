"""What the suite is let loose on: a daemon with the fixtures as an upstream server, and `glassd mcp
--http` in front of it.

It does not judge. Everything is a process of its own, as it ships; only the names of the fixtures
and the suite's own prompts and resources come from `serve.py`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from edge.control.client import ControlClient
from edge.runtime.errors import UserError
from tests.conformance.node import ROOT

READY_S: Final = 60.0
FIXTURES: Final = "fixtures"
"""The id of the upstream server; its tools are `fixtures:test_simple_text` and so on."""
CONFIG: Final = """\
version = 1
[edge]
id = "conformance"
state_dir = "{state}"
[glasses]
radio = "inproc"
[control]
socket = "{socket}"
group = ""
[tools]
offered_max = 128
"""
UPSTREAM: Final = """\
[[mcp.servers]]
id = "fixtures"
command = "{python}"
args = ["-m", "tests.conformance.fixture_server"]
env = {{ PYTHONPATH = "{root}" }}
cwd = "{root}"
allowed_tools = ["*"]
trusted = true
confirm = "never"
"""


@contextmanager
def daemon(folder: Path, *, upstream: bool = True) -> Iterator[Path]:
    """Give the control socket of a daemon that answers; with `upstream` once the fixtures are
    in its registry.
    """
    control, config = folder / "control.sock", folder / "glassd.toml"
    text = CONFIG + UPSTREAM if upstream else CONFIG
    config.write_text(
        text.format(state=folder / "state", socket=control, python=sys.executable, root=ROOT),
        encoding="utf-8",
    )
    with process(
        [sys.executable, "-m", "edge.cli", "run", "--config", str(config)], folder / "daemon.log"
    ):
        _until_listed(control, folder / "daemon.log", f"{FIXTURES}:" if upstream else "clock:")
        yield control


@contextmanager
def served(folder: Path, control: Path) -> Iterator[str]:
    """Give the address of a `glassd mcp --http` in fixture mode."""
    command = [
        sys.executable,
        "-m",
        "tests.conformance.serve",
        "--http",
        "127.0.0.1:0",
        "--socket",
        str(control),
    ]
    with process(command, folder / "mcp.log") as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line:
            raise RuntimeError(
                "glassd mcp did not start:\n"
                f"{(folder / 'mcp.log').read_text(errors='replace')[-2000:]}"
            )
        yield str(json.loads(line)["url"])


@contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a child whose first line on stdout may be read; ended by its pid."""
    with log.open("ab") as err:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        yield child
    finally:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(15)
        if child.poll() is None:
            child.kill()
            child.wait()
        assert child.stdout is not None
        child.stdout.close()


def _until_listed(control: Path, log: Path, name: str) -> None:
    client, end = ControlClient((control,)), time.monotonic() + READY_S
    seen: Any = None
    while time.monotonic() < end:
        try:
            _, seen = client.request("GET", "/v1/tools")
            if any(tool["name"].startswith(name) for tool in seen["tools"]):
                return
        except UserError as e:
            seen = e.message
        time.sleep(0.05)
    words = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"{name} was not listed in {READY_S:.0f} s: {str(seen)[:300]}\n{words}")
