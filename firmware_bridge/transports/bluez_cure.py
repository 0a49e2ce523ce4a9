"""What can be done about a BlueZ that is in a bad way: drop what it remembers of glasses, power its
adapter off and on.

Refuses to decide when (the recovery ladder does) and to watch (bluez_watch.py).
"""

import asyncio
import logging
from typing import Any, Final

from dbus_fast import Variant

from firmware_bridge.transports.bluez_watch import (
    ADAPTER,
    DEVICE,
    PROPERTIES,
    BluezError,
    BluezWatch,
)

log = logging.getLogger(__name__)

OFF_S: Final = 0.5
"""How long an adapter stays off: bluetoothd tears links down meanwhile."""


class BluezCure:
    """Two rungs of the ladder, on the bus of a watch. Neither raises: the next attempt shows
    whether it helped.
    """

    def __init__(self, watch: BluezWatch) -> None:
        self._watch = watch
        watch.on_lost(lambda _why: forget())

    async def fresh(self, address: str) -> None:
        """End a left-over link to `address` and drop its device object, cached services
        included; a bond is kept.
        """
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
        if not device.get("Paired"):  # removing it would throw the bond away
            await self._watch.call(str(device["Adapter"]), ADAPTER, "RemoveDevice", "o", (path,))

    async def reset(self) -> None:
        """Power every adapter that is on off and on, unless somebody else's device is connected
        through it.
        """
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
        finally:  # also when we are stopped in between: an adapter must not stay off because of us
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
    """Make bleak drop its D-Bus connection: BlueZ then ends the discovery sessions that hang on it,
    bleak tells every client that it is disconnected, and what bleak remembers of devices and
    services goes. It connects again by itself.

    bleak has no public way, and without one it believes a dead bluetoothd's objects for ever (bleak
    3.1, manager.py).
    """
    from bleak.backends.bluezdbus import manager  # noqa: PLC0415 - as in ble.py

    known = getattr(manager, "_global_instances", {}).get(asyncio.get_running_loop())
    bus = getattr(known, "_bus", None)
    if bus is not None and bus.connected:
        bus.disconnect()
