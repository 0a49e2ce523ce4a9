"""Sound from the simulated microphone to the driver, over real Bluetooth stacks."""

import asyncio
import math
import struct
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.driver import Driver
from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import (
    AudioFormat,
    MicrophoneChunk,
    SideChanged,
    StartMicrophone,
    StopMicrophone,
)
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1 import glasses as even_g1
from firmware_bridge.sim.faults import SoundFaults, parse_fault
from firmware_bridge.sim.inproc import Mock
from tests.system import needs
from tests.unit.firmware_bridge import sim_helpers
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, loudness

pytestmark = pytest.mark.enable_socket

SPEED = 10.0
COUNTED = b"".join(struct.pack("<h", at) for at in range(1, 32001))
"""Two seconds of samples, each with its own value."""
TONE = struct.pack(
    "<32000h", *(round(8000 * math.sin(2 * math.pi * 440 * at / 16000)) for at in range(32000))
)


class Worn:
    """A driver on simulated glasses, and the sound that comes out of it."""

    def __init__(self, mock: Mock, driver: Driver[Any], ear: Ear, form: AudioFormat) -> None:
        self.mock, self.driver, self.ear, self.form = mock, driver, ear, form
        self.chunks: list[MicrophoneChunk] = []
        self.sent = -1
        for faults in mock.glasses.faults.values():
            self.count_sent(faults.sound)
        self.sides: list[SideChanged] = []
        self.lost = asyncio.Event()
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            if isinstance(event, MicrophoneChunk):
                self.chunks.append(event)
            elif isinstance(event, SideChanged):
                self.sides.append(event)
            self._news.set()
        self.lost.set()

    async def open(self, stream: int = 1) -> None:
        await self.driver.request(StartMicrophone(stream, self.form), timeout_s=DEADLINE_S)

    async def until(self, condition) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def over(self, count: int = 1) -> dict[str, Any]:
        """Wait until the microphone heard a sound to its end, and that has come out."""
        event = await self.ear.wait("heard", count=count)
        newest = self.sent
        await self.until(lambda: self.chunks and self.chunks[-1].index > newest + 3)
        return event

    def count_sent(self, faults: SoundFaults) -> None:
        """Know what the glasses sent: what comes out of the driver is later."""
        pass_on = faults.pass_on

        def counted(chunk: MicrophoneChunk, now: float) -> list[MicrophoneChunk]:
            self.sent = max(self.sent, chunk.index)
            return pass_on(chunk, now)

        faults.pass_on = counted  # type: ignore[method-assign]

    async def inject(self, word: str) -> None:
        assert await self.mock.injector.inject(parse_fault(word))

    @property
    def indexes(self) -> list[int]:
        return [chunk.index for chunk in self.chunks]

    def pcm(self) -> bytes:
        return b"".join(frame for chunk in self.chunks for frame in chunk.frames)


def wearing(model: str, out: Path, *quirks: str) -> AbstractAsyncContextManager[Worn]:
    form = AudioFormat.LC3 if "g1" in model else AudioFormat.PCM16
    return sim_helpers.worn(model, out, partial(Worn, form=form), speed=SPEED, quirks=quirks)


# ------------------------------------------------------------------ whole


@pytest.mark.requirement("I14-sim-microphone")
async def test_the_mock_sends_each_sample_once(tmp_path):
    async with wearing("mock:full", tmp_path) as worn:
        worn.mock.glasses.hear(COUNTED)
        await worn.open()
        assert (await worn.over())["whole"] is True
        assert worn.indexes == list(range(len(worn.chunks)))
        assert worn.pcm().strip(b"\0") == COUNTED.strip(b"\0")
        await worn.driver.request(StopMicrophone(1), timeout_s=DEADLINE_S)


@needs("liblc3")
@pytest.mark.requirement("I14-sim-microphone")
@pytest.mark.parametrize("quirk", ["right", "left", "any"])
async def test_the_g1_sends_real_lc3_from_whichever_arm(tmp_path, quirk):
    async with wearing("sim:even_g1", tmp_path, f"microphone-arm={quirk}") as worn:
        await worn.open()
        worn.mock.glasses.hear(TONE)
        assert (await worn.over())["whole"] is True
        assert worn.indexes == list(range(len(worn.chunks)))
        assert {len(chunk.frames) for chunk in worn.chunks} == {10}
        assert {len(frame) for chunk in worn.chunks for frame in chunk.frames} == {20}
        decoder = Decoder(20)
        packets = [
            b"".join(decoder.decode(frame) for frame in chunk.frames) for chunk in worn.chunks
        ]
        assert decoder.concealed == 0
        loud = [packet for packet in packets if loudness(packet) > 4000]
        assert len(loud) == pytest.approx(20, abs=1), "two seconds of the tone"
        assert loudness(packets[-1]) < 10, "then silence"
        opened = next(e for e in worn.ear.events if e["event"] == "microphone" and e["open"])
        assert opened["side"] == ("left" if quirk == "left" else "right")


