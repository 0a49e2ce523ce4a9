"""`glassd sim sim:even_g1 --fault drop:left@…` (Shows 3): what a person sees while one arm is
lost and the other carries on.
"""

import asyncio
import re
import time
from typing import Any

import pytest

from firmware_bridge.driver import Driver
from firmware_bridge.messages import Hello, ShowPage, SideChanged, TextLine
from firmware_bridge.sides import Side
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.side_radio import connect_any
from tests.e2e.processes import CLI

DEADLINE_S = 40.0


async def line(stream: asyncio.StreamReader, wanted: str) -> str:
    """Read on until a line contains this."""
    async with asyncio.timeout(DEADLINE_S):
        while wanted not in (said := (await stream.readline()).decode()):
            assert said, f"it ended without saying {wanted!r}"
    return said


async def showing(driver: Driver[Any], words: str) -> None:
    await driver.request(ShowPage(words, lines=(TextLine(0, words),)), timeout_s=DEADLINE_S)


@pytest.mark.requirement("I4-show-g1")
async def test_one_arm_is_lost_on_demand_and_the_other_carries_on() -> None:
    sim = await asyncio.create_subprocess_exec(
        *CLI,
        "sim",
        "sim:even_g1",
        "--radio",
        "tcp:127.0.0.1:0",
        "--fault",
        "away:600:left@6s",
        stdout=asyncio.subprocess.PIPE,
    )
    assert sim.stdout is not None
    try:
        up = await line(sim.stdout, "is up")
        assert "Even G1_47_L_" in up
        assert "Even G1_47_R_" in up
        found = re.search(r"radio (tcp:[\d.:]+)", up)
        assert found is not None
        radio = await open_radio(found[1])
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport: Any = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
        driver: Driver[Any] = Driver(
            transport, sighting.entry.codec(transport.max_packet), clock=time.monotonic
        )
        running = asyncio.ensure_future(driver.run())
        await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
        await line(sim.stdout, "right arm connected")
        await line(sim.stdout, "fault: away:600:left")
        await line(sim.stdout, "left arm disconnected")
        async with asyncio.timeout(DEADLINE_S):
            async for event in driver.events():
                if isinstance(event, SideChanged) and (event.side, event.up) == (Side.LEFT, False):
                    break
        await showing(driver, "the right carries on")
        assert await line(sim.stdout, "lens") == "lens (right arm alone): the right carries on\n"
        running.cancel()
        await asyncio.wait([running])
        await transport.close()
        await radio.close()
    finally:
        sim.kill()
        await sim.wait()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sim:even_g1", "--fault", "explode"], "'explode' is no fault; known: drop"),
        (["mock:full", "--fault", "drop:left"], "mock:full is one radio; leave the side out"),
        (
            ["mock:full", "--quirk", "newscreen=71"],
            "mock:full has no quirks to choose; sim:even_g1, sim:even_g2",
        ),
        (["sim:even_g1", "--quirk", "newscreen=1"], "newscreen is '1'; any, 71, 31, 30 are known"),
        (["sim:even_g1", "--radio", "usb:0"], "usb:0 is one radio; these glasses are 2"),
        (
            ["sim:even_g9"],
            (
                "there is no mock of 'sim:even_g9'; there are mock:display, "
                "mock:audio, mock:full, sim:even_g1"
            ),
        ),
    ],
)
def test_a_mistyped_word_is_told_with_what_is_known(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from edge.cli import main

    if "--radio" not in words:
        words = [*words, "--radio", "tcp:127.0.0.1:0"]
    assert main(["sim", *words]) == 2
    assert told in capsys.readouterr().err
