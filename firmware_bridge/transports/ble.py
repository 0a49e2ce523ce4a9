"""Opens a radio through bleak and finds glasses on it; connections are in ble_connection.py."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from firmware_bridge.bonding import Bonding
from firmware_bridge.catalog import CATALOG, Catalog
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.models import Advertisement, AmbiguousModel, Model
from firmware_bridge.sides import Side
from firmware_bridge.transports.radio_errors import RADIOS, classify

ARMS_GRACE_S: Final = 3.0
"""Seconds one arm of a pair waits for the other: an arm in range advertises many times in it."""


class Sighting(Struct, frozen=True):
    """Glasses just heard. `device` is bleak's own and goes stale within half a minute.

    `bonded`: the radio has a key for them. `left_over`: not heard, but already connected to this
    machine. For two-sided glasses this is one `side` of a `pair`; `other` is the other side, if
    heard too.
    """

    entry: Model
    address: str
    name: str
    rssi: int
    device: Any
    bonded: bool = False
    left_over: bool = False
    pair: str = ""
    side: Side | None = None
    other: "Sighting | None" = None

    @property
    def arms(self) -> "tuple[Sighting, ...]":
        """The sightings of all arms heard."""
        return (self,) if self.other is None else (self, self.other)


def sided(sighting: Sighting) -> Sighting:
    """Return it with pair and side set from its name."""
    arm = sighting.entry.side_of(sighting.name)
    return sighting if arm is None else replace(sighting, pair=arm[0], side=arm[1])


def whole(found: list[Sighting]) -> list[Sighting]:
    """Return both arms of a pair as one sighting, the left first."""
    pairs: dict[str, list[Sighting]] = {}
    for sighting in sorted(found, key=lambda s: s.side or ""):
        pairs.setdefault(sighting.pair or sighting.address, []).append(sighting)
    return [replace(first, other=rest[0] if rest else None) for first, *rest in pairs.values()]


class Pairs:
    """Collects arms heard in one scan, until a wanted pair is complete or its time is over."""

    def __init__(self, found: "asyncio.Future[Sighting]") -> None:
        self._found = found
        self._heard: dict[str, dict[Side, Sighting]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def add(self, arm: Sighting, *, ours: bool) -> None:
        """Add an arm; a pair is wanted as soon as one of its arms is."""
        assert arm.side is not None
        pair = self._heard.setdefault(arm.pair, {})
        pair[arm.side] = arm
        if ours and arm.pair not in self._waiting:
            later = asyncio.get_running_loop().call_later(ARMS_GRACE_S, self._enough, arm.pair)
            self._waiting[arm.pair] = later
        if len(pair) == len(Side) and arm.pair in self._waiting:
            self._enough(arm.pair)

    def _enough(self, pair: str) -> None:
        if not self._found.done():
            self._found.set_result(whole(list(self._heard[pair].values()))[0])

    def close(self) -> None:
        for waiting in self._waiting.values():
            waiting.cancel()


log = logging.getLogger(__name__)

GATT_TIMEOUT_S: Final = 5.0
"""Seconds for one operation: bleak 3.1 has no timeout for them, and BlueZ can lose an answer."""
DEAF_S: Final = 90.0
"""Seconds of listening without any advertisement: BlueZ can scan and hear nothing."""

TURN_S: Final = 15.0
"""Seconds one scan may hold the radio: a link lost meanwhile must not wait for long."""


# ------------------------------------------------------------------ radios


class SilenceTimer:
    """Seconds a radio has been listened to since it last received any advertisement."""

    def __init__(self) -> None:
        self.silent_s = 0.0

    def reset(self) -> None:
        self.silent_s = 0.0

    def add(self, seconds: float) -> bool:
        """Count a scan in which nothing was heard; return whether the radio is now suspect."""
        self.silent_s += seconds
        return self.silent_s >= DEAF_S


class Radio(Struct, frozen=True):
    """A radio. `scanner` and `client` are bleak backends, None for the system's own (BlueZ).

    `lost` waits until the adapter in use is gone and returns why; `back` waits until one is usable.
    `watch` registers a callback for such a loss (of the adapter of a path) and returns a function
    that unregisters it. `fresh` ends a left-over link to an address and clears its cached data.
    `reset` power-cycles. `mtu` queries the MTU for a characteristic's path. `air` is the virtual
    radio channel of `inproc`. `bonding` is None for BlueZ's own. `is_open`: whether our own host
    stack has its adapter open now.
    """

    name: str
    moniker: str
    scanner: Any = None
    client: Any = None
    air: Any = None
    open: Callable[[], Awaitable[None]] | None = None
    lost: Callable[[], Awaitable[str]] | None = None
    back: Callable[[], Awaitable[None]] | None = None
    watch: Callable[[Callable[[str], None], str], Callable[[], None]] | None = None
    fresh: Callable[[str], Awaitable[None]] | None = None
    reset: Callable[[], Awaitable[None]] | None = None
    mtu: Callable[[str], Awaitable[int]] | None = None
    release: Callable[[], Awaitable[None]] | None = None
    is_open: Callable[[], bool] = lambda: False
    bonding: Bonding | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    silence: SilenceTimer = field(default_factory=SilenceTimer)

    async def close(self) -> None:
        """Release the adapter. Idempotent."""
        if self.release is not None:
            await self.release()


async def open_radio(moniker: str, *, air: Any = None, keys: Path | None = None) -> Radio:
    """Return the radio for a moniker; its adapter is opened by the first scan, and after a loss.

    `inproc` uses the virtual channel `air` (None: its own). `keys`: file for bonds that BlueZ does
    not keep (None: in memory). Raises `RadioError`.
    """
    if moniker == "bluez":
        return _bluez()
    kind, _, rest = moniker.partition(":")
    if not _well_formed(kind, rest):
        raise RadioError(RadioReason.OTHER, f"radio {moniker!r} is not known", f"use {RADIOS}")
    try:
        from firmware_bridge.transports.bumble.radio import Bound  # noqa: PLC0415 - 14 MiB that a BlueZ radio never needs

        if kind == "inproc" and air is None:
            from firmware_bridge.sim.air import Air  # noqa: PLC0415 - as above

            air = Air()
    except ImportError as error:
        raise classify(error, f"radio {moniker}", radio=moniker) from error
    bound = Bound(moniker, air, keys)
    return Radio(
        name=kind,
        moniker=moniker,
        scanner=bound.scanner,
        client=bound.client,
        air=air,
        lost=bound.slot.lost,
        back=bound.slot.back,
        reset=bound.slot.close,
        release=bound.slot.close,
        is_open=bound.slot.is_open,
        bonding=bound.bonding,
    )


def _bluez() -> Radio:
    from firmware_bridge.transports.bluez.recovery import BluezRecovery  # noqa: PLC0415 - as below
    from firmware_bridge.transports.bluez.watch import BluezWatch  # noqa: PLC0415 - a virtual radio never needs it

    watch = BluezWatch()
    cure = BluezRecovery(watch)
    return Radio(
        "bluez",
        "bluez",
        open=watch.open,
        lost=watch.lost,
        back=watch.back,
        watch=watch.on_lost,
        fresh=cure.fresh,
        reset=cure.reset,
        mtu=watch.mtu,
        release=watch.close,
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


Wanted = Callable[["Sighting"], bool]
"""Predicate: whether these glasses are wanted."""


async def scan(
    radio: Radio,
    catalog: Catalog = CATALOG,
    *,
    timeout_s: float,
    address: str | None = None,
    model: str | None = None,
    wanted: Wanted | None = None,
    arms: bool = True,
) -> Sighting:
    """Listen until glasses of `catalog` are heard (with this address or model, and `wanted`, if
    given) and return at once.

    For two-sided glasses both arms are awaited, each of which must be `wanted`, and a single one is
    returned after `ARMS_GRACE_S`; with `arms` False any arm will do. Raises `RadioError`:
    `NOT_FOUND` on timeout, `DEAF` if no advertisement was heard from any device for long.
    """
    async with radio.lock:
        found: asyncio.Future[Sighting] = asyncio.get_running_loop().create_future()
        pairs = Pairs(found)

        def on_advertisement(device: Any, data: Any) -> None:
            if found.done():
                return
            try:
                sighting = recognise(catalog, device, data)
            except AmbiguousModel as error:
                found.set_exception(error)
                return
            if sighting is None or (wanted is not None and not wanted(sighting)):
                return
            if sighting.side is not None and arms:
                pairs.add(sighting, ours=_matches(sighting, address, model))
            elif _matches(sighting, address, model):
                found.set_result(sighting)

        try:
            return await _listen(radio, on_advertisement, found, timeout_s)
        finally:
            pairs.close()


async def scan_all(
    radio: Radio,
    catalog: Catalog = CATALOG,
    *,
    timeout_s: float,
    tell: Callable[[Sighting], None] | None = None,
) -> list[Sighting]:
    """Listen for the whole time and return all recognised glasses, strongest first.

    `tell` receives each advertisement at once. Raises `RadioError`.
    """
    seen: dict[str, Sighting] = {}
    never: asyncio.Future[Sighting] = asyncio.get_running_loop().create_future()

    def on_advertisement(device: Any, data: Any) -> None:
        with contextlib.suppress(AmbiguousModel):
            sighting = recognise(catalog, device, data)
            if sighting is not None:
                seen[sighting.address] = sighting
                if tell is not None:
                    tell(sighting)

    while timeout_s > 0:
        turn_s = min(timeout_s, TURN_S)
        async with radio.lock:  # first come, first served
            try:
                await _listen(radio, on_advertisement, never, turn_s)
            except RadioError as error:
                if error.reason not in (RadioReason.NOT_FOUND, RadioReason.DEAF):
                    raise
        timeout_s -= turn_s
    return sorted(seen.values(), key=lambda s: -s.rssi)


async def _listen(
    radio: Radio,
    report: Callable[[Any, Any], None],
    found: "asyncio.Future[Sighting]",
    timeout_s: float,
) -> Sighting:
    def noticed(device: Any, data: Any) -> None:
        radio.silence.reset()
        report(device, data)

    try:
        from bleak import BleakScanner  # noqa: PLC0415 - 8 MiB that a daemon without radio does not need

        if radio.open is not None:
            await radio.open()
        options = {} if radio.scanner is None else {"backend": radio.scanner}
        async with timeout(timeout_s + 2 * GATT_TIMEOUT_S):
            scanner = BleakScanner(noticed, **options)
            await scanner.start()
            try:
                return await _first(radio, found, timeout_s)
            finally:
                await _stop(scanner)
    except RadioError:
        raise
    except AmbiguousModel as error:
        raise RadioError(
            RadioReason.OTHER, str(error), "this is an error in glassd's model catalogue"
        ) from error
    # bleak raises its own, D-Bus's and the operating system's errors alike
    except Exception as error:
        raise classify(error, f"scanning on {radio.moniker}", radio=radio.moniker) from error


async def _stop(scanner: Any) -> None:
    """Stop a scan; BlueZ's errors here must not hide what was heard, nor why it ended."""
    try:
        async with timeout(GATT_TIMEOUT_S):
            await scanner.stop()
    except Exception as error:  # noqa: BLE001 - as in _listen; a scan that did not stop shows at the next start
        log.debug("%s", classify(error, "stopping a scan"))


