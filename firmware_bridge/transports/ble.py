"""Glasses over Bluetooth LE: find one, connect, move its packets. Always bleak, on whichever radio was chosen.

The one reader of bleak's and BlueZ's error texts; knows nothing of what packets mean.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from firmware_bridge.catalog import CATALOG, Advertisement, AmbiguousModel, Catalog, Model
from firmware_bridge.errors import LinkLost, LostReason, RadioError, RadioReason

log = logging.getLogger(__name__)
T = TypeVar("T")

GATT_TIMEOUT_S: Final = 5.0
"""bleak has no timeout of its own for reads, writes and subscriptions (bleak 3.1), and BlueZ can lose an answer."""
CLOSE_TIMEOUT_S: Final = 3.0
"""bluetoothd takes about 2 s for a disconnect (measured 1.9 to 2.7)."""
MTU_SETTLE_S: Final = 1.0
"""BlueZ may still report the smallest packet right after connecting while the MTU is being negotiated."""
SMALLEST_PACKET: Final = 20
MAX_QUEUED_PACKETS: Final = 1024
"""The codec grants 32 frames; whoever sends 1,024 unread ones has no flow control and is cut off."""
RADIOS: Final = "bluez, usb:N, tcp:HOST:PORT or inproc"


# ------------------------------------------------------------------ what the radio says when it fails


class _Rule(NamedTuple):
    """`says` replaces a text that would mean nothing to a person."""

    pattern: str
    reason: RadioReason
    hint: str
    says: str = ""


_RULES: Final = (
    _Rule(r"No module named '(bumble|bleak|usb1)", RadioReason.NO_ADAPTER, "install it: pip install 'glassd[sim]'"),
    _Rule(r"virtual adapter is busy", RadioReason.BUSY,
          "another daemon uses this mock: stop it, or start a second mock on another port"),
    _Rule(r"no virtual adapter|HCI stream ended|does not speak HCI|virtual adapter reads nothing", RadioReason.NO_ADAPTER,
          "start the mock: glassd sim mock:display --radio {radio}"),
    _Rule(r"no Bluetooth dongle|dongle is gone", RadioReason.NO_ADAPTER, "plug the dongle in; check that we may open it (udev)"),
    _Rule(r"POWERED_OFF|not powered|No powered Bluetooth adapters|NotReady|Resource Not Ready", RadioReason.POWERED_OFF,
          "bluetoothctl power on (and: rfkill unblock bluetooth)"),
    _Rule(r"FileNotFoundError|ConnectionRefusedError|org\.bluez.*not provided|ServiceUnknown|DBUS_SYSTEM_BUS|name is not activatable",
          RadioReason.NO_SERVICE, "systemctl start bluetooth (BlueZ and D-Bus must be installed and running), or choose another "
          "radio: " + RADIOS, "the Bluetooth service cannot be reached"),
    _Rule(r"PermissionError|AccessDenied|DENIED_|NotAuthorized\b.*sender", RadioReason.REFUSED,
          "let this user talk to org.bluez: add it to the group bluetooth"),
    _Rule(r"NO_BLUETOOTH|No Bluetooth adapters|adapter.*not found|NO_BLE_CENTRAL_ROLE", RadioReason.NO_ADAPTER,
          "plug in a Bluetooth adapter, or choose another radio: " + RADIOS),
    _Rule(r"InProgress|Operation already in progress|in use", RadioReason.BUSY,
          "another program is scanning or connecting; it passes, or: systemctl restart bluetooth"),
    _Rule(r"AuthenticationFailed|AuthenticationRejected|INSUFFICIENT_|PIN_OR_KEY_MISSING", RadioReason.REFUSED,
          "pair again: glassd unpair, then glassd pair"),
    _Rule(r"DeviceNotFound|not found|UnknownObject|removed from BlueZ", RadioReason.NOT_FOUND,
          "switch the glasses on and bring them near"),
    _Rule(r"TimeoutError|timed out", RadioReason.TIMEOUT, "bring the glasses near; switch them off and on"),
)  # fmt: skip
"""Every text by which bleak, BlueZ or our own backend says what is wrong, first match wins (facts: lab, bleak 3.1)."""


_PLAIN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def classify(error: BaseException, doing: str, *, radio: str = "tcp:HOST:PORT") -> RadioError:
    """Turn whatever bleak raised into a reason, a sentence and the next thing a person can do."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    detail = _PLAIN.sub(" ", words).strip()[:300]  # remote text: no control characters, one line
    told = f"{type(error).__name__}: {detail} {getattr(getattr(error, 'reason', None), 'name', '')}"
    for rule in _RULES:
        if re.search(rule.pattern, told):
            said = rule.says or detail or type(error).__name__
            return RadioError(rule.reason, f"{doing}: {said}", rule.hint.replace("{radio}", radio))
    return RadioError(RadioReason.OTHER, f"{doing}: {detail or type(error).__name__}")


# ------------------------------------------------------------------ radios


@dataclass(frozen=True, slots=True)
class Radio:
    """Which air we listen to. `scanner` and `client` are bleak backends, None for the system's own (BlueZ).

    `lost` waits until the adapter in use is gone and says why; `air` is the virtual air of an `inproc` radio.
    """

    name: str
    moniker: str
    scanner: Any = None
    client: Any = None
    air: Any = None
    lost: Callable[[], Awaitable[str]] | None = None
    release: Callable[[], Awaitable[None]] | None = None
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


