"""Listing 1,000 cached tools: in the daemon (`snapshot.entries()`), and as a client gets them (`GET
/v1/tools`).

The daemon is a real one whose registry came from disk, as after a restart without its cloud. The
baseline is the JSON of the same list being written, once.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import process
from benchmarks.lens import UnixConnection
from benchmarks.process import REGISTRY
from benchmarks.tools import CLOUD, document
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.registry import ToolRegistry
from tools_cache.registry.registry_store import Generation, RegistryStore

TOOLS = 1000
BAR_MS = 5.0
"""The most ms that the 99th percentile of listing 1,000 cached tools may take."""
CONFIG = f"""version = 1
[glasses]
radio = "bluez"
[cloud]
url = "{CLOUD}"
[audio]
speech = "off"
[control]
group = ""
"""


def measure(runs: int) -> list[tuple[str, float, str, float]]:
    """[(what, ms, baseline, its ms)]: median and 99th percentile, in the daemon and over the
    control socket.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        RegistryStore(folder / "state" / "registry").save(
            Generation(document(TOOLS // 20, 20, displays=False), CLOUD)
        )
        inside = _timed(_inside(folder / "state" / "registry"), runs)
        with process.daemon(folder, CONFIG):
            wire = UnixConnection(folder / "glassd" / "control.sock")
            listed = json.loads(_get(wire))["tools"]
            assert len(listed) >= TOOLS, f"{len(listed)} tools are listed; the cache was not taken"
            outside = _timed(lambda: _get(wire), runs)
        dumps = _timed(lambda: json.dumps(listed), runs)
    return [
        (f"{what}, {name}", taken[place], f"json.dumps of it, {name}", dumps[place])
        for what, taken in (
            ("entries() of 1,000 tools", inside),
            ("GET /v1/tools, 1,000 tools", outside),
        )
        for place, name in ((49, "p50"), (98, "p99"))
    ]


def _inside(state: Path) -> Callable[[], Any]:
    class Cloud:
        url = CLOUD

        async def fetch(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    registry = ToolRegistry(
        builtin=REGISTRY, state=state, bus=Bus(), clock=Clock.system(), cloud=Cloud()
    )
    registry.load()
    return lambda: [entry for entry in registry.snapshot().entries() if not entry.hidden]


def _get(wire: UnixConnection) -> bytes:
    wire.request("GET", "/v1/tools")
    return wire.getresponse().read()


def _timed(one: Callable[[], Any], runs: int) -> list[float]:
    one()
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        one()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.quantiles(taken, n=100)
