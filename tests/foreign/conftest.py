"""Software of others at our simulated glasses, and our driver at their simulators.

`make foreign-tests` runs this folder in an environment that has their packages
(requirements.txt); anywhere else nothing of it is collected.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path

import bleak
import pytest

from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.transports.ble import Radio, open_radio
from tests.unit.firmware_bridge.sim_helpers import Ear

collect_ignore_glob = [] if find_spec("frame_ble") else ["test_*.py"]

Wear = Callable[..., Awaitable[tuple[Mock, Ear]]]

SPEED = 8.0


@pytest.fixture
async def radio(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Radio]:
    """A Bluetooth adapter that bleak takes for this platform's: hosts need not know of it."""
    radio = await open_radio("inproc")
    monkeypatch.setattr(
        bleak, "get_platform_scanner_backend_type", lambda: (radio.scanner, "virtual")
    )
    monkeypatch.setattr(
        bleak, "get_platform_client_backend_type", lambda: (radio.client, "virtual")
    )
    yield radio
    await radio.close()


@pytest.fixture
async def wear(radio: Radio, tmp_path: Path) -> AsyncIterator[Wear]:
    """Switch simulated glasses on; what they report is heard by the ear."""
    worn: list[Mock] = []

    async def switch_on(model: str, *quirks: str, speed: float = SPEED) -> tuple[Mock, Ear]:
        ear = Ear()
        mock = await start_mock(
            model, radio.air, out_dir=tmp_path, tell=ear, quirks=quirks, speed=speed
        )
        worn.append(mock)
        return mock, ear

    yield switch_on
    for mock in worn:
        await mock.close()