async def _first(radio: Radio, found: "asyncio.Future[Sighting]", timeout_s: float) -> Sighting:
    """Wait for the sighting, the loss of the radio, or the timeout."""
    waits: list[asyncio.Future[Any]] = [found]
    if radio.lost is not None:
        waits.append(asyncio.ensure_future(radio.lost()))
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if found.done():
            return found.result()
        if len(waits) > 1 and waits[1].done():
            raise classify(
                ConnectionError(waits[1].result()),
                f"scanning on {radio.moniker}",
                radio=radio.moniker,
            )
        if radio.silence.add(timeout_s):
            raise RadioError(
                RadioReason.DEAF,
                f"no advertisement from any device in {DEAF_S:g} s of listening",
                "if there are Bluetooth devices near: "
                "systemctl restart bluetooth, or replug the adapter",
            )
        raise RadioError(
            RadioReason.NOT_FOUND,
            f"no glasses heard in {timeout_s:g} s",
            "switch the glasses on and bring them near; "
            "if a phone holds them, disconnect them there",
        )
    finally:
        for wait in waits[1:]:
            wait.cancel()


def recognise(catalog: Catalog, device: Any, data: Any) -> Sighting | None:
    """Return the glasses of an advertisement, or None if unknown. Raises `AmbiguousModel`."""
    if not _advertises(device):
        return None
    name = data.local_name or device.name
    services = frozenset(uuid.lower() for uuid in data.service_uuids)
    entry = catalog.recognise(Advertisement(name, services))
    if entry is None:
        return None
    sighting = Sighting(
        entry, device.address, name or "", data.rssi, device, bonded=_bonded(device)
    )
    return sided(sighting)


