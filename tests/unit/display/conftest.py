"""A stage on fake glasses."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from edge.display.images import LensImages
from edge.display.presenter import Presenter
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from tests.unit.display.fakes import FakeGlasses, Notebook

OpenStage = Callable[..., AbstractAsyncContextManager[tuple[Presenter, FakeGlasses]]]


@asynccontextmanager
async def stage_on(
    facts: dict[str, Any],
    *,
    notes: Any = None,
    bus: Bus | None = None,
    glasses: FakeGlasses | None = None,
    **extra: Any,
) -> AsyncIterator[tuple[Presenter, FakeGlasses]]:
    bus = bus or Bus()
    glasses = glasses or FakeGlasses(bus, facts)
    extra.setdefault("min_gap_s", 0.0)
    extra.setdefault("clock", Clock.system())
    images = LensImages(glasses.status, deadline_s=40.0)
    extra.setdefault("fit", images.fit)
    stage = Presenter(glasses=glasses, bus=glasses.bus, notes=notes or Notebook(), **extra)
    service = asyncio.ensure_future(stage.run())
    await asyncio.sleep(0)
    try:
        yield stage, glasses
    finally:
        service.cancel()
        await asyncio.wait({service})
        await images.close()
        if not service.cancelled():
            service.result()


def listening_for(unused: list[Any]) -> Any:
    """Append each unused gesture to a list, as (gesture, side)."""
    listening = SimpleNamespace(
        unused_gesture=lambda *gesture: unused.append(gesture),
        opened=lambda _question: False,
        closed=lambda: None,
    )
    return lambda: listening


@pytest.fixture
def open_stage() -> OpenStage:
    return stage_on


@pytest.fixture
def without_espeak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the built-in voices, also where the program is installed."""
    monkeypatch.setenv("PATH", "/var/empty")
