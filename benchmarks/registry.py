"""A registry of 10,000 tools from 500 apps, beside a bare dict scan in the same run: sync, verify,
compile, filter, list, memory.

The daemon's rows are of a real `glassd run` that began with that registry on disk and its cloud
away; the others are of its own `ToolRegistry` in this process, without the control socket.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import process
from benchmarks.lens import UnixConnection
from benchmarks.listing import CONFIG
from benchmarks.process import REGISTRY
from benchmarks.tools import CLOUD, document
from edge.core.tools.registry_sync import Fetched
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.registry import ToolRegistry
from firmware_bridge.capabilities import Capabilities, Origin
from tools_cache.registry.registry_store import Generation, RegistryStore
from tools_cache.schema import KEPT, check_schema

APPS, TOOLS_EACH = 500, 20
TOOLS = APPS * TOOLS_EACH
CALLED = 1000
"""Tools that are called, each once: far more than the compiled validators that are kept."""
BAR = 8.0
"""`glassd tools` without a daemon, in `python -c pass`."""

Row = tuple[str, float, str, str, float]
"""(what, value, unit, baseline, its value)."""


def measure(runs: int) -> list[Row]:
    """Every row; baselines are of the same run."""
    body = document(APPS, TOOLS_EACH)
    return [*cold(runs), *asyncio.run(_in_process(body)), *_daemon(body, runs)]


def cold(runs: int) -> list[Row]:
    """The answer without a daemon, from what a stranger's home has: the tools of this
    installation.
    """
    with tempfile.TemporaryDirectory() as home:
        env = {
            **process.environment(),
            "HOME": home,
            "XDG_RUNTIME_DIR": home,
            "XDG_STATE_HOME": home,
            "XDG_CONFIG_HOME": home,
        }
        bare = process.wall_ms([sys.executable, "-c", "pass"], runs=runs, env=env)
        cold_ms = process.wall_ms([sys.executable, "-m", "edge.cli", "tools"], runs=runs, env=env)
    return [("glassd tools, no daemon, network or cloud", cold_ms, "ms", "python -c pass", bare)]


# ------------------------------------------------------------------ in this process


class _Cloud:
    """Serves one document as fast as memory gives it."""

    url = CLOUD

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def fetch(self, have: Generation | None, *, past_caches: bool) -> Fetched:  # noqa: ARG002 - as the real one
        return Fetched(self._body, "registry", '"e"')


async def _in_process(body: bytes) -> list[Row]:
    parse_ms = _ms(lambda: json.loads(body))
    bare = {
        f"{app['packageName']}:{tool['name']}": {**tool, "needs": app["hardwareRequirements"]}
        for app in json.loads(body)["apps"]
        for tool in app["tools"]
    }
    scan_ms = _ms(lambda: [name for name, tool in bare.items() if not tool["needs"]])
    dump_ms = _ms(lambda: json.dumps(list(bare.values())))
    with tempfile.TemporaryDirectory() as folder:
        registry = ToolRegistry(
            builtin=REGISTRY,
            state=Path(folder),
            bus=Bus(),
            clock=Clock.system(),
            cloud=_Cloud(body),
        )
        began = time.perf_counter()
        await registry.sync()
        rows: list[Row] = [
            (
                f"sync, verify, check and store {TOOLS} tools",
                (time.perf_counter() - began) * 1e3,
                "ms",
                "json.loads of it",
                parse_ms,
            )
        ]
    rows.append(
        (
            f"compile {TOOLS} validators, one by one",
            _ms(lambda: [check_schema(tool["inputSchema"]) for tool in bare.values()], times=1),
            "ms",
            "json.dumps of their tools",
            dump_ms,
        )
    )
    tools = [
        entry.definition for entry in registry.snapshot().entries() if entry.definition.name in bare
    ]
    rows.append(
        (
            f"check arguments of {CALLED} different tools ({KEPT} validators kept)",
            _ms(
                lambda: [registry.check_args(tool, {"query": "x"}) for tool in tools[:CALLED]],
                times=1,
            ),
            "ms",
            "a bare dict scan",
            scan_ms,
        )
    )
    return [*rows, *_looking(registry, bare, scan_ms)]


def _looking(registry: ToolRegistry, bare: dict[str, Any], scan_ms: float) -> list[Row]:
    """Filter by other glasses, list, find one."""
    glasses = [
        Capabilities.of("m", {"display": on}, origin=Origin.FIRMWARE, now=0.0)
        for on in (True, False)
    ]
    names, turn = list(bare), iter(range(10**9))
    filter_ms = _ms(lambda: registry.set_capabilities(glasses[next(turn) % 2], stale=False))
    list_ms = _ms(lambda: [entry for entry in registry.snapshot().entries() if not entry.hidden])
    find_ms = _ms(lambda: [registry.snapshot().find(name) for name in names])
    get_ms = _ms(lambda: [bare.get(name) for name in names])
    return [
        ("filter them by other glasses", filter_ms, "ms", "a bare dict scan", scan_ms),
        ("list the tools that are offered", list_ms, "ms", "a bare dict scan", scan_ms),
        ("find each of them by name", find_ms, "ms", "dict.get of each", get_ms),
    ]


# ------------------------------------------------------------------ a whole daemon


def _daemon(body: bytes, runs: int) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as name,
        process.daemon(Path(name), CONFIG) as (pid, bare_ready, _),
    ):
        time.sleep(2)  # start-up work is over
        bare_mib = process.rss_mib(pid)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        RegistryStore(folder / "state" / "registry").save(Generation(body, CLOUD))
        with process.daemon(folder, CONFIG) as (_, first_ready, _):
            pass
        with process.daemon(folder, CONFIG) as (pid, ready, _):
            time.sleep(2)
            mib = process.rss_mib(pid)
            wire = UnixConnection(folder / "glassd" / "control.sock")
            listed = json.loads(_get(wire, "/v1/tools?all=1"))["tools"]
            assert len(listed) >= TOOLS, f"{len(listed)} tools are listed; the cache was not taken"
            list_ms = _ms(lambda: _get(wire, "/v1/tools?all=1"), times=runs)
            dump_ms = _ms(lambda: json.dumps(listed), times=runs)
            after_mib = process.rss_mib(pid)
    return [
        ("time to READY with them", ready, "ms", "without them", bare_ready),
        ("  the first time, without an index", first_ready, "ms", "without them", bare_ready),
        ("GET /v1/tools?all=1", list_ms, "ms", "json.dumps of it", dump_ms),
        ("idle RSS with them", mib, "MiB", "without them", bare_mib),
        ("RSS after listing all of them", after_mib, "MiB", "without them", bare_mib),
    ]


def _get(wire: UnixConnection, path: str) -> bytes:
    wire.request("GET", path)
    return wire.getresponse().read()


def _ms(one: Callable[[], Any], *, times: int = 5) -> float:
    """Median wall time, in ms."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        one()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)
