"""Listing 1,000 cached tools: in the daemon (`snapshot.entries()`), and as a client gets them (`GET
/v1/tools`): again, unchanged (304), and after a change.

The daemon is a real one whose registry came from disk, as after a restart without its cloud. The
baseline is the JSON of the same list being written, once, and a server that sends the same bytes.
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
        with process.daemon(folder, CONFIG), process.floor(0, folder) as bare:
            wire = UnixConnection(folder / "glassd" / "control.sock")
            body = _get(wire)
            listed = json.loads(body)["tools"]
            assert len(listed) >= TOOLS, f"{len(listed)} tools are listed; the cache was not taken"
            outside = _timed(lambda: _get(wire), runs)
            unchanged = _unchanged(wire, runs)
            changed = _changed(folder / "glassd", max(20, runs // 10))
            same = _timed(_floor(UnixConnection(bare), body), runs)
        dumps = _timed(lambda: json.dumps(listed), runs)
    rows = (
        ("entries() of 1,000 tools", inside, "json.dumps of it", dumps),
        ("GET /v1/tools, 1,000 tools", outside, "json.dumps of it", dumps),
        ("GET /v1/tools, 1,000 tools", outside, "a server that sends the same", same),
        ("  unchanged (304)", unchanged, "the whole", outside),
        ("  after a tool was switched", changed, "the whole", outside),
    )
    return [
        (f"{what}, {name}", taken[place], f"{base}, {name}", theirs[place])
        for what, taken, base, theirs in rows
        if taken
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


def _unchanged(wire: UnixConnection, runs: int) -> list[float]:
    """Return the ms of each answer to a client that has the list already; none without ETags."""
    wire.request("GET", "/v1/tools")
    answer = wire.getresponse()
    answer.read()
    if not (tag := answer.headers.get("ETag")):
        return []

    def ask() -> None:
        wire.request("GET", "/v1/tools", headers={"If-None-Match": tag})
        again = wire.getresponse()
        again.read()
        assert again.status == 304, again.status

    return _timed(ask, runs)


def _changed(sockets: Path, runs: int) -> list[float]:
    """Return the ms of each first list after a change."""
    wire, owner = (UnixConnection(sockets / name) for name in ("control.sock", "owner.sock"))
    taken = []
    for number in range(runs):
        body = json.dumps({"tool": "clock:now", "enabled": bool(number % 2)})
        owner.request("PUT", "/v1/tools", body, {"Content-Type": "application/json"})
        answer = owner.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        began = time.perf_counter()
        _get(wire)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.quantiles(taken, n=100)


def _floor(bare: UnixConnection, body: bytes) -> Callable[[], Any]:
    bare.request("PUT", "/body", body)
    bare.getresponse().read()

    def ask() -> bytes:
        bare.request("GET", "/body")
        return bare.getresponse().read()

    return ask


def _timed(one: Callable[[], Any], runs: int) -> list[float]:
    one()
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        one()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.quantiles(taken, n=100)
