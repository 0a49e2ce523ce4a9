"""Read-only queries to BlueZ over D-Bus; never starts bluetoothd and never uses the radio."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

SYSTEM_BUS: Final = "unix:path=/run/dbus/system_bus_socket"
_BUS: Final = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_OBJECTS: Final = ("org.bluez", "/", "org.freedesktop.DBus.ObjectManager")
_ADAPTER: Final = "org.bluez.Adapter1"
_DEVICE: Final = "org.bluez.Device1"


@dataclass(frozen=True, slots=True)
class Adapter:
    """A Bluetooth adapter as seen by BlueZ; `name` is hci0 and so on."""

    name: str
    address: str
    powered: bool


@dataclass(frozen=True, slots=True)
class Device:
    """A device known to BlueZ."""

    address: str
    name: str
    adapter: str
    paired: bool
    connected: bool


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of one query. The first non-empty problem shows how far it got."""

    no_bus: str = ""
    no_service: str = ""
    refused: str = ""
    activatable: bool = False
    adapters: tuple[Adapter, ...] = ()
    devices: tuple[Device, ...] = ()


async def look(bus_address: str = SYSTEM_BUS, *, timeout_s: float = 2.0) -> ProbeResult:
    """Query once; problems with D-Bus or BlueZ are returned, not raised."""
    from dbus_fast.aio import MessageBus  # noqa: PLC0415 - only a machine with a BlueZ radio needs it
    from dbus_fast.errors import AuthError, InvalidAddressError  # noqa: PLC0415

    bus = None
    try:
        async with timeout(timeout_s):
            bus = MessageBus(bus_address)
            await bus.connect()
            return await _query(bus)
    except TimeoutError:
        return ProbeResult(no_bus=f"{bus_address} does not answer")
    except (OSError, EOFError, AuthError, InvalidAddressError) as e:
        return ProbeResult(
            no_bus=f"{bus_address}: {getattr(e, 'strerror', None) or str(e) or type(e).__name__}"
        )
    finally:
        if bus is not None:
            bus.disconnect()
            with suppress(TimeoutError, OSError, EOFError):
                async with timeout(0.5):  # its socket closes in the loop's next turns
                    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # dbus-fast's


async def _query(bus: "MessageBus") -> ProbeResult:
    owned = await _call(bus, _BUS, "NameHasOwner", "org.bluez")
    if not (_good(owned) and owned.body[0]):
        names = await _call(bus, _BUS, "ListActivatableNames")
        activatable = _good(names) and "org.bluez" in names.body[0]
        return ProbeResult(no_service="org.bluez has no owner on the bus", activatable=activatable)
    objects = await _call(bus, _OBJECTS, "GetManagedObjects")
    if not _good(objects):
        return ProbeResult(
            refused=f"{objects.error_name}: {' '.join(map(str, objects.body))}"[:200]
        )
    return _read(objects.body[0])


def _read(objects: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> ProbeResult:
    adapters, devices = [], []
    for path, interfaces in sorted(objects.items()):
        if _ADAPTER in interfaces:
            a = _plain(interfaces[_ADAPTER])
            adapters.append(
                Adapter(path.rpartition("/")[2], str(a.get("Address", "")), bool(a.get("Powered")))
            )
        if _DEVICE in interfaces:
            d = _plain(interfaces[_DEVICE])
            # BlueZ before 5.65 has no Bonded, and says Paired of a bond.
            bonded = bool(d.get("Bonded", d.get("Paired")))
            devices.append(
                Device(
                    str(d.get("Address", "")),
                    str(d.get("Name", "")),
                    str(d.get("Adapter", "")).rpartition("/")[2],
                    bonded,
                    bool(d.get("Connected")),
                )
            )
    return ProbeResult(adapters=tuple(adapters), devices=tuple(devices))


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: variant.value for name, variant in properties.items()}


async def _call(
    bus: "MessageBus", whom: tuple[str, str, str], member: str, *words: str
) -> "Message":
    """Call `member` of (destination, path, interface); all arguments are strings."""
    from dbus_fast import Message, MessageFlag  # noqa: PLC0415

    destination, path, interface = whom
    reply = await bus.call(
        Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature="s" * len(words),
            body=list(words),
            flags=MessageFlag.NO_AUTOSTART,
        )
    )
    assert reply is not None
    return reply


def _good(reply: "Message") -> bool:
    return reply.message_type.name == "METHOD_RETURN"
