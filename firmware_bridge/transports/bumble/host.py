"""bumble's host stack on one HCI stream, used until that ends. Its bleak interface is radio.py."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from bleak.exc import BleakBluetoothNotAvailableError, BleakBluetoothNotAvailableReason, BleakError
from bumble import core, hci
from bumble.device import Connection, Device, DeviceConfiguration
from bumble.transport import open_transport
from bumble.transport.common import AsyncPipeSink

from firmware_bridge.bonding import Witness
from firmware_bridge.deadlines import timeout
from firmware_bridge.transports.bumble.keys import KeyFile
from firmware_bridge.transports.bumble.pairing import central_config
from firmware_bridge.transports.hci_stream import TcpHci

log = logging.getLogger(__name__)
T = TypeVar("T")

OPEN_TIMEOUT_S: Final = 5.0
"""Seconds to start a controller: reset and twenty commands; 10 ms if virtual, under 1 s on USB."""
CANCEL_TIMEOUT_S: Final = 1.0
RETRY_S: Final = 0.5
"""Seconds between attempts to open a missing adapter."""


class HostListener(Protocol):
    """Receives advertisements."""

    def on_advertisement(self, advertisement: Any) -> None: ...


def _unavailable(text: str) -> BleakBluetoothNotAvailableError:
    return BleakBluetoothNotAvailableError(text, BleakBluetoothNotAvailableReason.NO_BLUETOOTH)


# ------------------------------------------------------------------ HCI streams


async def _open_hci(
    moniker: str, air: Any, lost: Callable[[str], None]
) -> tuple[Any, Any, Callable[[], Awaitable[None]]]:
    """Open a moniker's HCI stream: (source, sink, close). `lost` is called if it ends itself."""
    kind, _, rest = moniker.partition(":")
    if kind == "inproc":
        controller = air.controller("central")

        async def vanish() -> None:
            air.remove(controller)

        return controller, AsyncPipeSink(controller), vanish
    if kind == "tcp":
        host, _, port = rest.rpartition(":")
        try:
            _, stream = await asyncio.get_running_loop().create_connection(
                lambda: TcpHci(lost), host, int(port)
            )
        except OSError as error:
            raise _unavailable(
                f"no virtual adapter at {rest}: "
                f"{os.strerror(error.errno) if error.errno else error}"
            ) from error

        async def hang_up() -> None:
            await stream.close()

        return stream, stream, hang_up
    return await _open_usb(moniker, lost)


async def _open_usb(
    moniker: str, lost: Callable[[str], None]
) -> tuple[Any, Any, Callable[[], Awaitable[None]]]:
    try:
        transport = await open_transport(moniker)
    except Exception as error:  # bumble, libusb and the operating system each raise their own
        raise _unavailable(f"no Bluetooth dongle at {moniker}: {error}") from error

    def ended(future: "asyncio.Future[None]") -> None:
        if not future.cancelled():
            lost(f"the dongle is gone ({future.exception() or 'unplugged'})")

    transport.source.terminated.add_done_callback(ended)
    return transport.source, transport.sink, transport.close


# ------------------------------------------------------------------ the adapter


