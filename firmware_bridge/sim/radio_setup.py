"""Opens the simulator's radio: in this process, at a TCP port, in the Linux kernel, or a dongle."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from bumble.transport import open_transport
from bumble.transport.common import AsyncPipeSink

from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.sim.air import Air, HciServer, VirtualController
from firmware_bridge.sim.options import RADIO_HINT, split_address, split_radio


@dataclass(frozen=True, slots=True)
class Antenna:
    """HCI of one controller, and how to drop its links (None on hardware: only distance does)."""

    source: Any
    sink: Any
    lose: Callable[[], bool] | None = None


class RadioSetup:
    """The controllers of the simulator's host stacks, one per radio. Used once."""

    def __init__(self, radio: str, air: Air | None = None, *, radios: int = 1) -> None:
        self.radio = radio
        """The radio's name for a central; port 0 is replaced by the chosen port."""
        self.antennas: list[Antenna] = []
        self._radios = radios
        self._air = air
        self._controllers: list[VirtualController] = []
        self._cleanup = AsyncExitStack()

    async def open(self) -> None:
        """Raises `RadioError`."""
        try:
            await self._open()
        except BaseException:
            await self._cleanup.aclose()
            raise

    async def close(self) -> None:
        """Release all resources. Idempotent."""
        await self._cleanup.aclose()

    def drop(self) -> bool:
        """Drop the link as if the wearer had walked away. False if none dropped, as on hardware."""
        return sum(controller.drop_links() for controller in self._controllers) > 0

    async def _open(self) -> None:
        kind, rest = split_radio(self.radio)
        openers: dict[str, Callable[[str], Awaitable[None]]] = {
            "inproc": self._virtual,
            "tcp": self._tcp,
            "vhci": self._vhci,
            "usb": self._usb,
        }
        await openers[kind](rest)

    async def _virtual(self, _rest: str = "") -> None:
        air = self._air = self._air or Air()
        for _ in range(self._radios):
            controller = air.controller("glasses")
            self._cleanup.callback(air.remove, controller)
            self._controllers.append(controller)
            lose = partial(_drop_links, controller)
            self.antennas.append(Antenna(controller, AsyncPipeSink(controller), lose))

    async def _tcp(self, rest: str) -> None:
        host, port = split_address(self.radio, rest)
        await self._virtual()
        assert self._air is not None
        server = HciServer(self._air, host, port)
        try:
            bound = await server.open()
        except OSError as error:
            text = f"cannot listen on {rest}: {error.strerror or error}"
            hint = "another mock may be running there; port 0 picks a free one"
            raise RadioError(RadioReason.BUSY, text, hint) from error
        self._cleanup.push_async_callback(server.close)
        self.radio = f"tcp:{bound[0]}:{bound[1]}"

    async def _vhci(self, rest: str) -> None:
        moniker = f"vhci:{rest}" if rest else "vhci"
        kernel = await self._hardware(moniker, "modprobe hci_vhci, and run as root")
        await self._virtual()
        assert self._air is not None
        controller = self._air.controller("kernel", sink=kernel.sink)
        self._cleanup.callback(self._air.remove, controller)
        kernel.source.set_packet_sink(controller)

    async def _usb(self, _rest: str) -> None:
        if self._radios > 1:
            text = f"{self.radio} is one radio; these glasses are {self._radios}"
            raise RadioError(RadioReason.OTHER, text, RADIO_HINT)
        hint = "plug in a dongle, and stop bluetoothd from using it"
        dongle = await self._hardware(self.radio, hint)
        self.antennas.append(Antenna(dongle.source, dongle.sink))

    async def _hardware(self, moniker: str, hint: str) -> Any:
        try:
            transport = await open_transport(moniker)
        except Exception as error:  # bumble, libusb and the operating system each raise their own
            text = f"{moniker} cannot be opened: {error}"
            raise RadioError(RadioReason.NO_ADAPTER, text, hint) from error
        self._cleanup.push_async_callback(transport.close)
        return transport


def _drop_links(controller: VirtualController) -> bool:
    return controller.drop_links() > 0
