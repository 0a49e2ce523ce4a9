"""One mock in this process: glasses, their radio, and a task that runs them; for radio `inproc`, tests and demos.

Knows how to start and stop a mock; what it shows and plays is on `glasses`.
"""

import asyncio
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from firmware_bridge.catalog import Model, find
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.gatt import GattServer
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.mount import Mount
from firmware_bridge.sim.peripheral import serve
from firmware_bridge.sim.security import Security, way_of
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.bumble_keys import KeyFile

DEFAULT_MTU: Final = 247
"""What most phones and dongles settle on: one full data-length-extended packet."""
KEYS: Final = "glasses-keys.json"
"""The mock's bonds, in its directory: glasses that are switched off and on remember them."""
HOBBY_NAME: Final = "HOBBY"
"""What a mock of the generic entry advertises, which has no name of its own."""

Tell = Callable[[dict[str, Any]], None]


def address_of(key: str) -> str:
    """Give a static random address, always the same for the same model."""
    return "F0:5A:" + ":".join(f"{byte:02X}" for byte in zlib.crc32(key.encode()).to_bytes(4, "big"))


class Mock:
    """One mock on its radio. `run()` is its life; `start` and `close` do that in the background."""

    def __init__(
        self, model: Model, mount: Mount, *, out_dir: Path, mtu: int, tell: Tell, speed: float = 1.0,
        pairing: str | None = None,
    ) -> None:  # fmt: skip
        self.glasses = MockGlasses(model, out_dir=out_dir, time=SimTime(speed), tell=tell)
        self.mount = mount
        self.address = address_of(model.key)
        self._tell = tell
        way, required = way_of(model, pairing)
        self.security = Security(
            way, required=required, keys=KeyFile(out_dir / KEYS, address=self.address, at_once=True),
            show=self.glasses.notice, clock=time.monotonic,
        )  # fmt: skip
        self.glasses.touched = self.security.gesture
        self._server = GattServer(
            mount.source, mount.sink, where=model.gatt, name=(*model.names, HOBBY_NAME)[0], address=self.address,
            mtu=mtu, info=self.glasses.info_bytes, security=self.security,
        )  # fmt: skip
        self._running: asyncio.Task[None] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    async def run(self) -> None:
        """Be a peripheral until cancelled."""
        self.glasses.shown()  # a dark lens is a picture too, and the PNG writer is loaded before a page is timed
        await self._server.run(partial(serve, self.glasses), self._tell)

    def start(self, *, temporary: "tempfile.TemporaryDirectory[str] | None" = None) -> None:
        self._running = asyncio.ensure_future(self.run())
        self._temporary = temporary

    async def close(self) -> None:
        """Switch the glasses off: they vanish from the air. Idempotent."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
            await self.mount.close()
        if self._temporary is not None:
            self._temporary.cleanup()


async def start_mock(
    model: str, air: Air | None = None, *, radio: str = "inproc", out_dir: Path | None = None, mtu: int = DEFAULT_MTU,
    tell: Tell | None = None, speed: float = 1.0, pairing: str | None = None,
) -> Mock:  # fmt: skip
    """Start a mock on `air` in this process; `close()` it. With radio `tcp:127.0.0.1:0`, `mount.radio` names the port.

    Raises `UnknownModel` and `RadioError`.
    """
    entry = find(model)
    mount = Mount(radio, air)
    await mount.open()
    temporary = None if out_dir else tempfile.TemporaryDirectory(prefix="glassd-sim-")
    place = out_dir or Path(temporary.name if temporary else "")
    mock = Mock(entry, mount, out_dir=place, mtu=mtu, tell=tell or (lambda _event: None), speed=speed, pairing=pairing)
    mock.start(temporary=temporary)
    return mock
