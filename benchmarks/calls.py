"""The orchestrator's own cost per call: parse → checks → route → admit → run → intents → present →
audit.

No transport and no fsync: the real orchestrator, registry, checks and wire forms over ports in
memory. The baseline is what no call can do without: a task of its own, its arguments validated, its
envelope written.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.memory import (
    ANSWER,
    ConstantTools,
    InstantStage,
    MemoryCalls,
    MemoryNotes,
    MemorySessions,
    NoConfirmations,
    NoResults,
    NothingPending,
    ReadyGlasses,
    SilentUplink,
)
from benchmarks.process import REGISTRY, run_as_daemon
from edge.calls.dependencies import CallPorts, CallStores
from edge.calls.orchestrator import Orchestrator
from edge.cloud.mqtt import wire
from edge.core.routing import HERE, RouteKind
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from edge.tools.registry import ToolRegistry
from tools_cache.schema import compile_schema

TOOL = "clock:now"
ARGS = {"timezone": "Europe/Berlin"}
WARM_UP = 500

One = Callable[[int], Awaitable[None]]


def measure(calls: int) -> list[tuple[str, float, str, float]]:
    """[(what, ms, baseline, its ms)]: median, 99th percentile and CPU of one call, beside those of
    the bare loop.
    """
    return run_as_daemon(_measure(calls))


async def _measure(calls: int) -> list[tuple[str, float, str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with _orchestrator(Path(folder)) as (orchestrator, audit, store):
            ours = await _timed(_one_call(orchestrator), calls)
            assert len(store.calls) == len(audit), "a call was not stored"
            assert len(audit) == calls + WARM_UP, (
                f"{len(audit)} audit lines for {calls + WARM_UP} calls"
            )
            bare = await _timed(_bare_call(Path(folder)), calls)
    return [
        (
            f"orchestrator, one call, {name}",
            ours[place],
            f"task + schema + dumps, {name}",
            bare[place],
        )
        for place, name in ((49, "p50"), (98, "p99"), (-1, "CPU"))
    ]


@asynccontextmanager
async def _orchestrator(folder: Path) -> Any:
    """A running orchestrator, the audit lines it writes, and its store."""
    bus, clock, audit = Bus(), Clock.system(), []
    registry = ToolRegistry(builtin=REGISTRY, state=folder, bus=bus, clock=clock)
    registry.load()

    async def no_news(_: Any) -> None: ...

    store, stage = MemoryCalls(), InstantStage()
    shelves = CallStores(store, NothingPending(), NoResults())
    ports = CallPorts(
        registry=registry,
        backends=dict.fromkeys({*HERE, RouteKind.LATER}, ConstantTools().run),
        stores=shelves,
        confirmations=NoConfirmations(),
        sessions=MemorySessions(),
        notes=MemoryNotes(),
        uplink=SilentUplink(),
        glasses=ReadyGlasses(),
        stage=stage,
        ask=stage,
        bus=bus,
        clock=clock,
        on_registry=no_news,
        audit=lambda record: audit.append(json.dumps(record, separators=(",", ":"), default=str)),
    )
    orchestrator = Orchestrator(ports)
    running = asyncio.ensure_future(orchestrator.run())
    try:
        yield orchestrator, audit, store
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def _one_call(orchestrator: Orchestrator) -> One:
    clock = Clock.system()
    asked = json.dumps({"v": wire.VERSION, "k": "call", "tool": TOOL, "args": ARGS, "mode": "text"})
    head = asked[:-1]

    async def one(n: int) -> None:
        payload = f'{head},"turn_id":"turn{n}","id":"{new_call_id(clock.wall())}"}}'.encode()
        call = wire.body_to_call(wire.decode(payload, content_type=wire.JSON))
        response = await orchestrator.call(call)
        assert response.ok, response
        json.dumps(response.to_json())

    return one


def _bare_call(folder: Path) -> One:
    registry = ToolRegistry(builtin=REGISTRY, state=folder, bus=Bus(), clock=Clock.system())
    registry.load()
    entry = registry.snapshot().find(TOOL)
    assert entry is not None
    compiled = compile_schema(entry.definition.input_schema)._compiled  # noqa: SLF001 - the bare validator is the baseline
    envelope = {
        "ok": True,
        "data": ANSWER,
        "meta": {
            "tool": TOOL,
            "toolVersion": "1.0.0",
            "registryVersion": "1.0.00000000",
            "duration": 1,
            "callId": "0" * 36,
            "timestamp": "2026-11-21T09:41:00.000Z",
            "route": "local",
            "delivery": "shown",
        },
    }

    async def answered() -> str:
        assert compiled.is_valid(ARGS)
        return json.dumps(envelope)

    async def one(_: int) -> None:
        await asyncio.create_task(answered())

    return one


async def _timed(one: One, calls: int) -> list[float]:
    """Percentiles 1 … 99 of a call in ms, then its CPU, after a warm-up."""
    for n in range(WARM_UP):
        await one(n - WARM_UP)
    taken, used = [], time.process_time()
    for n in range(calls):
        began = time.perf_counter()
        await one(n)
        taken.append((time.perf_counter() - began) * 1e3)
    return [*statistics.quantiles(taken, n=100), (time.process_time() - used) / calls * 1e3]
