"""One MCP tool call as an agent waits for it, beside the bare SDK and beside mcp-proxy: over stdio,
and over HTTP to a stdio server.

All in one run, in turns, with the same client, so that the machine's moods meet all alike. Ours has
validation, policy, store and audit on. mcp-proxy lives in a venv of its own, because it wants
another SDK.
"""

import asyncio
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import process
from benchmarks.table import Lines, Row
from benchmarks.usage import Usage

PROXY = "mcp-proxy==0.13.0"
PROXY_VENV = process.HERE / ".venv-mcp-proxy"
ECHO = [sys.executable, "-m", "benchmarks.mcp_echo"]
TEXT = {"text": "hello, glasses"}
BLOCKS = 10
RATE = "100000"
"""Calls a minute: agents get fewer, unless their owner says otherwise."""
WARM_UP = 30
READY_S = 40.0
BARS = {"a tool of glassd over stdio": 3.0, "HTTP to an upstream stdio server": 8.0}
"""ms, p50."""
CONFIG = """\
version = 1
[edge]
state_dir = "{folder}/state"
[glasses]
radio = "inproc"
[control]
socket = "{folder}/control.sock"
group = ""
[audit]
enabled = true
[policy]
rate_limits = {{ "clock:now" = {{ calls = 100000, window = 60 }} }}
[[mcp.servers]]
id = "bench"
command = "{python}"
args = ["-m", "benchmarks.mcp_echo"]
env = {{ PYTHONPATH = "{path}" }}
allowed_tools = ["*"]
trusted = true
confirm = "never"
"""


class Way(NamedTuple):
    """One way to a tool."""

    name: str
    client: Any
    tool: str
    args: dict[str, Any]


def measure(calls: int) -> Lines:
    """Yield p50 and p95 of each way, and what the daemon used; a way that is not there is named on
    stderr and left out.
    """
    warnings.simplefilter("ignore")
    yield from asyncio.run(_measure(calls))


async def _measure(calls: int) -> list[Row]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glassd-bench-")))
        path = process.environment()["PYTHONPATH"]
        config = CONFIG.format(folder=folder, python=sys.executable, path=path)
        pid, _, _ = stack.enter_context(process.daemon(folder, config))
        ways = await _over_stdio(stack, folder)
        usage, made = Usage(pid, folder / "state"), calls // BLOCKS * BLOCKS + WARM_UP
        with usage.of(made):  # what is not glassd's own way does not reach the daemon
            stdio = await _taken_in_turns(ways, calls)
        http = await _taken_in_turns(await _over_http(stack, folder), calls)
    rows = _rows(
        "glassd, its own tool, stdio", stdio["glassd"], "the bare SDK, stdio", stdio["sdk"]
    )
    rows += usage.rows("glassd, its own tool, the daemon alone")
    baseline, name = (
        (http["proxy"], "mcp-proxy, HTTP to stdio")
        if "proxy" in http
        else (http["sdk"], "the bare SDK, HTTP")
    )
    rows += _rows("glassd, HTTP to an upstream stdio server", http["glassd"], name, baseline)
    rows += _rows(f"{name} itself", baseline, "the bare SDK, HTTP", http["sdk"])
    return rows


def _rows(what: str, ours: list[float], name: str, theirs: list[float]) -> list[Row]:
    def at(times: list[float], percent: int) -> float:
        return statistics.quantiles(times, n=100)[percent - 1] * 1e3

    return [
        Row(f"{what}, p{n}", at(ours, n), "ms", f"{name}, p{n}", at(theirs, n)) for n in (50, 95)
    ]


async def _taken_in_turns(ways: list[Way], calls: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for way in ways:
        await _timed(way, WARM_UP)
    for _ in range(BLOCKS):
        for way in ways:
            times[way.name] += await _timed(way, max(1, calls // BLOCKS))
    return times


async def _timed(way: Way, calls: int) -> list[float]:
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        result = await way.client.call_tool(way.tool, way.args)
        times.append(time.perf_counter() - began)
        assert not result.is_error, f"{way.name}: {result.content}"
    return times


# ------------------------------------------------------------------ the ways


async def _over_stdio(stack: AsyncExitStack, folder: Path) -> list[Way]:
    sdk = await stack.enter_async_context(_client(_command(ECHO)))
    ours = await stack.enter_async_context(
        _client(
            _command(
                [
                    sys.executable,
                    "-m",
                    "edge.cli",
                    "mcp",
                    "--rate",
                    RATE,
                    "--socket",
                    str(folder / "control.sock"),
                ]
            )
        )
    )
    return [
        Way("sdk", sdk, "echo", TEXT),
        Way("glassd", ours, "clock__now", {"timezone": "Europe/Berlin"}),
    ]


async def _over_http(stack: AsyncExitStack, folder: Path) -> list[Way]:
    socket_path = str(folder / "control.sock")
    ports = {"sdk": _free_port(), "glassd": _free_port(), "proxy": _free_port()}
    commands = {
        "sdk": [*ECHO, "--http", str(ports["sdk"])],
        "glassd": [
            sys.executable,
            "-m",
            "edge.cli",
            "mcp",
            "--rate",
            RATE,
            "--http",
            f"127.0.0.1:{ports['glassd']}",
            "--socket",
            socket_path,
        ],
        "proxy": _proxy(ports["proxy"]),
    }
    ways = []
    for name, command in commands.items():
        if command:
            stack.enter_context(_running(command, folder / f"{name}.log", ports[name]))
            client = await stack.enter_async_context(_client(f"http://127.0.0.1:{ports[name]}/mcp"))
            ways.append(Way(name, client, "bench__echo" if name == "glassd" else "echo", TEXT))
    return ways


def _proxy(port: int) -> list[str]:
    """Return mcp-proxy's command in its own venv; without a package index there is none."""
    if why := process.install_in_venv(PROXY, PROXY_VENV):
        print(f"NOTE: mcp-proxy is left out: {why}", file=sys.stderr)
        return []
    return [
        str(PROXY_VENV / "bin" / "mcp-proxy"),
        "--pass-environment",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--",
        *ECHO,
    ]


def _command(words: list[str]) -> Any:
    from mcp.client.stdio import StdioServerParameters

    env = {"PYTHONPATH": process.environment()["PYTHONPATH"]}
    return StdioServerParameters(command=words[0], args=words[1:], env=env)


@asynccontextmanager
async def _client(server: Any) -> AsyncIterator[Any]:
    from mcp.client.client import Client

    async with Client(server, read_timeout_seconds=READY_S) as client:
        yield client


@contextmanager
def _running(command: list[str], log: Path, port: int) -> Iterator[None]:
    """Run a server until the block ends; it listens when the block begins."""
    with log.open("wb") as out:
        child = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env=process.environment(),
        )
    try:
        end = time.monotonic() + READY_S
        while child.poll() is None and time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise RuntimeError(
                f"{command[:4]} does not listen: {log.read_text(errors='replace')[-800:]}"
            )
        yield
    finally:
        child.terminate()
        child.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
