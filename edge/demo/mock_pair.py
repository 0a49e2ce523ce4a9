"""Mock glasses and a daemon that is connected to them, without a cloud: `glassd mcp --demo`."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from edge.control.client import ControlClient
from edge.demo.processes import (
    SIMULATED,
    ChildProcess,
    StartFailed,
    folder_for_sockets,
    start,
    start_daemon,
)
from edge.runtime.errors import UserError
from edge.runtime.paths import SOCKET_NAME, runtime_dir
from firmware_bridge.deadlines import timeout

DEFAULT_MODEL: Final = "mock:full"
READY_WITHIN_S: Final = 20.0
"""A Raspberry Pi with a cold disk finds and connects mock glasses in a few seconds."""
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
    """Return the control socket of a daemon that is connected to mock glasses; both end with the
    block, and with this process however it ends. Raise `StartFailed`.
    """
    async with AsyncExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="glassd-demo-", ignore_cleanup_errors=True)
        out = Path(stack.enter_context(folder))
        sockets = stack.enter_context(folder_for_sockets(out))
        control, config = _free_socket(env, sockets), out / "glassd.toml"
        wearer = (
            "--control",
            str(control.with_name("mock.sock")),
        )  # as `lens --watch` looks for it
        words = ("sim", model, "--radio", "tcp:127.0.0.1:0", "--out", str(out), *wearer, "--json")
        radio = (await start(stack, out, "glasses", *words)).announcement["radio"]
        model = model.removeprefix(SIMULATED)
        text = CONFIG.format(state=out / "state", radio=radio, model=model, socket=control)
        config.write_text(text, encoding="utf-8")
        daemon = await start_daemon(stack, out, config, control)
        await _wait_for_glasses(control, daemon)
        yield control


def _free_socket(env: Mapping[str, str], out: Path) -> Path:
    """Return the socket that `glassd lens --watch` uses without `--socket`; if a daemon has it
    already, one in the folder of the demo.
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


async def _wait_for_glasses(control: Path, daemon: ChildProcess) -> None:
    """Wait until the glasses are connected, before an agent's first call."""
    client, state = ControlClient((control,)), ""
    try:
        async with timeout(READY_WITHIN_S):
            while state != "ready":
                await asyncio.sleep(LOOK_S)
                try:
                    _, status = await asyncio.to_thread(client.request, "GET", "/v1/status")
                    state = status["glasses"]["state"]
                except UserError as e:
                    state = e.message
    except TimeoutError:
        raise StartFailed(
            f"the mock glasses were not connected in {READY_WITHIN_S:.0f} "
            f"s ({state}): {daemon.last_words()}"
        ) from None
