"""A pair of mock glasses and a daemon that wears them, for as long as somebody uses them: `glassd
mcp --demo`.

Refuses to know who uses them, and to bring a cloud: an agent's first try needs a lens, not a
broker.
"""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from edge.control.client import ControlClient
from edge.demo.processes import SIMULATED, CastError, ChildProcess, glassd, until_there
from edge.runtime.errors import UserError
from edge.runtime.paths import SOCKET_NAME, runtime_dir
from firmware_bridge.deadlines import timeout

DEFAULT_MODEL: Final = "mock:full"
WORN_WITHIN_S: Final = 20.0
"""A cold Pi finds, connects and prepares mock glasses in a few seconds; nobody waits longer
than this.
"""
LOOK_S: Final = 0.05

CONFIG: Final = """\
version = 1
[edge]
id = "demo"
state_dir = "{state}"
[glasses]
radio = "{radio}"
model = "{model}"
backoff_max_s = 2.0
[control]
socket = "{socket}"
group = ""
"""


@asynccontextmanager
async def pair(env: Mapping[str, str], *, model: str = DEFAULT_MODEL) -> AsyncIterator[Path]:
    """Give the control socket of a daemon whose mock glasses are worn and ready; both end with the
    block, and with this process however it ends. Raises `CastError`.
    """
    async with AsyncExitStack() as stack:
        out = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="glassd-demo-", ignore_cleanup_errors=True)
            )
        )
        mock = ChildProcess(
            "glasses",
            glassd("sim", model, "--radio", "tcp:127.0.0.1:0", "--out", str(out), "--json"),
            log_dir=out,
        )
        stack.push_async_callback(mock.stop)
        radio = (await mock.start())["radio"]
        control, config = _free_socket(env, out), out / "glassd.toml"
        config.write_text(
            CONFIG.format(
                state=out / "state",
                radio=radio,
                model=model.removeprefix(SIMULATED),
                socket=control,
            ),
            encoding="utf-8",
        )
        daemon = ChildProcess("daemon", glassd("run", "--config", str(config)), log_dir=out)
        stack.push_async_callback(daemon.stop)
        await daemon.start(announces=False)
        await until_there(control, daemon)
        await _worn(control, daemon)
        yield control


def _free_socket(env: Mapping[str, str], out: Path) -> Path:
    """Where `glassd lens --watch` looks by itself, unless a daemon is there already; then a
    place of our own.
    """
    usual = runtime_dir(env) / SOCKET_NAME
    try:
        usual.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            probe.connect(str(usual))
    except (FileNotFoundError, ConnectionRefusedError):
        return usual
    except OSError:  # a folder that is not ours, or a daemon too busy to say so
        return out / SOCKET_NAME
    return out / SOCKET_NAME


async def _worn(control: Path, daemon: ChildProcess) -> None:
    """Wait until the glasses are connected: an agent's first call finds them there."""
    client, state = ControlClient((control,)), ""
    try:
        async with timeout(WORN_WITHIN_S):
            while state != "ready":
                await asyncio.sleep(LOOK_S)
                try:
                    _, status = await asyncio.to_thread(client.request, "GET", "/v1/status")
                    state = status["glasses"]["state"]
                except UserError as e:
                    state = e.message
    except TimeoutError:
        raise CastError(
            f"the mock glasses were not connected in {WORN_WITHIN_S:.0f} "
            f"s ({state}): {daemon.last_words()}"
        ) from None
