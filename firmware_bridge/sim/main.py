"""The simulator as a program: glasses on a radio, a scripted wearer, a control channel."""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from firmware_bridge.sim.control import ControlChannel, MockFeed
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.inproc import Mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.options import check, model_of
from firmware_bridge.sim.radio_setup import RadioSetup
from firmware_bridge.sim.replay import ReplayedGlasses
from firmware_bridge.sim.wearer import ScriptedWearer, WearerStep, parse_script

Announce = Callable[[dict[str, Any]], None]


async def run_sim(
    model: str,
    *,
    radio: str,
    control: str | Path | None,
    out_dir: Path | None,
    script: Path | None,
    mtu: int | None = None,
    faults: Sequence[str] = (),
    quirks: Sequence[str] = (),
    pairing: str | None = None,
    announce: Announce,
    watch: Announce | None = None,
    speed: float = 1.0,
    replay: ReplayedGlasses | None = None,
) -> None:
    """Run simulated glasses until SIGTERM, `quit`, or cancellation. PNG and WAV files go to
    `out_dir` (None: a new temporary one).

    `announce` is called once, when the glasses advertise: `{"event": "ready", model, address,
    radio, control, out_dir, mtu}`, with the addresses really bound (for a pair also `sides`); later
    events go to `watch` and the control channel. Raises `RadioError`, `ValueError` (model, MTU,
    faults, quirks, pairing, script, control address) and OSError before that.

    With `replay` a recording answers in the place of the simulated firmware.
    """
    check(model, radio=radio, mtu=mtu, faults=faults)
    entry, parts = model_of(model), parts_of(model, quirks)
    parts = parts if replay is None else replay.parts(parts)
    place, steps = _prepare(out_dir, script)
    first = [parse_fault(word) for word in faults]
    leave = asyncio.Event()
    feed = MockFeed(watch)
    mount = RadioSetup(radio, radios=len(parts.sides))
    await mount.open()
    try:
        mock = Mock(entry, mount, place, mtu, feed.tell, speed=speed, parts=parts, pairing=pairing)
        # these glasses must be able to have all faults, before anything starts
        for fault in [*first, *(step.fault for step in steps if step.fault is not None)]:
            mock.injector.check(fault)
        wearer = ScriptedWearer(mock.glasses, inject=mock.injector.inject, leave=leave.set)
        async with _controlled(control, mock, wearer, feed) as bound, _stop_on_sigterm(leave):
            for fault in first:
                await mock.injector.inject(fault)
            facts = {"control": bound, "out_dir": str(place), "mtu": mtu or parts.mtu}
            announce({**_facts(mock, model), **facts})
            await _live(mock, wearer, steps, leave)
    finally:
        await mount.close()


def _facts(mock: Mock, model: str) -> dict[str, Any]:
    radio = mock.mount.radio
    facts = {"event": "ready", "model": model, "address": mock.address, "radio": radio}
    sides = {
        side.value: {"address": who.address, "name": who.name}
        for side, who in mock.identities.items()
        if side
    }
    return {**facts, "sides": sides} if sides else facts


async def _live(
    mock: Mock, wearer: ScriptedWearer, steps: list[WearerStep], leave: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as tasks:
        parts = [
            tasks.create_task(mock.run(), name="sim-radio"),
            tasks.create_task(wearer.act(steps), name="sim-wearer"),
        ]
        await leave.wait()
        for part in parts:
            part.cancel()


def _prepare(out_dir: Path | None, script: Path | None) -> tuple[Path, list[WearerStep]]:
    steps = [] if script is None else parse_script(script.read_text(encoding="utf-8"))
    place = Path(tempfile.mkdtemp(prefix="glassd-sim-")) if out_dir is None else out_dir
    place.mkdir(parents=True, exist_ok=True)
    return place, steps


@contextlib.asynccontextmanager
async def _controlled(
    where: str | Path | None, mock: Mock, wearer: ScriptedWearer, feed: MockFeed
) -> AsyncIterator[str | None]:
    if where is None:
        yield None
        return
    control = ControlChannel(str(where), mock.glasses, wearer, feed)
    bound = await control.open()
    try:
        yield bound
    finally:
        await control.close()


@contextlib.asynccontextmanager
async def _stop_on_sigterm(leave: asyncio.Event) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, leave.set)
    except (RuntimeError, ValueError):  # not the main thread: its caller handles signals
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
