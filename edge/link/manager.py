"""The link to the glasses over time: find, connect, greet, listen, rest, and start over.

Each connection is one transport, one codec, one driver, used once. After a failure
`core/recovery.py` decides what follows, `core/backoff.py` how long the rest before the next attempt
is, and the finder carries the step out.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from msgspec import Struct

from edge.core import recovery
from edge.core.backoff import Backoff
from edge.core.link_state import LinkState
from edge.core.recovery import Advice, LeftToSystemd, RecoveryStep, Wake
from edge.link.glasses_state import GlassesState
from edge.link.restore import RestoredSettings
from edge.ports import GlassesAway, GlassesStatus, TapTaken
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Deadline, Within, unwatched
from edge.runtime.events import (
    CapabilitiesLearned,
    GlassesLost,
    GlassesReady,
    GlassesSaid,
    PrivateWords,
)
from edge.runtime.first_completed import race
from firmware_bridge import catalog
from firmware_bridge.deadlines import timeout
from firmware_bridge.driver import HEARTBEAT_S, Driver, Passing, Tap
from firmware_bridge.errors import (
    BridgeError,
    CommandRefused,
    CommandTimeout,
    LinkLost,
    LostReason,
    RadioError,
)
from firmware_bridge.messages import (
    CapabilitiesChanged,
    Command,
    Done,
    GlassesInfo,
    Hello,
    HidingChanged,
    MicrophoneChunk,
    OwnCommand,
    PhotoFailed,
    PhotoTaken,
    SetClock,
    Transcript,
    VoiceNoteFetched,
)
from firmware_bridge.models import Model
from firmware_bridge.transport import Transport

log = logging.getLogger(__name__)

HELLO_S: Final = 5.0
"""A greeting is two small frames each way; a radio that needs longer has lost them."""
DEFAULT_TIMEOUT_S: Final = 5.0
SECRET_S: Final = 60.0
"""Seconds in which a codec may still send a secret again: glasses are waited for no longer."""
CURE_S: Final = 30.0
"""What a recovery step may take: BlueZ needs 2 s for a disconnect, 3 s for an adapter to come on.
"""
RELISTEN_S: Final = 1.0
"""Seconds before listening again after the radio failed during a rest."""
RELEASE_S: Final = 15.0
"""Seconds for releasing the radio: a disconnect, and the end of a scan."""


class FoundGlasses(Struct, frozen=True):
    """A fresh connection and the model that answered the advertisement."""

    transport: Transport[Any]
    entry: Model


class Finder(Protocol):
    """Finds and connects our glasses: BLE in the daemon, memory in tests. Raises `RadioError`."""

    async def seek(self) -> Any: ...
    async def connect(self, sighting: Any) -> FoundGlasses: ...
    async def wait_to_wake(self, wake: Wake) -> None:
        """Wait for what ends a rest early. Raises `RadioError` if that cannot be known."""

    async def fresh(self) -> None: ...
    async def reset(self) -> None: ...
    async def close(self) -> None: ...


class LinkManager:
    """Implements `GlassesPort`; `run()` is the service.

    `suppressed` returns whether transcripts are suppressed now; `wearer_clock` what sets the
    glasses' clock, or None.
    """

    def __init__(
        self,
        finder: Finder,
        state: GlassesState,
        *,
        bus: Bus,
        clock: Clock,
        backoff: Backoff,
        version: str = "0",
        watched: bool = False,
        suppressed: Callable[[], bool] = lambda: False,
        wearer_clock: Callable[[], SetClock | None] = lambda: None,
        rest: Callable[[float], Awaitable[object]] = asyncio.sleep,
        within: Within = unwatched,
        step_s: float = 120.0,
    ) -> None:
        self._within = within
        # far above what seeking, connecting, greeting and closing may each take
        self._step_s = step_s
        self._finder = finder
        self._state = state
        self._bus = bus
        self._clock = clock
        self._backoff = backoff
        self._version = version
        self._watched = watched
        self._suppressed = suppressed
        self._wearer_clock = wearer_clock
        self._take_sound: Callable[[MicrophoneChunk], None] = lambda _chunk: None
        self._take_photo: Callable[[PhotoTaken | PhotoFailed], None] = lambda _photo: None
        self._take_voice_note: Callable[[VoiceNoteFetched], None] = lambda _note: None
        self._tap: Tap | None = None
        self._secret_at = -math.inf
        self._heartbeat_s = HEARTBEAT_S
        self._rest_for = rest
        self._driver: Driver[Any] | None = None
        self._transport: Transport[Any] | None = None
        self._ready_since = 0.0
        self._history: tuple[recovery.Failure, ...] = ()
        self._settings = RestoredSettings()
        self._pausing = asyncio.Lock()
        self._pause_reason = ""
        self._pause_asked = asyncio.Event()
        self._released = asyncio.Event()
        self._resumed = asyncio.Event()
        self._released.set()

    # -------------------------------------------------------------- what others see

    def status(self) -> GlassesStatus:
        if self._state.status.ready and self._transport is not None:
            self._state.set_mtu(self._transport.max_packet + 3)
        return self._state.status

    async def request(self, command: Command, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Done:
        """Send a command, return its answer, or raise as `GlassesPort.request` says."""
        if isinstance(command, OwnCommand) and command.is_secret:
            if self._tap is not None:
                detail = "packets are recorded, and would have a secret in them"
                raise CommandRefused("busy", detail)
            self._secret_at = self._clock.boot()
        try:
            reply = await self._ready_driver().request(command, timeout_s=timeout_s)
        except LinkLost as lost:
            self._doubt(command)
            raise GlassesAway(str(lost)) from lost
        except (CommandTimeout, asyncio.CancelledError):  # it may have been done all the same
            self._doubt(command)
            raise
        self._settings.accept(command)
        self._update_hiding()
        done = reply if isinstance(reply, Done) else Done()
        if done.skew_s is not None:
            self._state.update(skew_ms=round(done.skew_s * 1000, 1))
        return done

    def _doubt(self, command: Command) -> None:
        self._settings.doubt(command)
        self._update_hiding()

    def _update_hiding(self) -> None:
        self._state.update(unseen=self._settings.unseen, covered=self._settings.covered)

    async def post(self, command: Command) -> None:
        """Send a command that has no answer. Raises `GlassesAway`."""
        try:
            await self._ready_driver().post(command)
        except LinkLost as lost:
            raise GlassesAway(str(lost)) from lost

    def listen_to(self, take: Callable[[MicrophoneChunk], None]) -> None:
        """Give the sound of the microphone to `take`; see `GlassesPort.listen_to`."""
        self._take_sound = take

    def receive_photos(self, take: Callable[[PhotoTaken | PhotoFailed], None]) -> None:
        """Give photos to `take`, which never waits. There is one taker; photos are in no event."""
        self._take_photo = take

    def receive_voice_notes(self, take: Callable[[VoiceNoteFetched], None]) -> None:
        """See `GlassesPort`."""
        self._take_voice_note = take

    @asynccontextmanager
    async def tapped(self, tap: Tap, *, reconnect: bool) -> AsyncIterator[None]:
        """Show all that passes to `tap`; with `reconnect` from the beginning of a connection on,
        for which the link is closed and opened again; that is also done while a secret may still
        be on its way. Raise `TapTaken`, TimeoutError.
        """
        if self._tap is not None:
            raise TapTaken("the packets are recorded already")
        self._tap = tap
        try:
            if reconnect or self._clock.boot() < self._secret_at + SECRET_S:
                async with self.paused("a recording begins with a new connection"):
                    pass
            elif self._driver is not None:
                self._driver.tap = tap
            yield
        finally:
            self._tap = None
            if self._driver is not None:
                self._driver.tap = None

    def _ready_driver(self) -> Driver[Any]:
        if self._driver is None or self._state.state is not LinkState.READY:
            raise GlassesAway(self._state.status.reason or "the glasses are not connected")
        return self._driver

    def resume(self) -> None:
        """Try at once: a person reports that things have changed."""
        self._history = ()
        self._resumed.set()

    @asynccontextmanager
    async def paused(self, why: str) -> AsyncIterator[None]:
        """Lend the radio: the link is closed and nothing scans; afterwards it seeks at once.

        Raises TimeoutError when the radio is not released.
        """
        async with self._pausing:
            self._pause_reason = why
            self._pause_asked.set()
            try:
                async with timeout(RELEASE_S):
                    await self._released.wait()
                yield
            finally:
                self._pause_reason = ""
                self._pause_asked.clear()
                self.resume()

    # -------------------------------------------------------------- the service

    async def run(self) -> None:
        """Keep a link until cancelled, which closes the connection first, or `LeftToSystemd`."""
        await self._state.recall()
        self._released.clear()
        self._state.move(LinkState.SEEKING)
        try:
            while True:
                await self._rest(await self._one_connection())
        finally:
            self._driver = self._transport = None
            await asyncio.shield(self._finder.close())
            self._released.set()
            if self._state.state is not LinkState.OFF:
                self._state.move(LinkState.CLOSING)
                self._state.move(LinkState.OFF)

    async def _one_connection(self) -> BridgeError:
        """Keep one connection, from seeking to its end; return why it ended."""
        try:
            await race(self._live(), _until(self._pause_asked))
        except BridgeError as cause:
            return cause
        return LinkLost(LostReason.CLOSED, self._pause_reason)

    async def _live(self) -> None:
        """Find and connect the glasses, then serve them; the link ends with a `BridgeError`."""
        with self._within(self._step_s, "link: seeking") as step:
            sighting = await self._finder.seek()
            self._state.move(LinkState.CONNECTING)
            step.again(self._step_s, "link: connecting")
            found = await self._finder.connect(sighting)
            self._state.move(LinkState.PREPARING)
            step.again(self._step_s, "link: greeting")
            async with _closing(found.transport):
                codec = found.entry.codec(found.transport.max_packet)
                clock, beat_s = self._clock.boot, self._heartbeat_s
                driver = Driver(found.transport, codec, clock=clock, heartbeat_s=beat_s)
                self._show_connection(driver, found)
                try:
                    await race(driver.run(), self._use(driver, found, step))
                finally:
                    step.again(self._step_s, "link: closing")

    def _show_connection(self, driver: Driver[Any], found: FoundGlasses) -> None:
        if self._tap is not None:
            driver.tap = self._tap
            self._tap(self._clock.boot(), Passing.CONNECTED, (found.entry, found.transport))

    async def _use(self, driver: Driver[Any], found: FoundGlasses, step: Deadline) -> None:
        hello = Hello(name="glassd", version=self._version)
        info = await driver.request(hello, timeout_s=found.entry.hello_s)
        if not isinstance(info, GlassesInfo):
            detail = "the glasses did not answer our greeting with who they are"
            raise LinkLost(LostReason.PROTOCOL, detail)
        entry = catalog.by_firmware_model(info.model) or found.entry
        await self._restore_settings(driver, found.transport.address)
        if {**entry.capabilities, **info.capabilities}.get("clock") is True:
            await self._set_clock(driver)
        self._driver, self._transport = driver, found.transport
        self._state.identify(entry, info.firmware, found.transport)
        await self._state.learn(entry, info.capabilities)
        self._state.move(LinkState.READY)
        step.done()
        self._ready_since = self._clock.boot()
        s = self._state.status
        log.info("glasses ready: %s over %s, MTU %d", s.model, s.transport, s.mtu)
        self._bus.publish(GlassesReady(s.model, s.firmware, s.address, s.mtu, s.transport))
        async for event in driver.events():
            if isinstance(event, MicrophoneChunk):
                self._take_sound(event)
                continue
            if isinstance(event, PhotoTaken | PhotoFailed):
                self._take_photo(event)
                continue
            if isinstance(event, VoiceNoteFetched):
                self._take_voice_note(event)
                continue
            if isinstance(event, CapabilitiesChanged):
                await self._state.learn(entry, event.capabilities)
            if isinstance(event, HidingChanged):
                self._settings.report_hiding(event)
                self._update_hiding()
            self._state.take_event(event)
            private = isinstance(event, Transcript) and self._suppressed()
            self._bus.publish(PrivateWords(event) if private else GlassesSaid(event))
        # the driver is closing the connection: it says when that is done, and why it ended
        await asyncio.Event().wait()

    async def _restore_settings(self, driver: Driver[Any], address: str) -> None:
        """Restore the settings before the glasses are reported as ready."""
        for command in self._settings.of(address):
            try:
                await driver.request(command, timeout_s=HELLO_S)
            except (CommandRefused, CommandTimeout) as error:
                self._settings.refuse(command)
                log.info("the glasses do not take %s again: %s", type(command).__name__, error)
            else:
                self._settings.accept(command)
        self._update_hiding()

    async def _set_clock(self, driver: Driver[Any]) -> None:
        command = self._wearer_clock()
        if command is None:
            return
        try:
            await driver.request(command, timeout_s=HELLO_S)
        except (CommandRefused, CommandTimeout) as error:
            log.info("the glasses' clock was not set: %s", error)

    # -------------------------------------------------------------- after a connection

    async def _rest(self, cause: BridgeError) -> None:
        """Judge the failure, carry out the recovery step, wait until the next attempt is due."""
        was_ready = self._state.state is LinkState.READY
        up_s = self._clock.boot() - self._ready_since if was_ready else 0.0
        self._driver = self._transport = None
        if was_ready:
            self._state.lose()
        advice = self._judge(cause, up_s)
        self._state.move(LinkState.RESTING, str(cause))
        if was_ready:
            self._bus.publish(GlassesLost(str(cause)))
            self._bus.publish(CapabilitiesLearned(self._state.status.model, stale=True))
        if advice.step is RecoveryStep.LEAVE:
            raise LeftToSystemd(
                f"the link to the glasses does not come up: {cause} ({advice.why}, nothing helped)"
            )
        await self._carry_out(advice)
        await self._wait_for_next_attempt(advice)
        self._state.move(LinkState.SEEKING, str(cause))

    def _judge(self, cause: BridgeError, up_s: float) -> Advice:
        """Remember the failure and choose what to do about it; being paused is none."""
        if self._pause_reason:
            return Advice(RecoveryStep.RECONNECT, self._pause_reason)
        kind = recovery.kind_of(cause)
        self._history = recovery.remember(self._history, recovery.Failure(kind, up_s))
        advice = recovery.advise(self._history, watched=self._watched)
        hint = advice.hint or (cause.hint if isinstance(cause, RadioError) else "")
        step = advice.step
        asks_now = step is RecoveryStep.ASK and self._state.status.step != step.value
        attempts = self._state.count_failure(kind.value, advice.step, hint)
        # One WARNING per cycle, at its first failure; another when trying stops, because nothing
        # else in the log would say that a person is needed. Repeats are for debugging.
        level = logging.WARNING if attempts == 1 or asks_now else logging.DEBUG
        text = "no link to the glasses: %s (%s: %s)%s"
        log.log(level, text, cause, advice.why, advice.step, f"; {hint}" if hint else "")
        return advice

    async def _carry_out(self, advice: Advice) -> None:
        steps = {RecoveryStep.FRESH: self._finder.fresh, RecoveryStep.RESET: self._finder.reset}
        if advice.step not in steps or self._pause_reason:
            return
        try:
            with self._within(self._step_s + CURE_S, f"link: {advice.step}"):
                async with timeout(CURE_S):
                    # a cancelled power cycle ends powered on
                    await race(steps[advice.step](), _until(self._pause_asked))
        except TimeoutError:
            log.debug("%s took more than %g s", advice.step, CURE_S)

    async def _wait_for_next_attempt(self, advice: Advice) -> None:
        """Wait as long as the backoff says, at most until `resume`, the radio's return or an
        advertisement; and while the radio is lent (`paused`), until it is given back.
        """
        if not self._pause_reason:
            ends = [_until(self._resumed), _until(self._pause_asked)]
            if advice.step is not RecoveryStep.ASK:
                rest_s = self._backoff.nth(advice.times, at_least_s=advice.at_least_s)
                ends += [self._sleep(rest_s), self._wait_to_wake(advice, rest_s)]
            elif advice.again_s:
                ends.append(self._sleep(advice.again_s))
            await race(*ends)
        # one pause may follow another, and `_resumed` may have been set before both
        while self._pause_asked.is_set():
            self._resumed.clear()
            self._released.set()
            await self._resumed.wait()
            self._released.clear()
        self._resumed.clear()

    async def _sleep(self, seconds: float) -> None:
        await self._rest_for(seconds)

    async def _wait_to_wake(self, advice: Advice, rest_s: float) -> None:
        """Return when the rest should end early; a radio that fails meanwhile is waited for."""
        await asyncio.sleep(min(rest_s, advice.at_least_s))
        wake = advice.wake
        while True:
            try:
                await self._finder.wait_to_wake(wake)
            except RadioError as deaf:
                log.debug("resting without listening: %s", deaf)
                if wake is not Wake.RADIO and recovery.LADDER[deaf.reason].wake is Wake.RADIO:
                    wake = Wake.RADIO
                else:
                    await asyncio.sleep(RELISTEN_S)
            else:
                return


@asynccontextmanager
async def _closing(transport: Transport[Any]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        # The disconnect must reach the radio even on cancellation, or the glasses stay connected.
        await asyncio.shield(transport.close())


async def _until(event: asyncio.Event) -> None:
    await event.wait()