def _props(device: Any) -> dict[str, Any]:
    """Return BlueZ's properties of a device; {} on other radios."""
    found = device.details.get("props") if isinstance(device.details, dict) else None
    return found or {}


def _advertises(device: Any) -> bool:
    """Return whether a device is really advertising: it has a signal strength and is not connected.

    bleak reports every change of a BlueZ device as an advertisement, including the loss of its link
    (bleak 3.1).
    """
    props = _props(device)
    return not props or ("RSSI" in props and not props.get("Connected"))


def _bonded(device: Any) -> bool:
    return bool(_props(device).get("Paired"))


def _matches(sighting: Sighting, address: str | None, model: str | None) -> bool:
    if address is not None and sighting.address.upper() != address.upper():
        return False
    return model is None or sighting.entry.key == model


async def left_over(
    radio: Radio, catalog: Catalog = CATALOG, *, wanted: Wanted | None = None
) -> list[Sighting]:
    """Return glasses that BlueZ is already connected to, from a killed daemon or another program.

    Each arm must be `wanted`: two pairs may share a name. Never raises. Virtual radios end their
    links with the process that made them.
    """
    if radio.client is not None:
        return []
    try:
        from bleak import BleakAdapter  # noqa: PLC0415 - as in _listen

        services = sorted({model.gatt.service for model in catalog.models})
        async with timeout(GATT_TIMEOUT_S):
            devices = await (await BleakAdapter.get()).get_connected_devices(services)
        found = [_connected(catalog, device) for device in devices]
    except Exception as error:  # noqa: BLE001 - as in _listen; a scan meets it again and says so
        log.debug("%s", classify(error, "looking for left-over links"))
        return []
    return whole(
        [
            sighting
            for sighting in found
            if sighting is not None and (wanted is None or wanted(sighting))
        ]
    )


def _connected(catalog: Catalog, device: Any) -> Sighting | None:
    services = frozenset(str(uuid).lower() for uuid in _props(device).get("UUIDs", ()))
    with contextlib.suppress(AmbiguousModel):
        entry = catalog.recognise(Advertisement(device.name, services))
        if entry is not None:
            name = device.name or ""
            return sided(
                Sighting(
                    entry, device.address, name, 0, device, bonded=_bonded(device), left_over=True
                )
            )
    return None
