"""omi-sdk 0.2.1, the maker's, at the simulated Omi, OMI Glass and OpenGlass."""

import asyncio
import ctypes.util
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge.catalog import find
from tests.unit.firmware_bridge.sim_helpers import loudness

PATIENCE_S = 20.0
AUDIO = find("omi").gatt.channels[0].uuid
SECONDS = 2.0


@pytest.fixture
def sdk(monkeypatch) -> Iterator[object]:
    """The package; its Opus is the one that the simulator has, unless the system has its own."""
    look = ctypes.util.find_library
    spec = importlib.util.find_spec("opuslib_next")
    folder = Path(spec.submodule_search_locations[0])
    ours = next((str(each) for each in folder.parent.glob("opuslib_next*/**/*opus*.so*")), None)
    monkeypatch.setattr(
        ctypes.util, "find_library", lambda name: look(name) or (ours if name == "opus" else None)
    )
    import omi

    return omi


class Listening:
    """The package listens, until it is told to end."""

    def __init__(self, sdk, address: str) -> None:
        self.packets: list[bytes] = []
        self.decoder = sdk.OmiOpusDecoder()
        self.pcm = bytearray()
        self._enough = asyncio.Event()
        self._task = asyncio.ensure_future(sdk.listen_to_omi(address, AUDIO, self._handle))

    def _handle(self, _characteristic, data: bytearray) -> None:
        self.packets.append(bytes(data))
        self.pcm += self.decoder.decode_packet(data)
        if len(self.pcm) > SECONDS * 32_000:
            self._enough.set()

    async def hear_enough(self) -> None:
        enough = asyncio.ensure_future(self._enough.wait())
        done, _ = await asyncio.wait(
            [self._task, enough], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
        )
        assert enough in done, self._task

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


@pytest.mark.parametrize("key", ["omi", "omi_glass"])
async def test_it_hears_and_decodes_the_microphone(wear, sdk, key):
    mock, ear = await wear(f"sim:{key}")
    listening = Listening(sdk, mock.address)
    try:
        await ear.wait("microphone", where=lambda heard: heard["open"])
        mock.glasses.say("one two three four five six seven eight")
        await listening.hear_enough()
    finally:
        await listening.end()
    assert loudness(bytes(listening.pcm)) > 300
    numbers = [int.from_bytes(packet[:2], "little") for packet in listening.packets]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {packet[2] for packet in listening.packets} == {0}
    await ear.wait("disconnected")


async def test_it_receives_the_packets_of_an_openglass(wear, sdk):
    """Its decoder has only Opus: the samples of an OpenGlass are read here."""
    mock, ear = await wear("sim:openglass")
    packets: asyncio.Queue[bytes] = asyncio.Queue()
    task = asyncio.ensure_future(
        sdk.listen_to_omi(mock.address, AUDIO, lambda _at, data: packets.put_nowait(bytes(data)))
    )
    try:
        await ear.wait("microphone", where=lambda heard: heard["open"])
        mock.glasses.say("one two three four five six seven eight")
        got = [await asyncio.wait_for(packets.get(), PATIENCE_S) for _ in range(150)]
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert {len(packet) for packet in got} == {163}
    assert loudness(b"".join(packet[3:] for packet in got)) > 100
