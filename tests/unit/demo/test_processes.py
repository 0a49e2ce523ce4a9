"""The processes of the demo, as it starts them."""

import time
from contextlib import AsyncExitStack

import pytest

from edge.demo import processes
from edge.demo.processes import StartFailed, start_daemon

pytestmark = pytest.mark.enable_socket


async def test_a_daemon_that_ends_at_once_is_reported_at_once(tmp_path):
    config = tmp_path / "glassd.toml"
    config.write_text("version = 1\n[polcy]\n")
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        with pytest.raises(StartFailed, match="did you mean policy"):
            await start_daemon(stack, tmp_path, config, tmp_path / "control.sock")
    assert time.monotonic() - began < processes.READY_S / 2
