"""The fast place: the daemon is a child of the test, its radio bumble's host stack on a virtual
controller behind TCP.

Knows processes and the door of the air; there is no bluetoothd here, and no power switch.
"""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge.control.client import ControlClient
from edge.runtime.errors import UserError
from edge.runtime.paths import owner_beside
from firmware_bridge.sim.air import Air, HciServer
from tests.link.world import toml

CLI = (sys.executable, "-m", "edge.cli")
END_S = 15.0


class Here:
    """Implements `Place`."""

    name = "bumble"
    can: frozenset[str] = frozenset()
    slowness = 1.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "c.sock"
        self._owner = owner_beside(self._socket)
        self._log = folder / "daemon.log"
        self._process: asyncio.subprocess.Process | None = None
        self._air: Air | None = None
        self._door: HciServer | None = None
        self._port = 0

    async def open(self, air: Air) -> None:
        self._air = air
        await self.adapter_in()

    async def close(self) -> None:
        await self.stop()
        await self.adapter_out()

    async def start(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        own = {
            "edge": {"state_dir": str(self._folder / "state")},
            "glasses": {"radio": f"tcp:127.0.0.1:{self._port}"},
            "control": {"socket": str(self._socket), "group": ""},
        }
        document = {
            name: {**sections.get(name, {}), **own.get(name, {})} for name in {**sections, **own}
        }
        config = self._folder / "glassd.toml"
        config.write_text(toml(document), encoding="utf-8")
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *CLI, "run", "--config", str(config), stdout=log, stderr=log
            )

    async def stop(self) -> None:
        await self._end("terminate")

    async def kill(self) -> None:
        await self._end("kill")

    async def _end(self, how: str) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            getattr(process, how)()
            async with asyncio.timeout(END_S):
                await process.wait()

    async def forget(self) -> None:
        shutil.rmtree(self._folder / "state", ignore_errors=True)

    async def ask(
        self, method: str, path: str, body: Any = None, *, within_s: float = 30.0
    ) -> tuple[int, Any]:
        client = ControlClient((self._owner,))
        try:
            return await asyncio.to_thread(client.request, method, path, body, timeout_s=within_s)
        except UserError as error:
            return 0, error.message

    async def stream(self, method: str, path: str, body: Any, *, within_s: float) -> str:
        return await asyncio.to_thread(self._whole, method, path, body, within_s)

    def _whole(self, method: str, path: str, body: Any, within_s: float) -> str:
        wire = http.client.HTTPConnection("localhost", timeout=within_s)
        wire.sock = socket.socket(socket.AF_UNIX)
        wire.sock.settimeout(within_s)
        wire.sock.connect(str(self._owner))
        with contextlib.closing(wire):
            wire.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            return wire.getresponse().read().decode()

    async def glassd(self, *words: str, give: str = "", within_s: float = 60.0) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *CLI,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "GLASSD_SOCKET": str(self._socket), "NO_COLOR": "1"},
        )
        async with asyncio.timeout(within_s):
            out, _ = await process.communicate(give.encode())
        return process.returncode or 0, out.decode()

    async def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    async def adapter_out(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            await door.close()

    async def adapter_in(self) -> None:
        """Lend a controller again, on the same port: the same dongle."""
        assert self._air is not None
        self._door = HciServer(self._air, "127.0.0.1", self._port)
        _, self._port = await self._door.open()
