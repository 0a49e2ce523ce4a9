"""Pairing through BlueZ: an agent registered only while a pairing runs, and removal of a bond.

Answers for the device being paired and refuses all others; `bonding.py` asks the user.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from dbus_fast import BusType, Message, MessageType
from dbus_fast.aio import MessageBus

from firmware_bridge.bonding import Witness
from firmware_bridge.deadlines import timeout
from firmware_bridge.transports.bluez.watch import (
    ADAPTER,
    BLUEZ,
    CALL_S,
    DBUS,
    DEVICE,
    OBJECTS,
    BluezError,
    call,
)

log = logging.getLogger(__name__)

MANAGER: Final = "org.bluez.AgentManager1"
AGENT: Final = "org.bluez.Agent1"
PATH: Final = "/org/glassd/agent"
CAPABILITY: Final = "KeyboardDisplay"
"""Agent capability; with less, BlueZ uses Just Works even for glasses that show a code."""
REMOVE_S: Final = 10.0
"""Seconds for removing a connected device; bluetoothd takes 2 s."""
REJECTED: Final = "org.bluez.Error.Rejected"
CANCELED: Final = "org.bluez.Error.Canceled"
MAX_WAITING: Final = 16
"""Calls from bluetoothd waiting for us; it asks one thing at a time."""


async def connected(address: str | None) -> MessageBus:
    """Connect to the bus at `address`, or the system's. Raises OSError and dbus-fast's errors."""
    bus = MessageBus(bus_address=address) if address else MessageBus(bus_type=BusType.SYSTEM)
    try:
        async with timeout(CALL_S):
            return await bus.connect()
    except BaseException:
        bus.disconnect()  # dbus-fast wants it even when connecting failed
        raise


async def closed(bus: MessageBus) -> None:
    """Close a connection and wait for it, as dbus-fast only starts the close. Never raises."""
    bus.disconnect()
    try:
        async with timeout(CALL_S):
            await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # dbus-fast 5 is half annotated
    except (OSError, EOFError, TimeoutError) as gone:
        log.debug("closing the bus: %s", gone)


class BluezBonding:
    """Implements `Bonding` on BlueZ. `bus_address` None is the system bus."""

    def __init__(self, bus_address: str | None = None) -> None:
        self._bus_address = bus_address

    @asynccontextmanager
    async def asking(self, address: str, witness: Witness) -> AsyncIterator[None]:
        bus = await connected(self._bus_address)
        agent = PairingAgent(bus, address, witness)
        serving = asyncio.ensure_future(agent.serve())
        try:
            await agent.register()
            yield
        finally:
            serving.cancel()
            await asyncio.wait([serving], timeout=CALL_S)
            await asyncio.shield(agent.unregister())
            await closed(bus)

    async def forget(self, address: str) -> bool:
        bus = await connected(self._bus_address)
        try:
            (objects,) = await call(bus, "/", f"{OBJECTS}.GetManagedObjects")
            devices = {path: of.get(DEVICE) or {} for path, of in objects.items()}
            found = [path for path, device in devices.items() if _is_bonded(device, address)]
            for path in found:
                adapter, method = path.rpartition("/")[0], f"{ADAPTER}.RemoveDevice"
                await call(bus, adapter, method, "o", path, timeout_s=REMOVE_S)
            return bool(found)
        finally:
            await closed(bus)


def _is_bonded(device: dict[str, Any], address: str) -> bool:
    def value(name: str) -> Any:
        return device[name].value if name in device else None

    return str(value("Address")).upper() == address.upper() and bool(
        value("Paired") or value("Bonded")
    )


class PairingAgent:
    """One `org.bluez.Agent1` for one pairing. `serve()` answers questions one by one. Used once."""

    def __init__(self, bus: MessageBus, address: str, witness: Witness) -> None:
        self._bus = bus
        self._device = "/dev_" + address.upper().replace(":", "_")
        self._witness = witness
        self._owner = ""
        self._asked: asyncio.Queue[Message | None] = asyncio.Queue(MAX_WAITING)
        self._current: asyncio.Future[Message] | None = None

    async def register(self) -> None:
        """Become the default agent of the running bluetoothd. Raises `BluezError`, TimeoutError."""
        rule = (
            f"type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{BLUEZ}'"
        )
        self._bus.add_message_handler(self._on_message)
        path = "/org/freedesktop/DBus"
        await call(self._bus, path, f"{DBUS}.AddMatch", "s", rule, to=DBUS)
        await self._register()

    async def _register(self) -> None:
        await call(self._bus, "/org/bluez", f"{MANAGER}.RegisterAgent", "os", PATH, CAPABILITY)
        # bleak calls Pair on a connection of its own, so bluetoothd looks for the default agent.
        await call(self._bus, "/org/bluez", f"{MANAGER}.RequestDefaultAgent", "o", PATH)
        path = "/org/freedesktop/DBus"
        (self._owner,) = await call(self._bus, path, f"{DBUS}.GetNameOwner", "s", BLUEZ, to=DBUS)

    async def unregister(self) -> None:
        """Unregister the agent; never raises."""
        self._bus.remove_message_handler(self._on_message)
        try:
            await call(self._bus, "/org/bluez", f"{MANAGER}.UnregisterAgent", "o", PATH)
        # bluetoothd forgets agents whose bus is closed
        except (BluezError, TimeoutError, OSError, EOFError) as gone:
            log.debug("unregistering the pairing agent: %s", gone)

    # -------------------------------------------------------------- calls of bluetoothd

    def _on_message(self, message: Message) -> Message | bool | None:
        if message.message_type is MessageType.SIGNAL:
            self._on_signal(message)
            return None
        called = message.message_type is MessageType.METHOD_CALL
        if not called or message.path != PATH or message.interface != AGENT:
            return None
        if self._owner and message.sender != self._owner:
            return Message.new_error(message, REJECTED, "only bluetoothd may ask")
        if message.member in {"Cancel", "Release"}:
            if self._current is not None:
                self._current.cancel()
            return Message.new_method_return(message)
        if self._asked.full():
            return Message.new_error(message, REJECTED, "one question at a time")
        self._asked.put_nowait(message)
        return True

    def _on_signal(self, message: Message) -> None:
        if message.member == "NameOwnerChanged" and not self._asked.full():
            name, _, owner = message.body
            if name == BLUEZ and owner:
                self._asked.put_nowait(None)

    async def serve(self) -> None:
        """Answer until cancelled."""
        while True:
            message = await self._asked.get()
            if message is None:
                await self._register_again()
            else:
                await self._bus.send(await self._reply(message))

    async def _register_again(self) -> None:
        """Register with a restarted bluetoothd; the interrupted pairing fails by itself."""
        self._owner = ""
        try:
            await self._register()
        except (BluezError, TimeoutError) as refused:
            log.warning("the restarted bluetoothd refused our pairing agent: %s", refused)

    async def _reply(self, message: Message) -> Message:
        """Return the reply, whatever happens; `Cancel` ends the question early."""
        self._current = asyncio.ensure_future(self._ask(message))
        try:
            await asyncio.wait([self._current])
            if self._current.cancelled():
                return Message.new_error(message, CANCELED, "called off")
            return self._current.result()
        finally:
            self._current.cancel()
            self._current = None

    async def _ask(self, message: Message) -> Message:
        if not message.body or not str(message.body[0]).endswith(self._device):
            log.warning("refused to answer bluetoothd's %s for another device", message.member)
            return Message.new_error(message, REJECTED, "not the device being paired")
        match message.member, message.signature:
            case "RequestPasskey", "o":
                number = await self._witness.passkey()
                if number is not None:
                    return Message.new_method_return(message, "u", [number])
            case "RequestConfirmation", "ou":
                if await self._witness.same(int(message.body[1])):
                    return Message.new_method_return(message)
            case "DisplayPasskey", "ouq":
                if message.body[2] == 0:  # repeated for each key pressed on the other side
                    await self._witness.show(int(message.body[1]))
                return Message.new_method_return(message)
        # RequestPinCode, DisplayPinCode, RequestAuthorization, AuthorizeService: glassd never
        # pairs or serves in these ways
        return Message.new_error(message, REJECTED, "no")