async def open_radio(moniker: str, *, air: Any = None) -> Radio:
    """Give the radio of a moniker; the adapter itself is opened by the first scan, and again after it was lost.

    `inproc` makes a virtual air (or takes `air`), on which mocks of this process can be started. Raises `RadioError`.
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
    bound = Bound(moniker, air)
    return Radio(
        name=kind, moniker=moniker, scanner=bound.scanner, client=bound.client, air=air, lost=bound.slot.lost, release=bound.slot.close
    )


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


async def scan_all(radio: Radio, catalog: Catalog = CATALOG, *, timeout_s: float) -> list[Sighting]:
    """Listen for the whole time and give everything recognised, strongest first. Raises `RadioError`."""
    seen: dict[str, Sighting] = {}
    never: asyncio.Future[Sighting] = asyncio.get_running_loop().create_future()

    def heard(device: Any, data: Any) -> None:
        with contextlib.suppress(AmbiguousModel):
            sighting = _recognise(catalog, device, data)
            if sighting is not None:
                seen[sighting.address] = sighting

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


# ------------------------------------------------------------------ one connection


async def connect(radio: Radio, sighting: Sighting, *, timeout_s: float) -> "BleTransport":
    """Connect, read `info`, subscribe. Raises `RadioError`."""
    async with radio.lock:
        transport = BleTransport(radio, sighting)
        try:
            async with asyncio.timeout(timeout_s):
                await transport.open(timeout_s)
        except asyncio.CancelledError:
            await transport.close()
            raise
        except RadioError:
            await transport.close()
            raise
        except Exception as error:  # as in _listen
            await transport.close()
            raise classify(error, f"connecting to {sighting.address}", radio=radio.moniker) from error
        return transport


class BleTransport:
    """One connection; implements `Transport`. `connect` makes it. Used once."""

    def __init__(self, radio: Radio, sighting: Sighting) -> None:
        self._radio = radio
        self._sighting = sighting
        self._client: Any = None
        self._rx: Any = None
        self._packets: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lost: LostReason | None = None
        self.info_bytes = b""
        """Value of the family's info characteristic; empty when it has none."""

    @property
    def name(self) -> str:
        return self._radio.name

    @property
    def address(self) -> str:
        return self._sighting.address

    @property
    def max_packet(self) -> int:
        """Bytes one write can carry now; it may grow while the MTU is being negotiated."""
        size = SMALLEST_PACKET if self._rx is None else int(self._rx.max_write_without_response_size)
        return max(SMALLEST_PACKET, size)

    async def open(self, timeout_s: float) -> None:
        """Connect and subscribe; called once, by `connect`."""
        from bleak import BleakClient  # noqa: PLC0415 - as in _listen

        options = {} if self._radio.client is None else {"backend": self._radio.client}
        self._client = BleakClient(
            self._sighting.device, disconnected_callback=lambda _client: self._end(LostReason.DISCONNECTED),
            timeout=timeout_s, **options,
        )  # fmt: skip
        await self._client.connect()
        where = self._sighting.entry.gatt
        self._rx, tx = self._characteristic(where.rx), self._characteristic(where.tx)
        if self._radio.client is None:
            await self._settle()
        if where.info is not None:
            self.info_bytes = bytes(await _timed(self._client.read_gatt_char(self._characteristic(where.info))))
        await _timed(self._client.start_notify(tx, self._received))

    def _characteristic(self, uuid: str) -> Any:
        found = self._client.services.get_characteristic(uuid) if self._client.services else None
        if found is None:
            raise RadioError(
                RadioReason.REFUSED, f"{self.address} has no characteristic {uuid}",
                "these are other glasses than their advertisement says; update their firmware",
            )  # fmt: skip
        return found

    async def _settle(self) -> None:
        """Give BlueZ a moment to learn the MTU; glasses that really have the smallest lose a second, once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MTU_SETTLE_S):
                while self.max_packet <= SMALLEST_PACKET and self._lost is None:  # noqa: ASYNC110 - BlueZ tells nobody
                    await asyncio.sleep(0.05)

    async def write(self, packet: bytes) -> None:
        """Send one packet, unanswered. Raises `LinkLost`; ValueError for one that the radio would cut."""
        if self._lost is not None:
            raise LinkLost(self._lost)
        if len(packet) > self.max_packet:
            raise ValueError(f"a packet of {len(packet)} bytes; {self.max_packet} fit one write")
        try:
            await _timed(self._client.write_gatt_char(self._rx, packet, response=False))
        except Exception as error:  # as in _listen
            self._end(LostReason.WRITE_FAILED)
            raise LinkLost(self._lost_because(), str(classify(error, "writing"))) from error

    async def packets(self) -> AsyncIterator[bytes]:
        """Packets from the glasses, until the connection is lost."""
        while (packet := await self._packets.get()) is not None:
            yield packet
        self._packets.put_nowait(None)  # whoever asks again gets the same answer

    async def close(self) -> None:
        """Disconnect; idempotent, never raises."""
        client, self._client = self._client, None
        self._end(LostReason.CLOSED)
        if client is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await client.disconnect()
        except Exception as error:  # noqa: BLE001 - it is over anyway; as in _listen
            log.debug("disconnecting %s: %s", self.address, classify(error, "disconnecting"))

    def _received(self, _characteristic: Any, data: bytearray) -> None:
        if self._lost is not None:
            return
        if self._packets.qsize() >= MAX_QUEUED_PACKETS:
            log.warning("%s sends without looking at its credit; cut off", self.address)
            self._end(LostReason.PROTOCOL)
            return
        self._packets.put_nowait(bytes(data))

    def _lost_because(self) -> LostReason:
        return self._lost or LostReason.DISCONNECTED

    def _end(self, reason: LostReason) -> None:
        if self._lost is None:
            self._lost = reason
            self._packets.put_nowait(None)


async def _timed(operation: Awaitable[T]) -> T:
    async with asyncio.timeout(GATT_TIMEOUT_S):
        return await operation
