"""Runs simulated glasses in this process, for the radio `inproc`, tests and demos."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from firmware_bridge.messages import Gesture
from firmware_bridge.models import Model
from firmware_bridge.sides import Side
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.fault_injector import FaultInjector
from firmware_bridge.sim.gatt import GattServer
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts
from firmware_bridge.sim.model_specs import REFERENCE, parts_of
from firmware_bridge.sim.options import model_of
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.sim.security import Security, way_of
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.bumble.keys import KeyFile

KEYS: Final = "glasses-keys.json"
"""File with the bonds of the simulated glasses, so that they survive a restart."""

Tell = Callable[[dict[str, Any]], None]


class Mock:
    """Simulated glasses on their radios: `run()`, or `start` and `close` in the background."""

    def __init__(
        self,
        model: Model,
        mount: RadioSetup,
        out_dir: Path,
        mtu: int | None,
        tell: Tell,
        *,
        speed: float = 1.0,
        parts: ModelParts = REFERENCE,
        pairing: str | None = None,
    ) -> None:
        time = SimTime(speed)
        self.glasses = MockGlasses(model, out_dir=out_dir, time=time, tell=tell, sides=parts.sides)
        for faults in self.glasses.faults.values():
            faults.latency_s = self.glasses.time.real(parts.latency_s)
        self.mount = mount
        self._parts = parts
        self._tell = tell
        self.identities = {side: parts.identity(model, side) for side in parts.sides}
        self.securities = {side: self._security(side, pairing) for side in parts.sides}
        self.servers = {
            side: GattServer(
                antenna.source,
                antenna.sink,
                where=parts.gatt or model.gatt,
                identity=self.identities[side],
                mtu=mtu or parts.mtu,
                info=self.glasses.info_bytes,
                security=self.securities[side],
                faults=self.glasses.faults[side],
                lose=antenna.lose,
                more_follow=parts.more_follow,
                read=parts.read and partial(parts.read, self.glasses, side),
            )
            for side, antenna in zip(parts.sides, mount.antennas, strict=True)
        }
        self.injector = FaultInjector(self.glasses, self.servers, self.securities)
        self.glasses.touched = self._touched
        self._running: asyncio.Task[None] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def address(self) -> str:
        """Address; of a pair that of the first side."""
        return next(iter(self.identities.values())).address

    @property
    def security(self) -> Security:
        """The security manager; of a pair that of the first side."""
        return next(iter(self.securities.values()))

    def _security(self, side: Side | None, pairing: str | None) -> Security:
        way, required = way_of(self.glasses.model, pairing)
        keys = self.glasses.out_dir / (KEYS if side is None else f"{side}-{KEYS}")
        return Security(
            way,
            required=required,
            keys=KeyFile(keys, address=self.identities[side].address, at_once=True),
            show=self.glasses.notice,
            clock=time.monotonic,
        )

    def _touched(self, gesture: Gesture) -> bool:
        return sum(security.gesture(gesture) for security in self.securities.values()) > 0

    async def run(self) -> None:
        """Act as peripheral until cancelled."""
        # writes the empty lens, and loads the PNG writer before a page is timed
        self.glasses.lens_report()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.injector.run())
            for side, server in self.servers.items():
                serve = partial(self._parts.serve, self.glasses, side)
                tasks.create_task(server.run(serve, partial(self._report, side)))

    def _report(self, side: Side | None, event: dict[str, Any]) -> None:
        self._tell(event if side is None else {**event, "side": side})

    def start(self, *, temporary: "tempfile.TemporaryDirectory[str] | None" = None) -> None:
        self._running = asyncio.ensure_future(self.run())
        self._temporary = temporary

    async def close(self) -> None:
        """Switch the glasses off: they stop advertising. Idempotent."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
            await self.mount.close()
        if self._temporary is not None:
            self._temporary.cleanup()


async def start_mock(
    model: str,
    air: Air | None = None,
    *,
    radio: str = "inproc",
    out_dir: Path | None = None,
    mtu: int | None = None,
    tell: Tell | None = None,
    speed: float = 1.0,
    quirks: Sequence[str] = (),
    pairing: str | None = None,
) -> Mock:
    """Start simulated glasses on `air` in this process; the caller must `close()` them.

    With radio `tcp:127.0.0.1:0`, `mount.radio` has the port. Raises `UnknownModel`, `QuirkError`
    and `RadioError`.
    """
    entry, parts = model_of(model), parts_of(model, quirks)
    mount = RadioSetup(radio, air, radios=len(parts.sides))
    await mount.open()
    temporary = None if out_dir else tempfile.TemporaryDirectory(prefix="glassd-sim-")
    place = out_dir or Path(temporary.name if temporary else "")
    report = tell or (lambda _event: None)
    mock = Mock(entry, mount, place, mtu, report, speed=speed, parts=parts, pairing=pairing)
    mock.start(temporary=temporary)
    return mock
