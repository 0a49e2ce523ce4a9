"""brilliant-monocle-driver 0.1.3 at the simulated Monocle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from brilliant_monocle_driver import Monocle

from firmware_bridge.messages import Gesture

PATIENCE_S = 20.0


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Monocle, asyncio.Queue[str]]]:
    """The driver, and the lines that it hears."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    host = Monocle()
    host.add_line_listener(lines.put_nowait)
    async with host:
        yield host, lines


async def hear(lines: asyncio.Queue[str], what: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while what not in await lines.get():
            pass


@pytest.mark.parametrize("mtu", ["256", "128"])
async def test_a_text_is_on_the_lens(wear, mtu):
    _mock, ear = await wear("sim:monocle", f"mtu={mtu}")
    async with connected() as (host, _lines):
        await host.send(
            "import display\n"
            "text = display.Text('The kettle is ready', 0, 50, display.WHITE)\n"
            "display.show(display.Text('The kettle is ready', 0, 50, display.WHITE))\n"
        )
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["", "The kettle is ready"])
        await host.send("display.clear()")
        await ear.wait("lens", where=lambda lens: lens["lines"] == [])


async def test_the_battery_is_read(wear):
    await wear("sim:monocle")
    async with connected() as (host, lines):
        await host.send("import device\nprint('battery', device.battery_level())")
        await hear(lines, "battery 87")


async def test_touches_are_reported(wear):
    mock, _ear = await wear("sim:monocle")
    touched: asyncio.Queue[str] = asyncio.Queue()
    async with connected() as (host, lines):
        host.set_a_touch_callback(lambda: touched.put_nowait("A"))
        host.set_b_touch_callback(lambda: touched.put_nowait("B"))
        await host.install_touch_events()
        await host.send("print('installed')")
        await hear(lines, "installed")
        for gesture, pads in (
            (Gesture.TAP, "A"),
            (Gesture.DOUBLE_TAP, "AA"),
            (Gesture.BUTTON, "B"),
        ):
            mock.glasses.gesture(gesture)
            for pad in pads:
                assert await asyncio.wait_for(touched.get(), PATIENCE_S) == pad


async def test_it_stops_the_program_that_runs(wear):
    mock, _ear = await wear("sim:monocle", "running=glassd")
    async with connected() as (host, lines):
        await host.send("print('alone')")
        await hear(lines, "alone")
    assert mock._parts.serve.args[0].program is None
