"""The mock as a program: glasses on a radio, a scripted wearer, a control channel, until it is told to stop.

Knows how its parts are put together; prints nothing itself (`announce` is handed in).
"""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

from firmware_bridge.catalog import find
from firmware_bridge.sim.control import Control, Feed
from firmware_bridge.sim.inproc import DEFAULT_MTU, Mock
from firmware_bridge.sim.mount import Mount
from firmware_bridge.sim.wearer import Step, Wearer, parse_script

MIN_MTU: Final = 23
MAX_MTU: Final = 517

Announce = Callable[[dict[str, Any]], None]


async def run_sim(
    model: str, *, radio: str, control: str | Path | None, out_dir: Path | None, script: Path | None,
    mtu: int = DEFAULT_MTU, announce: Announce, speed: float = 1.0,
) -> None:  # fmt: skip
    """Run mock glasses until SIGTERM, `quit`, or cancellation. PNG and WAV go to `out_dir` (None: a new temporary one).

    `announce` is called once, when the glasses are on the air: `{"event": "ready", model, address, radio, control,
    out_dir, mtu}`, with the addresses really bound; what happens then is told by the control channel (`watch`).
    Raises `RadioError`, `ValueError` (model, MTU, script, control address) and OSError before that.
    """
    if not MIN_MTU <= mtu <= MAX_MTU:
        raise ValueError(f"mtu {mtu}; {MIN_MTU} to {MAX_MTU} are allowed")
    entry = find(model)
    place, steps = _prepare(out_dir, script)
    leave = asyncio.Event()
    feed = Feed()
    mount = Mount(radio)
    await mount.open()
    try:
        mock = Mock(entry, mount, out_dir=place, mtu=mtu, tell=feed.tell, speed=speed)
        wearer = Wearer(mock.glasses, drop=mount.drop, leave=leave.set)
        async with _controlled(control, mock, wearer, feed) as bound, _stop_on_sigterm(leave):
            announce({
                "event": "ready", "model": model, "address": mock.address, "radio": mount.radio, "control": bound,
                "out_dir": str(place), "mtu": mtu,
            })  # fmt: skip
            await _live(mock, wearer, steps, leave)
    finally:
        await mount.close()


async def _live(mock: Mock, wearer: Wearer, steps: list[Step], leave: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as tasks:
        parts = [tasks.create_task(mock.run(), name="sim-radio"), tasks.create_task(wearer.act(steps), name="sim-wearer")]
        await leave.wait()
        for part in parts:
            part.cancel()


def _prepare(out_dir: Path | None, script: Path | None) -> tuple[Path, list[Step]]:
    steps = [] if script is None else parse_script(script.read_text(encoding="utf-8"))
    place = Path(tempfile.mkdtemp(prefix="glassd-sim-")) if out_dir is None else out_dir
    place.mkdir(parents=True, exist_ok=True)
    return place, steps


@contextlib.asynccontextmanager
async def _controlled(where: str | Path | None, mock: Mock, wearer: Wearer, feed: Feed) -> AsyncIterator[str | None]:
    if where is None:
        yield None
        return
    control = Control(str(where), mock.glasses, wearer, feed)
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
    except (RuntimeError, ValueError):  # not the main thread: who runs us there stops us there
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