class OpenAdapter:
    """One open HCI stream with its host stack. Used once: when it ends, all on it ends."""

    def __init__(self, slot: "AdapterSlot") -> None:
        self._slot = slot
        self.dead: str | None = None
        self.gone = asyncio.Event()
        self._scanners: set[HostListener] = set()
        self._device: Device | None = None
        self._close: Callable[[], Awaitable[None]] | None = None
        self._scan_lock = asyncio.Lock()
        self._connect_lock = asyncio.Lock()

    async def open(self, moniker: str, air: Any) -> None:
        """Open the stream and bring the controller up. Raises `BleakBluetoothNotAvailableError`."""
        try:
            async with timeout(OPEN_TIMEOUT_S):
                source, sink, self._close = await _open_hci(moniker, air, self.die)
                keys = self._slot.keys
                config = DeviceConfiguration(
                    name="glassd", address=hci.Address(keys.address), irk=keys.irk
                )
                self._device = Device.from_config_with_hci(config, source, sink)
                self._device.keystore = keys
                self._device.pairing_config_factory = lambda _connection: central_config(
                    self._slot.witness
                )
                self._device.on("advertisement", self._on_advertisement)
                await self._whole(self._device.power_on())
        except (TimeoutError, BleakError, core.BaseBumbleError, hci.HCI_Error) as error:
            reason = str(error) or f"the controller at {moniker} does not answer"
            await self.close(reason)
            raise (
                error
                if isinstance(error, BleakBluetoothNotAvailableError)
                else _unavailable(reason)
            ) from error
        except BaseException:
            await self.close("cancelled")
            raise

    @property
    def device(self) -> Device:
        if self._device is None or self.dead is not None:
            raise _unavailable(self.dead or "the adapter is not open")
        return self._device

    def die(self, reason: str) -> None:
        """End everything on this stream: links, operations, scans. Idempotent."""
        if self.dead is not None:
            return
        self.dead = reason
        log.debug("adapter lost: %s", reason)
        if self._device is not None:
            pending = self._device.host.pending_response
            if pending is not None and not pending.done():
                pending.cancel()  # not set_exception: bumble would log it with a traceback
            self._device.host.emit("flush")  # every link hears that it is disconnected
        self.gone.set()

    async def close(self, reason: str = "closed") -> None:
        """Close the stream. Idempotent, never raises."""
        self.die(reason)
        close, self._close = self._close, None
        if close is not None:
            with contextlib.suppress(OSError, core.BaseBumbleError):
                await close()

    async def run(self, operation: Awaitable[T]) -> T:
        """Await a bumble operation, and distinguish its aborts from our cancellation."""
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()  # not always 0: task groups of Python 3.11 leave a count behind
        try:
            return await operation
        except asyncio.CancelledError:
            if task.cancelling() > before:
                raise
            raise BleakError(self.dead or "disconnected during the operation") from None
        except hci.HCI_Error as error:
            raise BleakError(f"the controller refused: {error}") from error

    async def _whole(self, conversation: Awaitable[T]) -> T:
        """Like `run`, but a cancellation waits for the answers to running HCI commands."""
        talking = asyncio.ensure_future(conversation)
        try:
            return await self.run(asyncio.shield(talking))
        except asyncio.CancelledError:
            await asyncio.wait([talking], timeout=CANCEL_TIMEOUT_S)
            raise

    async def listen(self, scanner: HostListener, *, active: bool) -> None:
        async with self._scan_lock:
            if not self._scanners and not self.device.is_scanning:
                await self._whole(self.device.start_scanning(active=active))
            self._scanners.add(scanner)

    async def stop_listening(self, scanner: HostListener) -> None:
        async with self._scan_lock:
            self._scanners.discard(scanner)
            if not self._scanners and self.dead is None:
                await self._whole(self.device.stop_scanning())

    def _on_advertisement(self, advertisement: Any) -> None:
        for scanner in list(self._scanners):
            scanner.on_advertisement(advertisement)

    async def connect(self, address: hci.Address) -> Connection:
        """Make one link at a time, as bumble demands; cancelling also cancels in the controller."""
        async with self._connect_lock:
            attempt = asyncio.ensure_future(self.device.connect(address, timeout=None))
            try:
                return await self.run(asyncio.shield(attempt))
            except (core.BaseBumbleError, BleakError) as error:
                raise BleakError(f"connection failed: {error}") from error
            except asyncio.CancelledError:
                await self._abandon(attempt)
                raise

    async def _abandon(self, attempt: "asyncio.Future[Connection]") -> None:
        """Leave neither a pending attempt nor an unowned link behind."""
        with contextlib.suppress(TimeoutError, BleakError, core.BaseBumbleError, hci.HCI_Error):
            async with timeout(CANCEL_TIMEOUT_S):
                if not attempt.done():
                    await self.run(
                        self.device.send_sync_command(hci.HCI_LE_Create_Connection_Cancel_Command())
                    )
                connection = await self.run(attempt)
                await self.run(connection.disconnect())
        attempt.cancel()


class AdapterSlot:
    """Holds the open adapter of one radio; after a loss the next user opens a new one."""

    def __init__(self, moniker: str, air: Any, keys: Path | None = None) -> None:
        self.moniker = moniker
        self.keys = KeyFile(keys)
        self.witness: Witness | None = None
        """The witness that answers while a pairing runs."""
        self._air = air
        self._lock = asyncio.Lock()
        self._adapter: OpenAdapter | None = None

    def is_open(self) -> bool:
        return self._adapter is not None and self._adapter.dead is None

    async def adapter(self) -> OpenAdapter:
        async with self._lock:
            if self._adapter is None or self._adapter.dead is not None:
                if self._adapter is not None:
                    await self._adapter.close()
                self._adapter = None
                fresh = OpenAdapter(self)
                await fresh.open(self.moniker, self._air)
                self._adapter = fresh
            return self._adapter

    async def lost(self) -> str:
        """Wait until the open adapter is gone and return why; waits forever if none is open."""
        if self._adapter is None:
            await asyncio.Event().wait()
        assert self._adapter is not None
        adapter = self._adapter
        await adapter.gone.wait()
        return adapter.dead or ""

    async def back(self) -> None:
        """Wait until an adapter can be opened, by retrying: availability is not announced."""
        while True:
            try:
                await self.adapter()
            except BleakError as error:
                log.debug("no adapter yet: %s", error)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def close(self) -> None:
        async with self._lock:
            adapter, self._adapter = self._adapter, None
            if adapter is not None:
                await adapter.close()
