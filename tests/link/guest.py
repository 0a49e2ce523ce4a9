"""The true place: systemd, bluetoothd and the kernel's Bluetooth in a virtual machine; the daemon
runs as its own unit.

Knows what a Debian machine offers to do harm with; the machine itself is tests/vm/machine.py's
business.
"""

import asyncio
import json
import shlex
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from firmware_bridge.sim.air import Air, VirtualController
from firmware_bridge.transports.hci_stream import TcpHci
from tests.link.world import toml
from tests.vm.image import Image
from tests.vm.install import install
from tests.vm.machine import Machine, guest

SOCKET = "/run/glassd/owner.sock"
ADAPTER_S = 20.0


class Guest:
    """Implements `Place`; `machine` is there for stories of the unit."""

    can = frozenset({"bluetoothd", "power", "systemd"})
    slowness = 6.0
    """Emulated, everything takes 5 to 30 times as long; what we wait for is mostly radio time,
    which does not.
    """

    def __init__(self, image: Image, payload: Path) -> None:
        self.name = f"bluez-{image.suite}"
        self._image = image
        self._payload = payload
        self._stack = AsyncExitStack()
        self._air: Air | None = None
        self._controller: VirtualController | None = None
        self.machine: Machine

    async def open(self, air: Air) -> None:
        self._air = air
        self.machine = await self._stack.enter_async_context(guest(self._image, self._payload))
        wire = TcpHci(lambda _why: None)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: wire, str(self.machine.hci))
        self._stack.callback(wire.fail, "the machine is switched off")
        self._controller = air.controller("kernel", sink=wire)
        self._stack.callback(air.remove, self._controller)
        wire.set_packet_sink(self._controller)
        await install(self.machine)
        await self.adapter_in()

    async def close(self) -> None:
        await self._stack.aclose()

    # -------------------------------------------------------------- the daemon

    async def start(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        await self.machine.ask("put", path="/etc/glassd/glassd.toml", text=toml(sections))
        await self.machine.must("systemctl start glassd", within_s=120)

    async def stop(self) -> None:
        await self.machine.must("systemctl stop glassd", within_s=60)

    async def kill(self) -> None:
        await self.machine.must("systemctl kill --signal=KILL --kill-whom=main glassd")

    async def forget(self) -> None:
        """Nothing of ours on disk, and nothing of the glasses in BlueZ (which may have lost its
        adapter to a kernel's bug).
        """
        await self.machine.must("rm -rf /var/lib/glassd/*")
        await self.machine.must(
            "for d in $(bluetoothctl devices | sed -n 's/^Device "
            "\\([0-9A-F:]*\\) .*/\\1/p'); do bluetoothctl remove $d; done",
            within_s=60,
        )

    async def ask(
        self, method: str, path: str, body: Any = None, *, within_s: float = 30.0
    ) -> tuple[int, Any]:
        reply = await self._http(method, path, body, within_s)
        return reply["status"], json.loads(reply["text"]) if reply["status"] and reply[
            "text"
        ] else reply["text"]

    async def stream(self, method: str, path: str, body: Any, *, within_s: float) -> str:
        return str((await self._http(method, path, body, within_s))["text"])

    async def _http(self, method: str, path: str, body: Any, within_s: float) -> dict[str, Any]:
        return await self.machine.ask(
            "http",
            within_s=within_s + 30,
            socket=SOCKET,
            method=method,
            path=path,
            body=body,
            timeout=within_s,
        )

    async def glassd(self, *words: str, give: str = "", within_s: float = 60.0) -> tuple[int, str]:
        return await self.machine.run(
            f"NO_COLOR=1 /usr/local/bin/glassd {shlex.join(words)}",
            within_s=within_s * self.slowness,
            give=give,
        )

    async def log(self) -> str:
        return (await self.machine.run("journalctl --no-pager -b -u glassd -o short-monotonic"))[1]

    # -------------------------------------------------------------- harm

    async def adapter_out(self) -> None:
        await self.machine.ask("adapter", word="out")
        assert self._controller is not None
        self._controller.silence()

    async def adapter_in(self) -> None:
        """Plug it in and wait until bluetoothd has switched it on, which it does by itself."""
        await self.machine.ask("adapter", word="in")
        await self._adapter_is("yes")

    async def power(self, word: str) -> None:
        """Switch the adapter `on` or `off`, as a person would."""
        await self.machine.must(f"bluetoothctl power {word}")
        await self._adapter_is({"on": "yes", "off": "no"}[word])

    async def bluetoothd_restarted(self) -> None:
        await self.machine.must("systemctl restart bluetooth")

    async def bluetoothd_killed(self) -> None:
        await self.machine.must("systemctl kill --signal=KILL bluetooth")

    async def _adapter_is(self, powered: str) -> None:
        async with asyncio.timeout(ADAPTER_S):
            while (
                f"Powered: {powered}"
                not in (await self.machine.run("bluetoothctl show", within_s=10))[1]
            ):
                await asyncio.sleep(0.1)
