"""Radios and finding glasses on them: open one, scan it, recognise what is heard. Always bleak.

Knows nothing of connections (ble_connection.py) and of what packets mean.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from firmware_bridge.bonding import Bonding
from firmware_bridge.catalog import CATALOG, Advertisement, AmbiguousModel, Catalog, Model
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.transports.radio_errors import RADIOS, classify

GATT_TIMEOUT_S: Final = 5.0
"""bleak has no timeout of its own for reads, writes and subscriptions (bleak 3.1), and BlueZ can lose an answer."""


# ------------------------------------------------------------------ radios


@dataclass(frozen=True, slots=True)
class Radio:
    """Which air we listen to. `scanner` and `client` are bleak backends, None for the system's own (BlueZ).

    `lost` waits until the adapter in use is gone and says why; `air` is the virtual air of an `inproc` radio; `bonding` is
    None for BlueZ's own.
    """

    name: str
    moniker: str
    scanner: Any = None
    client: Any = None
    air: Any = None
    lost: Callable[[], Awaitable[str]] | None = None
    release: Callable[[], Awaitable[None]] | None = None
    bonding: Bonding | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def close(self) -> None:
        """Give the adapter back. Idempotent."""
        if self.release is not None:
            await self.release()


@dataclass(frozen=True, slots=True)
class Sighting:
    """Glasses that were heard just now. `device` is bleak's own and goes stale within half a minute."""

    entry: Model
    address: str
    name: str
    rssi: int
    device: Any


async def open_radio(moniker: str, *, air: Any = None, keys: Path | None = None) -> Radio:
    """Give the radio of a moniker; the adapter itself is opened by the first scan, and again after it was lost.

    `inproc` makes a virtual air (or takes `air`), on which mocks of this process can be started. `keys` is the file of
    the bonds of a radio that BlueZ does not keep (None: in memory). Raises `RadioError`.
    """
    if moniker == "bluez":
        return Radio("bluez", moniker)
    kind, _, rest = moniker.partition(":")
    if not _well_formed(kind, rest):
        raise RadioError(RadioReason.OTHER, f"radio {moniker!r} is not known", f"use {RADIOS}")
    try:
        from firmware_bridge.transports.bumble_radio import Bound  # noqa: PLC0415 - 14 MiB that a BlueZ radio never needs

        if kind == "inproc" and air is None:
            from firmware_bridge.sim.air import Air  # noqa: PLC0415 - as above

            air = Air()
    except ImportError as error:
        raise classify(error, f"radio {moniker}", radio=moniker) from error
    bound = Bound(moniker, air, keys)
    return Radio(
        name=kind, moniker=moniker, scanner=bound.scanner, client=bound.client, air=air, lost=bound.slot.lost,
        release=bound.slot.close, bonding=bound.bonding,
    )  # fmt: skip


def _well_formed(kind: str, rest: str) -> bool:
    host, _, port = rest.rpartition(":")
    match kind:
        case "inproc":
            return not rest
        case "usb":
            return rest.isdecimal()
        case "tcp":
            return bool(host) and port.isdecimal() and 0 < int(port) <= 65535
    return False


# ------------------------------------------------------------------ scanning


async def scan(
    radio: Radio, catalog: Catalog = CATALOG, *, timeout_s: float, address: str | None = None, model: str | None = None
) -> Sighting:
    """Listen until glasses of `catalog` are heard (of this address or model, when given) and return at once.

    Raises `RadioError`; with `NOT_FOUND` when the time is over.
    """
    async with radio.lock:
        found: asyncio.Future[Sighting] = asyncio.get_running_loop().create_future()

        def heard(device: Any, data: Any) -> None:
            if found.done():
                return
            try:
                sighting = _recognise(catalog, device, data)
            except AmbiguousModel as error:
                found.set_exception(error)
                return
            if sighting is not None and _wanted(sighting, address, model):
                found.set_result(sighting)

        return await _listen(radio, heard, found, timeout_s)


async def scan_all(
    radio: Radio, catalog: Catalog = CATALOG, *, timeout_s: float, tell: Callable[[Sighting], None] | None = None
) -> list[Sighting]:
    """Listen for the whole time and give everything recognised, strongest first; `tell` hears each advertisement at once.

    Raises `RadioError`.
    """
    seen: dict[str, Sighting] = {}
    never: asyncio.Future[Sighting] = asyncio.get_running_loop().create_future()

    def heard(device: Any, data: Any) -> None:
        with contextlib.suppress(AmbiguousModel):
            sighting = _recognise(catalog, device, data)
            if sighting is not None:
                seen[sighting.address] = sighting
                if tell is not None:
                    tell(sighting)

    async with radio.lock:
        try:
            await _listen(radio, heard, never, timeout_s)
        except RadioError as error:
            if error.reason is not RadioReason.NOT_FOUND:
                raise
    return sorted(seen.values(), key=lambda s: -s.rssi)


async def _listen(
    radio: Radio, heard: Callable[[Any, Any], None], found: "asyncio.Future[Sighting]", timeout_s: float
) -> Sighting:
    try:
        from bleak import BleakScanner  # noqa: PLC0415 - 8 MiB that a daemon without radio does not need

        options = {} if radio.scanner is None else {"backend": radio.scanner}
        async with asyncio.timeout(timeout_s + GATT_TIMEOUT_S), BleakScanner(heard, **options):
            return await _first(radio, found, timeout_s)
    except RadioError:
        raise
    except AmbiguousModel as error:
        raise RadioError(RadioReason.OTHER, str(error), "this is a fault of the catalogue") from error
    except Exception as error:  # bleak raises its own, D-Bus's and the operating system's errors alike
        raise classify(error, f"scanning on {radio.moniker}", radio=radio.moniker) from error


async def _first(radio: Radio, found: "asyncio.Future[Sighting]", timeout_s: float) -> Sighting:
    """Wait for the sighting, for the end of the radio, or for the end of patience."""
    waits: list[asyncio.Future[Any]] = [found]
    if radio.lost is not None:
        waits.append(asyncio.ensure_future(radio.lost()))
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if found.done():
            return found.result()
        if len(waits) > 1 and waits[1].done():
            raise classify(ConnectionError(waits[1].result()), f"scanning on {radio.moniker}", radio=radio.moniker)
        raise RadioError(
            RadioReason.NOT_FOUND, f"no glasses heard in {timeout_s:g} s", "switch the glasses on and bring them near"
        )
    finally:
        for wait in waits[1:]:
            wait.cancel()


def _recognise(catalog: Catalog, device: Any, data: Any) -> Sighting | None:
    name = data.local_name or device.name
    services = frozenset(uuid.lower() for uuid in data.service_uuids)
    entry = catalog.recognise(Advertisement(name, services))
    return None if entry is None else Sighting(entry, device.address, name or "", data.rssi, device)


def _wanted(sighting: Sighting, address: str | None, model: str | None) -> bool:
    if address is not None and sighting.address.upper() != address.upper():
        return False
    return model is None or sighting.entry.key == model
