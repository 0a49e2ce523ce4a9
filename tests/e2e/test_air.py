"""The air between two processes: what the mock shows and plays is what was sent, and either
side may die at any time.
"""

import array
import asyncio
import json
import math
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import opuslib_next
import pytest

from firmware_bridge.errors import LinkLost, RadioError
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    EndAudio,
    Hello,
    Ping,
    ShowPage,
    StartAudio,
    TextLine,
)
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import connect
from tests.e2e.independent_decoder import Tap, read_air
from tests.unit.firmware_bridge.sim_helpers import driving, meet

DEADLINE_S = 30.0

MOCK = """
import asyncio, json, sys
from pathlib import Path
from firmware_bridge.sim.main import run_sim
model, radio, out, mtu, speed = sys.argv[1:]
asyncio.run(run_sim(
    model, radio=radio, control="tcp:127.0.0.1:0", out_dir=Path(out), script=None, mtu=int(mtu), speed=float(speed),
    announce=lambda event: print(json.dumps(event), flush=True),
))
"""  # noqa: E501
CENTRAL = """
import asyncio, sys
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import connect
async def main():
    radio = await open_radio(sys.argv[1])
    transport = await connect(radio, await scan(radio, timeout_s=10), timeout_s=10)
    print("connected", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


class MockProcess:
    """A mock in another process, and its control channel."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self.process = process
        self.radio: str = ready["radio"]
        self.port = int(self.radio.rpartition(":")[2])
        self._control = int(ready["control"].rpartition(":")[2])

    async def ask(self, **request: Any) -> dict[str, Any]:
        async with self.talk(request) as reader:
            return json.loads(await reader.readline())

    @asynccontextmanager
    async def talk(self, request: dict[str, Any]) -> AsyncIterator[asyncio.StreamReader]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._control)
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            async with asyncio.timeout(DEADLINE_S):
                yield reader
        finally:
            writer.close()
            await writer.wait_closed()

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def mock(
    out: Path, model: str = "mock:full", *, port: int = 0, mtu: int = 247, speed: float = 20
) -> AsyncIterator[MockProcess]:
    process = await spawn(MOCK, model, f"tcp:127.0.0.1:{port}", str(out), str(mtu), str(speed))
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S * 2):
            ready = json.loads(await process.stdout.readline())
        running = MockProcess(process, ready)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def spawn(code: str, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        *words,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )


def tone(samples: int, hertz: float = 440.0) -> bytes:
    return array.array(
        "h", (round(9000 * math.sin(2 * math.pi * hertz * i / 16000)) for i in range(samples))
    ).tobytes()


PAGE = ShowPage(
    "list",
    1,
    2,
    (
        TextLine(0, "Einkauf – für “morgen”"),
        TextLine(1, "Milk, bread, 3 × ½ kg Äpfel"),
        TextLine(4, "Привет"),
        TextLine(4, "1/2", 530),
    ),
)


@pytest.mark.parametrize("mtu", [517, 247, 23])
@pytest.mark.requirement("M-air")
async def test_mock_and_independent_decoder_read_the_same_page(tmp_path: Path, mtu: int) -> None:
    async with mock(tmp_path, "mock:display", mtu=mtu) as glasses, Tap(glasses.port) as tap:
        radio = await open_radio(f"tcp:127.0.0.1:{tap.port}")
        async with meet(radio) as (driver, transport):
            assert transport.max_packet == min(mtu - 3, 514)
            await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
            done = await driver.request(PAGE, timeout_s=DEADLINE_S)
            shown = await glasses.ask(do="lens")
        await radio.close()
        air = read_air(bytes(tap.to_controller), bytes(tap.to_host))
    assert air.mtu == mtu
    assert max(air.packets) <= min(mtu - 3, 512)
    (page,) = [c for c in air.commands if c["t"] == "show"]
    assert air.pages() == [[line.text for line in PAGE.lines]]
    assert [piece["text"] for piece in shown["pieces"]] == air.pages()[0]
    assert [[p["row"], p["x"]] for p in shown["pieces"]] == [
        [at[0], at[2] if len(at) > 2 else 0] for at in page["lines"]
    ]
    assert (shown["scene"], shown["page"], shown["pages"]) == (
        page["scene"],
        page.get("page", 1),
        page["pages"],
    )
    assert shown["lit"] == done.drawn > 0
    answer = next(a for a in air.answers if a["t"] == "done" and a["re"] == page["n"])
    assert answer["drawn"] == done.drawn
    assert Path(shown["png"]).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("format", [AudioFormat.OPUS, AudioFormat.PCM16])
