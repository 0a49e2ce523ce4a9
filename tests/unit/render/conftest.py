"""A stage on fake glasses."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from edge.bus import Bus
from edge.clock import Clock
from edge.render.stage import Stage
from tests.unit.render.fakes import FakeGlasses, Notebook

OpenStage = Callable[..., AbstractAsyncContextManager[tuple[Stage, FakeGlasses]]]


@asynccontextmanager
async def stage_on(
    facts: dict[str, Any],
    *,
    notes: Any = None,
    bus: Bus | None = None,
    glasses: FakeGlasses | None = None,
    **extra: Any,
) -> AsyncIterator[tuple[Stage, FakeGlasses]]:
    bus = bus or Bus()
    glasses = glasses or FakeGlasses(bus, facts)
    extra.setdefault("min_gap_s", 0.0)
    extra.setdefault("clock", Clock.system())
    stage = Stage(glasses=glasses, bus=glasses.bus, notes=notes or Notebook(), **extra)
    service = asyncio.ensure_future(stage.run())
    await asyncio.sleep(0)
    try:
        yield stage, glasses
    finally:
        service.cancel()
        await asyncio.wait({service})
        if not service.cancelled():
            service.result()


@pytest.fixture
def open_stage() -> OpenStage:
    return stage_on