@needs("liblc3")
async def test_a_recording_that_is_over_is_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(even_g1, "RECORDING_S", 1.0)
    async with wearing("sim:even_g1", tmp_path) as worn:
        await worn.open()
        await worn.until(lambda: len(worn.chunks) >= 15)
        assert worn.indexes[:10] == list(range(10))
        restarted = worn.indexes[10]
        assert restarted >= 10 + 15, "the pause of 2 s can be seen"
        assert worn.indexes[10:15] == list(range(restarted, restarted + 5))


# ------------------------------------------------------------------ faults


def share_lost(indexes: list[int]) -> float:
    return 1 - len(set(indexes)) / (max(indexes) + 1)


FORMS = [pytest.param("mock:full"), pytest.param("sim:even_g1", marks=needs("liblc3"))]


@pytest.mark.requirement("I14-sim-sound-faults", "I14-sound-gaps")
@pytest.mark.parametrize("model", FORMS)
async def test_lost_sound_leaves_gaps(tmp_path, model):
    async with wearing(model, tmp_path) as worn:
        await worn.inject("lose-sound:20")
        await worn.open()
        await worn.until(lambda: len(worn.chunks) >= 200)
        assert worn.indexes == sorted(set(worn.indexes))
        assert 0.1 < share_lost(worn.indexes) < 0.3


async def test_what_arrives_is_where_it_belongs(tmp_path):
    async with wearing("mock:full", tmp_path) as worn:
        worn.mock.glasses.hear(COUNTED)
        await worn.inject("lose-sound:30")
        await worn.open()
        await worn.over()
        for chunk in worn.chunks:
            at = 2 * 640 * chunk.index
            assert chunk.frames[0] == COUNTED[at : at + 1280].ljust(1280, b"\0")


@pytest.mark.requirement("I14-sim-sound-faults", "I14-sound-gaps")
@pytest.mark.parametrize("model", FORMS)
async def test_a_gap_is_as_long_as_it_was(tmp_path, model, monkeypatch):
    lost = []
    pass_on = SoundFaults.pass_on

    def counted(self, chunk, now):
        sent = pass_on(self, chunk, now)
        lost.extend([] if sent else [chunk.index])
        return sent

    monkeypatch.setattr(SoundFaults, "pass_on", counted)
    async with wearing(model, tmp_path) as worn:
        await worn.open()
        await worn.until(lambda: len(worn.chunks) >= 10)
        await worn.inject("sound-gap:3")
        first = len(worn.chunks)
        await worn.until(lambda: lost and len(worn.chunks) >= first + 10)
        steps = [b - a for a, b in pairwise(worn.indexes)]
        assert sorted(steps)[-2:] == [1, len(lost) + 1]


@pytest.mark.requirement("I14-sim-sound-faults")
@pytest.mark.parametrize("model", FORMS)
async def test_doubled_and_swapped_sound_keeps_its_numbers(tmp_path, model):
    async with wearing(model, tmp_path) as worn:
        await worn.inject("double-sound:5")
        await worn.inject("swap-sound:7")
        await worn.open()
        await worn.until(lambda: len(worn.chunks) >= 60)
        assert worn.indexes[:12] == [0, 1, 2, 3, 4, 4, 5, 7, 6, 8, 9, 9]
        assert set(worn.indexes) >= set(range(40)), "nothing is lost"
        by_index = {}
        for chunk in worn.chunks:
            assert by_index.setdefault(chunk.index, chunk.frames) == chunk.frames


@pytest.mark.requirement("I14-sim-sound-faults")
async def test_a_mock_can_be_lost_in_mid_sentence(tmp_path):
    async with wearing("mock:full", tmp_path) as worn:
        await worn.inject("cut-speech")
        worn.mock.glasses.hear(COUNTED)
        await worn.open()
        async with asyncio.timeout(DEADLINE_S):
            await worn.lost.wait()
        # half was said; what was on its way when the link broke is lost
        assert 0.1 * len(COUNTED) < len(worn.pcm()) < 0.7 * len(COUNTED)


@needs("liblc3")
@pytest.mark.requirement("I14-sim-sound-faults")
async def test_an_arm_that_is_lost_in_mid_sentence_goes_on_after_a_gap(tmp_path):
    async with wearing("sim:even_g1", tmp_path) as worn:
        await worn.inject("cut-speech:right")
        worn.mock.glasses.hear(TONE * 5)
        await worn.open()
        await worn.until(lambda: any(s.side is Side.RIGHT and not s.up for s in worn.sides))
        before = len(worn.chunks)
        assert 0.4 * 100 < before < 0.7 * 100
        await worn.until(lambda: len(worn.chunks) >= before + 3)
        assert worn.chunks[before].index > worn.chunks[before - 1].index
        event = await worn.ear.wait("heard")
        assert event["whole"] is False, "what was said meanwhile is gone"
