"""Our relation to the glasses over time: seek, connect, greet, listen, and begin again for ever.

Refuses to know what travels over the link. Each connection is one transport, one codec, one driver, used once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from edge.clock import Clock
from edge.core.backoff import Backoff
from edge.core.link_state import LinkState, check
from edge.events import CapabilitiesLearned, GlassesLost, GlassesReady, GlassesSaid, LinkChanged
from edge.ports import BusPort, GlassesAway, GlassesStatus
from edge.race import race
from edge.store_ports import NotesPort
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities, Origin, Scalar
from firmware_bridge.driver import Driver
from firmware_bridge.errors import BridgeError, LinkLost, LostReason, RadioError
from firmware_bridge.messages import (
    BatteryChanged,
    CapabilitiesChanged,
    Command,
    Done,
    GlassesInfo,
    Hello,
    WornChanged,
)
from firmware_bridge.transport import Transport

log = logging.getLogger(__name__)

NOTE: Final = "glasses.last"
"""Where the last-known glasses are kept between runs."""
HELLO_S: Final = 5.0
"""A greeting is two small frames each way; a radio that needs longer has lost them."""
DEFAULT_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Found:
    """A fresh connection and the model that answered the advertisement."""

    transport: Transport[Any]
    entry: catalog.Model


class Finder(Protocol):
    """Finds and connects our glasses: BLE in the daemon, memory in tests. Raises `RadioError`."""

    async def seek(self) -> Any: ...
    async def connect(self, sighting: Any) -> Found: ...
    async def close(self) -> None: ...


class LinkManager:
    """Implements `GlassesPort`; `run()` is the service."""

    def __init__(
        self, finder: Finder, *, bus: BusPort, clock: Clock, notes: NotesPort, backoff: Backoff,
        configured: Mapping[str, Scalar] | None = None, version: str = "0",
        rest: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        self._finder = finder
        self._bus = bus
        self._clock = clock
        self._notes = notes
        self._backoff = backoff
        self._configured = dict(configured or {})
        self._version = version
        self._rest_for = rest
        self._driver: Driver[Any] | None = None
        self._state = LinkState.OFF
        self._status = GlassesStatus()
        self._ready_since: float | None = None

    # -------------------------------------------------------------- what others see

    def status(self) -> GlassesStatus:
        return self._status

    async def request(self, command: Command, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Done:
        """Send a command and wait for its answer. Raises `GlassesAway`, `CommandRefused`, `CommandTimeout`."""
        try:
            reply = await self._ready_driver().request(command, timeout_s=timeout_s)
        except LinkLost as lost:
            raise GlassesAway(str(lost)) from lost
        return reply if isinstance(reply, Done) else Done()

    async def post(self, command: Command) -> None:
        """Send a command that has no answer. Raises `GlassesAway`."""
        try:
            await self._ready_driver().post(command)
        except LinkLost as lost:
            raise GlassesAway(str(lost)) from lost

    def _ready_driver(self) -> Driver[Any]:
        if self._driver is None or self._state is not LinkState.READY:
            raise GlassesAway(self._status.reason or "the glasses are not connected")
        return self._driver

    # -------------------------------------------------------------- the service

    async def run(self) -> None:
        """Keep a link for ever; ends only by cancellation, which closes the connection first."""
        await self._recall()
        self._move(LinkState.SEEKING)
        try:
            while True:
                await self._rest(await self._one_connection())
        finally:
            self._driver = None
            await asyncio.shield(self._finder.close())
            if self._state is not LinkState.OFF:
                self._move(LinkState.CLOSING)
                self._move(LinkState.OFF)

    async def _one_connection(self) -> BridgeError:
        """Live through one connection, from seeking it to its end; gives why it ended."""
        try:
            sighting = await self._finder.seek()
            self._move(LinkState.CONNECTING)
            found = await self._finder.connect(sighting)
            self._move(LinkState.PREPARING)
            async with _closing(found.transport):
                codec = found.entry.codec(found.transport.max_packet)
                driver = Driver(found.transport, codec, clock=self._clock.boot)
                await race(driver.run(), self._use(driver, found))
        except BridgeError as cause:
            return cause
        return LinkLost(LostReason.DISCONNECTED)

    async def _use(self, driver: Driver[Any], found: Found) -> None:
        info = await driver.request(Hello(name="glassd", version=self._version), timeout_s=HELLO_S)
        if not isinstance(info, GlassesInfo):
            raise LinkLost(LostReason.PROTOCOL, "the glasses did not answer our greeting with who they are")
        entry = catalog.by_firmware_model(info.model) or found.entry
        self._driver = driver
        self._status = replace(
            self._status, model=entry.key, firmware=info.firmware, address=found.transport.address,
            mtu=found.transport.max_packet + 3, transport=found.transport.name, attempts=0, link=self._status.link + 1,
        )  # fmt: skip
        await self._learn(entry, info.capabilities)
        self._move(LinkState.READY)
        self._ready_since = self._clock.boot()
        s = self._status
        log.info("glasses ready: %s over %s, MTU %d", s.model, s.transport, s.mtu)
        self._bus.publish(GlassesReady(s.model, s.firmware, s.address, s.mtu, s.transport))
        async for event in driver.events():
            if isinstance(event, CapabilitiesChanged):
                await self._learn(entry, event.capabilities)
            elif isinstance(event, BatteryChanged):
                self._status = replace(self._status, battery=event.level)
            elif isinstance(event, WornChanged):
                self._status = replace(self._status, worn=event.worn)
            self._bus.publish(GlassesSaid(event))
        await asyncio.Event().wait()  # the driver is closing the connection: it says when that is done, and why it ended

    async def _rest(self, cause: BridgeError) -> None:
        was_ready = self._state is LinkState.READY
        up_s = self._clock.boot() - self._ready_since if was_ready and self._ready_since is not None else 0.0
        self._driver = None
        attempts = self._status.attempts + 1
        hint = cause.hint if isinstance(cause, RadioError) else ""
        # One WARNING a cycle: the first failure after READY (or after start), the repeats are for who debugs.
        log.log(logging.WARNING if attempts == 1 else logging.DEBUG, "no link to the glasses: %s", cause)
        self._status = replace(self._status, hint=hint, attempts=attempts, stale=self._status.capabilities is not None)
        self._move(LinkState.RESTING, str(cause))
        if was_ready:
            self._bus.publish(GlassesLost(str(cause)))
            self._bus.publish(CapabilitiesLearned(self._status.model, stale=True))
        await self._rest_for(self._backoff.after(up_s))
        self._move(LinkState.SEEKING, str(cause))

    # -------------------------------------------------------------- state and knowledge

    def _move(self, new: LinkState, reason: str = "") -> None:
        self._state = check(self._state, new)
        ready = new is LinkState.READY
        if ready:
            self._status = replace(self._status, hint="", stale=False)
        self._status = replace(self._status, state=new.value, reason=reason, ready=ready)
        self._bus.publish(LinkChanged(new.value, reason))

    async def _learn(self, entry: catalog.Model, announced: Mapping[str, Scalar]) -> None:
        now = self._clock.boot()
        record = Capabilities.of(entry.key, entry.capabilities, origin=Origin.CATALOGUE, now=now)
        record = record.merged(Capabilities.of(entry.key, announced, origin=Origin.FIRMWARE, now=now))
        record = record.merged(Capabilities.of(entry.key, self._configured, origin=Origin.CONFIGURED, now=now))
        self._status = replace(self._status, capabilities=record, stale=False)
        note = {
            "model": record.model, "firmware": self._status.firmware, "report": record.report(now), "wall": self._clock.wall(),
        }  # fmt: skip
        try:
            await self._notes.put(NOTE, note)
        except Exception as e:  # noqa: BLE001 - a disk's fault costs the memory of these glasses, never the glasses
            log.warning("the glasses are not remembered over a restart: %s", e)
        self._bus.publish(CapabilitiesLearned(record.model, stale=False))

    async def _recall(self) -> None:
        """Take up the last-known glasses, marked stale; a damaged note is as good as none."""
        note = await self._notes.get(NOTE)
        if not isinstance(note, dict):
            return
        try:
            # Time spent switched off makes the values older; a clock set back must not make them younger.
            off_s = max(0.0, self._clock.wall() - float(note["wall"]))
            record = Capabilities.from_report(note["model"], note["report"], now=self._clock.boot() - off_s)
        except (KeyError, ValueError, TypeError) as damaged:
            log.warning("the note of the last glasses is unreadable and was left aside: %r", damaged)
            return
        self._status = replace(
            self._status, model=record.model, firmware=str(note.get("firmware", "")), capabilities=record, stale=True
        )
        self._bus.publish(CapabilitiesLearned(record.model, stale=True))


@asynccontextmanager
async def _closing(transport: Transport[Any]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        # The disconnect must reach the radio even when we are being cancelled, or the glasses stay taken.
        await asyncio.shield(transport.close())