@pytest.mark.requirement("M-air")
async def test_mock_and_independent_decoder_hear_the_same_sound(
    tmp_path: Path, format: AudioFormat
) -> None:
    sound = tone(16000)
    if format is AudioFormat.OPUS:
        encoder = opuslib_next.Encoder(16000, 1, opuslib_next.APPLICATION_VOIP)
        chunks = [(encoder.encode(sound[at : at + 640], 320),) for at in range(0, len(sound), 640)]
    else:
        chunks = [(sound[at : at + 1600],) for at in range(0, len(sound), 1600)]
    async with mock(tmp_path, "mock:audio") as glasses, Tap(glasses.port) as tap:
        radio = await open_radio(f"tcp:127.0.0.1:{tap.port}")
        async with meet(radio) as (driver, _):
            await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
            await driver.request(StartAudio(9, format), timeout_s=DEADLINE_S)
            for index, frames in enumerate(chunks):
                await driver.post(AudioChunk(9, index, frames))
            done = await driver.request(EndAudio(9), timeout_s=DEADLINE_S)
            heard = await glasses.ask(do="speaker")
        await radio.close()
        air = read_air(bytes(tap.to_controller), bytes(tap.to_host))
    decoded = air.sound(9)
    assert done.samples == heard["samples"] == len(decoded) // 2 == 16000
    assert Path(heard["wav"]).read_bytes()[44:] == decoded
    if format is AudioFormat.PCM16:
        assert decoded == sound
    assert max(map(abs, array.array("h", decoded))) > 4000


async def test_the_central_notices_a_killed_mock_in_two_seconds_and_finds_the_next(
    tmp_path: Path,
) -> None:
    lines = tuple(TextLine(row, "a page that is on its way " + "x" * 200) for row in range(5))
    async with mock(tmp_path, mtu=23) as glasses:
        port = glasses.port
        radio = await open_radio(glasses.radio)
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
        async with driving(transport, sighting) as driver:
            await driver.request(Hello("glassd", "test"), timeout_s=DEADLINE_S)
            page = asyncio.ensure_future(
                driver.request(ShowPage("long", lines=lines), timeout_s=DEADLINE_S)
            )
            async with asyncio.timeout(DEADLINE_S):
                while driver.counters.packets_out < 10:
                    await asyncio.sleep(0)
            assert not page.done(), "it must be killed mid-page"
            await glasses.kill()
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(LinkLost):
                    await page
    with pytest.raises(RadioError):
        await scan(radio, timeout_s=0.5)
    async with mock(tmp_path, port=port) as glasses, meet(radio) as (driver, _):
        await driver.request(PAGE, timeout_s=DEADLINE_S)
        assert (await glasses.ask(do="lens"))["scene"] == "list"
    await radio.close()


async def test_after_a_killed_central_the_mock_advertises_again_and_serves_the_next(
    tmp_path: Path,
) -> None:
    async with mock(tmp_path, "mock:display") as glasses:
        for _ in range(2):
            central = await spawn(CENTRAL, glasses.radio)
            assert central.stdout is not None
            async with asyncio.timeout(DEADLINE_S * 2):
                assert await central.stdout.readline() == b"connected\n"
            assert (await glasses.ask(do="status"))["connected"] is True
            async with glasses.talk({"do": "watch"}) as events:
                await events.readline()
                central.kill()
                async with asyncio.timeout(DEADLINE_S):
                    while json.loads(await events.readline())["event"] != "disconnected":
                        pass
            await central.wait()
        radio = await open_radio(glasses.radio)
        async with meet(radio) as (driver, _):
            await driver.request(Ping(), timeout_s=DEADLINE_S)
        await radio.close()


async def test_a_lost_link_is_noticed_by_both_and_made_again(tmp_path: Path) -> None:
    async with mock(tmp_path) as glasses:
        radio = await open_radio(glasses.radio)
        async with meet(radio) as (driver, transport):
            await driver.request(Ping(), timeout_s=DEADLINE_S)
            assert (await glasses.ask(do="drop"))["noticed"] is True
            async with asyncio.timeout(DEADLINE_S):
                assert [packet async for packet in transport.packets()] == []
            with pytest.raises(LinkLost):
                await driver.request(Ping(), timeout_s=DEADLINE_S)
        async with meet(radio) as (driver, _):
            await driver.request(Ping(), timeout_s=DEADLINE_S)
        await radio.close()
