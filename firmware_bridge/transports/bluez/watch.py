"""Watches BlueZ over D-Bus and reports when the adapter in use is lost and back.

Needed because bleak does not notice that bluetoothd died (bleak 3.1).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

from dbus_fast import BusType, Message, MessageFlag, MessageType
from dbus_fast.aio import MessageBus

from firmware_bridge.deadlines import timeout

log = logging.getLogger(__name__)

DBUS: Final = "org.freedesktop.DBus"
BLUEZ: Final = "org.bluez"
ADAPTER: Final = "org.bluez.Adapter1"
DEVICE: Final = "org.bluez.Device1"
CHARACTERISTIC: Final = "org.bluez.GattCharacteristic1"
PROPERTIES: Final = "org.freedesktop.DBus.Properties"
OBJECTS: Final = "org.freedesktop.DBus.ObjectManager"
CALL_S: Final = 5.0
"""Seconds for a call; D-Bus's own timeout is 25 s."""
RETRY_S: Final = 1.0
"""Seconds between attempts to reach a missing D-Bus, whose return is not announced."""
_RULES: Final = (
    "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.bluez'",
    f"type='signal',sender='{BLUEZ}',interface='{OBJECTS}'",
    f"type='signal',sender='{BLUEZ}',interface='{PROPERTIES}',member='PropertiesChanged',arg0='{ADAPTER}'",
)

OnLost = Callable[[str], None]


class BluezError(Exception):
    """BlueZ, or D-Bus for it, refused a call: `org.bluez.Error.X: text`."""


