"""BlueZ recovery: removes stale devices and power-cycles the adapter."""

import asyncio
import logging
from typing import Any, Final

from dbus_fast import Variant

from firmware_bridge.transports.bluez.watch import (
    ADAPTER,
    DEVICE,
    PROPERTIES,
    BluezError,
    BluezWatch,
)

log = logging.getLogger(__name__)

OFF_S: Final = 0.5
"""Seconds an adapter stays off, so that bluetoothd can tear down its links."""


class BluezRecovery:
    """Two recovery steps, on a watch's bus connection. Neither raises: the next attempt shows."""

    def __init__(self, watch: BluezWatch) -> None:
        self._watch = watch
        watch.on_lost(lambda _why: forget())

    async def fresh(self, address: str) -> None:
        """End a left-over link to `address`; remove device and cached services, but no bond."""
        try:
            await self._watch.open()
            for path, has in (await self._watch.objects()).items():
                device = has.get(DEVICE)
                if device is not None and str(device.get("Address", "")).upper() == address.upper():
                    await self._drop(path, device)
        except Exception as error:  # noqa: BLE001 - D-Bus, BlueZ, the system: whatever it is, the next attempt meets it too
            log.debug("%s could not be dropped: %s", address, error)
        finally:
            forget()

    async def _drop(self, path: str, device: dict[str, Any]) -> None:
        if device.get("Connected"):
            log.info("ending a left-over link to %s", device.get("Address"))
            await self._watch.call(path, DEVICE, "Disconnect")
        if not device.get("Paired"):  # removing it would delete the bond
            await self._watch.call(str(device["Adapter"]), ADAPTER, "RemoveDevice", "o", (path,))

    async def reset(self) -> None:
        """Power every active adapter off and on, unless another device is connected through it."""
        try:
            await self._watch.open()
            objects = await self._watch.objects()
            for path, has in objects.items():
                if has.get(ADAPTER, {}).get("Powered"):
                    await self._cycle(path, objects)
        except Exception as error:  # noqa: BLE001 - as in fresh
            log.info("the adapter could not be reset: %s", error)
        finally:
            forget()

    async def _cycle(self, path: str, objects: dict[str, dict[str, dict[str, Any]]]) -> None:
        devices = [has[DEVICE] for has in objects.values() if DEVICE in has]
        others = [
            d.get("Alias", "?") for d in devices if d.get("Connected") and d.get("Adapter") == path
        ]
        if others:
            log.info("the adapter is not reset: %s uses it", ", ".join(map(ascii, others))[:200])
            return
        log.info("resetting the adapter %s", path)
        try:
            await self._power(path, on=False)
            await asyncio.sleep(OFF_S)
        finally:  # also on cancellation: the adapter must not stay off
            await asyncio.shield(self._on_again(path))

    async def _on_again(self, path: str) -> None:
        try:
            await self._power(path, on=True)
        except (BluezError, TimeoutError) as error:
            log.warning(
                "the adapter %s did not come on again: %s; try: bluetoothctl power on", path, error
            )

    async def _power(self, path: str, *, on: bool) -> None:
        await self._watch.call(
            path, PROPERTIES, "Set", "ssv", (ADAPTER, "Powered", Variant("b", on))
        )


def forget() -> None:
    """Drop bleak's D-Bus connection: BlueZ ends its discovery sessions, every client becomes
    disconnected, and cached devices and services are dropped. bleak reconnects by itself.

    bleak has no public way to do this and would otherwise keep a dead bluetoothd's objects (bleak
    3.1, manager.py).
    """
    from bleak.backends.bluezdbus import manager  # noqa: PLC0415 - as in ble.py

    known = getattr(manager, "_global_instances", {}).get(asyncio.get_running_loop())
    bus = getattr(known, "_bus", None)
    if bus is not None and bus.connected:
        bus.disconnect()
