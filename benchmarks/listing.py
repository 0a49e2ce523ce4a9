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
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.registry import ToolRegistry
from tools_cache.registry import manifest
from tools_cache.registry.registry_store import Generation, RegistryStore

TOOLS = 1000
BAR_MS = 5.0
"""The most ms that the 99th percentile of listing 1,000 cached tools may take."""
CLOUD = "http://127.0.0.1:9"
"""The discard port: a cloud that is away, so that what is listed is what was cached."""
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
        RegistryStore(folder / "state" / "registry").save(Generation(_document(), CLOUD))
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


def _document() -> bytes:
    """A registry of 50 apps with 20 tools each, as the cloud serves it."""
    apps = [
        {
            "packageName": f"com.example.app{a:02}",
            "name": f"App {a}",
            "hardwareRequirements": [],
            "tools": [_tool(f"look_{t:02}") for t in range(20)],
        }
        for a in range(TOOLS // 20)
    ]
    sha256 = manifest.digest(apps)
    return json.dumps({"version": f"1.0.{sha256[:8]}", "sha256": sha256, "apps": apps}).encode()


def _tool(name: str) -> dict[str, Any]:
    words = {"type": "string", "minLength": 1, "maxLength": 200, "description": "What to look for."}
    return {
        "name": name,
        "description": f"Finds things in the collection that {name} keeps, best match first.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": words, "top_k": {"type": "integer", "default": 3}},
            "required": ["query"],
            "additionalProperties": False,
        },
    }