class BluezWatch:
    """One connection to the system bus, opened when first needed and again after a loss."""

    def __init__(self) -> None:
        self._bus: MessageBus | None = None
        self._ending: asyncio.Future[None] | None = None
        self._lock = asyncio.Lock()
        self._powered: dict[str, bool] = {}
        self._known = False  # whether `_powered` is up to date
        self._news = asyncio.Event()
        self._losses = 0
        self._why = ""
        self._listeners: dict[object, tuple[OnLost, str]] = {}

    # -------------------------------------------------------------- queries

    async def open(self) -> None:
        """Connect and read the adapters; idempotent. Raises dbus-fast's errors without a bus."""
        async with self._lock:
            if self._bus is None or not self._bus.connected:
                await self._connect()
            if not self._known:
                await self._look()

    @property
    def usable(self) -> bool:
        """Whether BlueZ runs and an adapter is on, as far as known."""
        return self._known and any(self._powered.values())

    async def lost(self) -> str:
        """Wait for the next loss of service, adapter or bus; return what was lost."""
        before = self._losses
        while self._losses == before:
            await self._next()
        return self._why

    async def back(self) -> None:
        """Wait until an adapter is usable."""
        while True:
            try:
                await self.open()
            except Exception as error:  # noqa: BLE001 - no bus or no service: many different errors
                log.debug("no BlueZ yet: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            if self.usable:
                return
            await self._next()

    def on_lost(self, report: OnLost, where: str = "") -> Callable[[], None]:
        """Call `report` with the reason of every loss that concerns the object `where` (default:
        any), until the returned function is called.
        """
        key = object()
        self._listeners[key] = (report, where)
        return lambda: self._listeners.pop(key, None) and None

    async def objects(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return BlueZ's objects: path → interface → property → value. Raises `BluezError`."""
        (found,) = await self.call("/", OBJECTS, "GetManagedObjects")
        return {
            path: {
                name: {key: value.value for key, value in has.items()}
                for name, has in interfaces.items()
            }
            for path, interfaces in found.items()
        }

    async def call(
        self,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        body: tuple[Any, ...] = (),
    ) -> list[Any]:
        """Call BlueZ without starting it. Raises `BluezError`, TimeoutError."""
        assert self._bus is not None, "open() first"
        method, flags = f"{interface}.{member}", MessageFlag.NO_AUTOSTART
        return await call(self._bus, path, method, signature, *body, flags=flags)

    async def mtu(self, characteristic: str) -> int:
        """Return the MTU of a characteristic's connection. Raises `BluezError`, TimeoutError."""
        (mtu,) = await self.call(characteristic, PROPERTIES, "Get", "ss", (CHARACTERISTIC, "MTU"))
        return int(mtu.value)

    async def close(self) -> None:
        """Close the bus connection. Idempotent, never raises."""
        bus, self._bus, self._known = self._bus, None, False
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.cancel()
        if bus is not None:
            bus.disconnect()

    # -------------------------------------------------------------- the bus

    async def _connect(self) -> None:
        await self.close()
        bus = MessageBus(bus_type=BusType.SYSTEM)
        try:
            async with timeout(CALL_S):
                await bus.connect()
            bus.add_message_handler(self._on_message)
            for rule in _RULES:
                await call(bus, "/org/freedesktop/DBus", f"{DBUS}.AddMatch", "s", rule, to=DBUS)
        except BaseException:
            bus.disconnect()  # dbus-fast wants it even when connecting failed
            raise
        self._bus = bus
        self._ending = asyncio.ensure_future(_until_over(bus))
        self._ending.add_done_callback(lambda ending: self._over(bus, ending))

    def _over(self, bus: MessageBus, ending: "asyncio.Future[None]") -> None:
        if not ending.cancelled() and bus is self._bus:
            self._known = False
            self._lose("D-Bus is gone")

    async def _look(self) -> None:
        """Read the adapters; without bluetoothd there are none."""
        self._known = True  # before the call: later changes arrive as signals
        try:
            objects = await self.objects()
        except BluezError as error:
            log.debug("no BlueZ on this bus: %s", error)
            objects = {}
        except BaseException:
            self._known = False
            raise
        self._powered = {
            path: bool(has[ADAPTER].get("Powered"))
            for path, has in objects.items()
            if ADAPTER in has
        }

    # -------------------------------------------------------------- signals

    def _on_message(self, message: Message) -> None:
        if message.message_type is not MessageType.SIGNAL:
            return
        match message.member, message.body:
            case "NameOwnerChanged", [name, old, _new] if name == BLUEZ:
                self._powered, self._known = {}, False
                if old:
                    self._lose("bluetoothd is gone")
                self._news.set()
            case "InterfacesAdded", [path, interfaces] if ADAPTER in interfaces:
                powered = interfaces[ADAPTER].get("Powered")
                self._powered[path] = bool(powered is not None and powered.value)
                self._news.set()
            case "InterfacesRemoved", [path, interfaces] if ADAPTER in interfaces:
                if self._powered.pop(path, None) is not None:
                    self._lose(f"the adapter {_name(path)} is gone", path)
            case "PropertiesChanged", [interface, changed, *_] if (
                interface == ADAPTER and "Powered" in changed
            ):
                self._power(str(message.path), on=bool(changed["Powered"].value))

    def _power(self, path: str, *, on: bool) -> None:
        was, self._powered[path] = self._powered.get(path, False), on
        if was and not on:
            self._lose(f"the adapter {_name(path)} is not powered", path)
        self._news.set()

    def _lose(self, why: str, where: str = "") -> None:
        """Report a loss to everyone concerned: all, or the users of the adapter `where`."""
        log.debug("bluez: %s", why)
        self._losses += 1
        self._why = why
        self._news.set()
        for report, place in list(self._listeners.values()):
            if not where or not place or place.startswith(f"{where}/"):
                report(why)

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()


def _name(path: str) -> str:
    return path.rpartition("/")[2]


async def _until_over(bus: MessageBus) -> None:
    with contextlib.suppress(Exception):  # how it ended does not matter
        await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # dbus-fast 5 is half annotated


async def call(
    bus: MessageBus,
    path: str,
    method: str,
    signature: str = "",
    *body: Any,
    to: str = BLUEZ,
    flags: MessageFlag = MessageFlag.NONE,
    timeout_s: float | None = None,
) -> list[Any]:
    """Call `interface.Member` and return the answer's body. Raises `BluezError`, TimeoutError."""
    interface, _, member = method.rpartition(".")
    message = Message(
        destination=to,
        path=path,
        interface=interface,
        member=member,
        flags=flags,
        signature=signature,
        body=list(body),
    )
    async with timeout(CALL_S if timeout_s is None else timeout_s):
        reply = await bus.call(message)
    if reply is None:
        raise BluezError("D-Bus gave no answer")
    if reply.message_type is MessageType.ERROR:
        raise BluezError(f"{reply.error_name}: {' '.join(map(str, reply.body))}")
    return list(reply.body)
