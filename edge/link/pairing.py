"""Pairing: opens a window, finds the glasses, pairs them, asks the person for a code, saves the
bond.

A client of the control API asks and answers. One window at a time; it closes by itself, and with
its client.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    nullcontext,
)
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from edge.core.pairing_state import (
    Bond,
    HeardGlasses,
    PairingRefused,
    PairingState,
    PairingStep,
    PairingTimes,
    check,
)
from edge.link.bonds import Bonds, to_json
from edge.ports import GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesPaired, GlassesUnpaired
from firmware_bridge.bonding import How, PairingError
from firmware_bridge.catalog import CATALOG, Catalog
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.transports import ble, pairing
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from edge.link.scan import ScannedGlasses

log = logging.getLogger(__name__)

MAX_STEPS: Final = 64
"""Steps a slow client may leave unread; a whole window has about ten."""
END_S: Final = 10.0
"""How long a closed window may take to hang up: bluetoothd needs 2 s for a disconnect."""
LOST: Final = RadioReason.BOND_LOST.value
_BUSY: Final = (
    "BUSY",
    "somebody else is pairing glasses now",
    "wait until that is over, or close it: glassd pair --cancel",
)
_MAKE_ROOM: Final = "make room in the state directory"


class PairingService:
    """Implements `PairingPort`. `radio` returns the daemon's radio; while `paused` is entered the
    link leaves it alone.
    """

    def __init__(
        self,
        radio: Callable[[], Awaitable[ble.Radio]],
        *,
        bonds: Bonds,
        paused: Callable[[str], AbstractAsyncContextManager[None]],
        glasses: Callable[[], GlassesStatus],
        bus: Bus,
        clock: Clock,
        catalog: Catalog = CATALOG,
        limits: PairingTimes | None = None,
    ) -> None:
        self._radio = radio
        self._bonds = bonds
        self._paused = paused
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._catalog = catalog
        self._limits = limits or PairingTimes()
        self._window: _Window | None = None
        self._working: asyncio.Future[None] | None = None
        self._scanning = False

    # -------------------------------------------------------------- looking

    def bonds(self) -> tuple[Bond, ...]:
        return self._bonds.all()

    def bond(self) -> str:
        """Say in one word how the glasses of the link are bonded, for `status`."""
        status = self._glasses()
        if status.issue == LOST:
            return "lost"
        known = self._bonds.all()
        bond = self._bonds.find(status.address) if status.address else None
        if not status.address and len(known) == 1:
            bond = known[0]
        return bond.how if bond else ""

    def alarms(self) -> dict[str, str]:
        return {"bonds": self._bonds.put_aside} if self._bonds.put_aside else {}

    def describe(self) -> dict[str, Json]:
        state, closes_in_s = PairingState.IDLE, None
        if window := self._window:
            state = window.state
            closes_in_s = round(max(0.0, window.until - self._clock.boot()), 1)
        bonds: list[Json] = [to_json(bond, paired_at="pairedAt") for bond in self._bonds.all()]
        return {"state": state.value, "closes_in_s": closes_in_s, "bonds": bonds}

    async def scan(
        self, seconds: float, *, settle_s: float | None = None
    ) -> AsyncGenerator[HeardGlasses, None]:
        """Yield the glasses heard. A link that is up stays up: its glasses, which do not advertise,
        are yielded first.
        """
        from edge.link.scan import ScanResults, heard_of  # noqa: PLC0415 - at the first scan

        if self._window is not None or self._scanning:
            raise PairingRefused(*_BUSY)
        self._scanning = True
        try:
            connected = self._connected()
            for heard in connected:
                yield heard
            gathering = ScanResults(self._catalog, settle_s=settle_s)
            if connected and settle_s is not None:
                seconds = min(seconds, settle_s)
            async with (
                nullcontext() if connected else self._held("scanning"),
                aclosing(gathering.listen(await self._radio(), seconds)) as sounds,
            ):
                async for glasses in sounds:
                    yield heard_of(glasses, ours=self._ours(glasses))
        finally:
            self._scanning = False

    def _connected(self) -> tuple[HeardGlasses, ...]:
        status = self._glasses()
        if not status.ready:
            return ()
        bond = self._bonds.find(status.address)
        entry = next((m for m in self._catalog.models if m.key == status.model), None)
        heard = HeardGlasses(
            id=bond.id if bond else status.address,
            model=status.model,
            title=entry.title if entry else status.model,
            name=bond.name if bond else "",
            address=status.address,
            rssi=None,
            ours=bond is not None,
            connected=True,
        )
        return (heard,)

    def _ours(self, glasses: "ScannedGlasses") -> bool:
        return any(self._bonds.find(s.address) is not None for s in glasses.sides.values())

    # -------------------------------------------------------------- the window

    async def window(
        self, wanted: str | None, *, seconds: float | None = None
    ) -> AsyncGenerator[PairingStep, None]:
        """Open the window and tell each step; see `PairingPort`."""
        if self._window is not None or self._scanning:
            raise PairingRefused(*_BUSY)
        length_s = min(seconds or self._limits.window_s, self._limits.window_s)
        window = self._window = _Window(self._clock.boot() + length_s)
        working = self._working = asyncio.ensure_future(self._work(window, wanted, length_s))
        try:
            while (step := await window.steps.get()) is not None:
                yield step
        finally:
            working.cancel()
            try:
                await asyncio.wait([working], timeout=END_S)
            finally:  # the client may hang up at this very moment
                self._window = self._working = None
            if working.done() and not working.cancelled():
                working.result()  # a bug is raised, never swallowed

    async def _work(self, window: "_Window", wanted: str | None, length_s: float) -> None:
        """Pair, step by step. A failure is the last step; only cancellation is raised."""
        try:
            async with timeout(length_s), self._held("pairing"):
                bond, heard = await self._paired(window, wanted)
                await self._bonds.add(bond)
            log.info("paired with %s %s (%s)", bond.model, bond.id, bond.how)
            self._bus.publish(GlassesPaired(bond.model, bond.id, bond.how))
            window.move(PairingStep(PairingState.PAIRED, heard, how=bond.how))
        except TimeoutError:
            text = f"the pairing window closed after {length_s:g} s"
            window.fail("TIMEOUT", text, "open it again: glassd pair")
        except PairingError as error:
            window.fail(error.reason.value.upper(), str(error), error.hint)
        except RadioError as error:
            code = "NOT_FOUND" if error.reason is RadioReason.NOT_FOUND else "RADIO"
            window.fail(code, str(error), error.hint)
        except PairingRefused as refused:
            window.fail(refused.code, str(refused), refused.fix)
        except OSError as error:
            text = f"the bond cannot be saved: {error.strerror}"
            window.fail("NOT_SAVED", text, f"{_MAKE_ROOM}, then: glassd pair")
        finally:
            window.over()

    async def _paired(self, window: "_Window", wanted: str | None) -> tuple[Bond, HeardGlasses]:
        from edge.link.scan import heard_of  # noqa: PLC0415 - as above

        radio = await self._radio()
        window.move(PairingStep(PairingState.SCANNING))
        glasses = await self._find(radio, wanted)
        heard = heard_of(glasses, ours=self._ours(glasses))
        window.move(PairingStep(PairingState.CHOSEN, heard))
        addresses: dict[str, str] = {}
        hows: list[How] = []
        for side, sighting in glasses.sides.items():
            fresh = await self._unbonded(radio, sighting)
            text = f"the {side} side" if side else ""
            window.move(PairingStep(PairingState.CONNECTING, heard, text=text))
            left_s = max(1.0, window.until - self._clock.boot())
            proof = await pairing.pair(radio, fresh, _Person(window, heard), timeout_s=left_s)
            addresses[side] = proof.address
            hows.append(proof.how)
        how = min(hows, key=list(How).index)  # a pair is only as well proved as its weaker side
        fixed, now = MappingProxyType(addresses), self._clock.wall()
        return Bond(glasses.id, heard.model, heard.name, fixed, how.value, now), heard

    async def _find(self, radio: ble.Radio, wanted: str | None) -> "ScannedGlasses":
        """Wait for the wanted glasses, or the only ones. Raises `RadioError`, `PairingRefused`."""
        from edge.link.scan import ScanResults  # noqa: PLC0415 - as above

        if wanted is not None:
            bond, results = self._bonds.find(wanted), ScanResults(self._catalog)
            return await results.one(radio, bond.id if bond else wanted, self._limits.scan_s)
        results = ScanResults(self._catalog, settle_s=self._limits.settle_s)
        found = await results.all(radio, self._limits.scan_s)
        if len(found) > 1:
            names = ", ".join(sorted(g.id for g in found))
            raise PairingRefused(
                "AMBIGUOUS", f"several glasses are here: {names}", "name one: glassd pair ADDRESS"
            )
        return found[0]

    async def _unbonded(self, radio: ble.Radio, sighting: ble.Sighting) -> ble.Sighting:
        """Remove our old bond with these glasses, and scan again: BlueZ forgets the device too."""
        bond = self._bonds.find(sighting.address)
        forgotten = await pairing.unpair(radio, sighting.address)
        if bond is not None:
            await self._bonds.remove(bond.id)
        if not forgotten:
            return sighting
        address, scan_s = sighting.address, self._limits.scan_s
        return await ble.scan(radio, self._catalog, timeout_s=scan_s, address=address, arms=False)

    def answer(self, *, passkey: int | None = None, same: bool | None = None) -> None:
        """Answer what is asked now. Raises `PairingRefused`."""
        answer = passkey if passkey is not None else same
        if self._window is None or not self._window.answer(answer):
            text = "nothing of this kind is asked now"
            raise PairingRefused("NOTHING_ASKED", text, "see: glassd status")

    async def close(self) -> bool:
        """Close the window; its client hears that it failed."""
        window = self._window
        if window is None:
            return False
        window.fail("CLOSED", "the pairing window was closed", "open it again: glassd pair")
        window.over()
        if self._working is not None:  # not left to the client, which may stop reading
            self._working.cancel()
        return True

    @asynccontextmanager
    async def _held(self, why: str) -> AsyncGenerator[None, None]:
        """Have the radio to ourselves. Raises `RadioError` when the link does not give it up."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._paused(why))
            except TimeoutError:
                raise RadioError(
                    RadioReason.BUSY,
                    "the link does not give the radio up",
                    "try again; if that stays so: systemctl restart glassd",
                ) from None
            yield

    # -------------------------------------------------------------- forgetting

    async def unpair(self, wanted: str | None) -> Bond | None:
        """Forget our side; the glasses' own memory of us is theirs to clear."""
        if self._window is not None or self._scanning:
            raise PairingRefused(*_BUSY)
        bond = self._bond_named(wanted)
        addresses = tuple(bond.addresses.values()) if bond else (wanted or "",)
        async with self._held("unpairing"):
            radio = await self._radio()
            forgotten = [await pairing.unpair(radio, address) for address in addresses]
            if bond is not None:
                await self._removed(bond)
        if bond is None and not any(forgotten):
            text = f"there is no bond with {wanted}"
            raise PairingRefused("NOT_FOUND", text, "see which there are: glassd scan")
        model, name = (bond.model, bond.id) if bond else ("", str(wanted))
        self._bus.publish(GlassesUnpaired(model, name))
        return bond

    async def _removed(self, bond: Bond) -> None:
        try:
            await self._bonds.remove(bond.id)
        except OSError as error:
            text = f"the key is deleted, but {bond.id} is still in the file: {error.strerror}"
            fix = f"{_MAKE_ROOM}, then: glassd unpair"
            raise PairingRefused("NOT_SAVED", text, fix) from None

    def _bond_named(self, wanted: str | None) -> Bond | None:
        if wanted is not None:
            return self._bonds.find(wanted)
        known = self._bonds.all()
        if len(known) == 1:
            return known[0]
        if not known:
            raise PairingRefused("NOT_FOUND", "no glasses are paired", "pair some: glassd up")
        names = ", ".join(b.id for b in known)
        raise PairingRefused(
            "AMBIGUOUS", f"several glasses are paired: {names}", "name one: glassd unpair ADDRESS"
        )


class _Window:
    """One open window: its state, unread steps, and open question. Used once."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.state = PairingState.IDLE
        self.steps: asyncio.Queue[PairingStep | None] = asyncio.Queue()
        self._question: tuple[type, asyncio.Future[Any]] | None = None

    def move(self, step: PairingStep) -> None:
        self.state = check(self.state, step.state)
        if self.steps.qsize() < MAX_STEPS:
            self.steps.put_nowait(step)

    def fail(self, code: str, text: str, fix: str) -> None:
        if self.state not in {PairingState.PAIRED, PairingState.FAILED}:
            self.move(PairingStep(PairingState.FAILED, code=code, text=text, fix=fix))

    def over(self) -> None:
        self.steps.put_nowait(None)

    async def ask(self, kind: type, step: PairingStep) -> Any:
        """Publish a question and wait for its answer; the caller sets the deadline."""
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._question = (kind, waiting)
        self.move(step)
        try:
            return await waiting
        finally:
            self._question = None
            if self.state is PairingState.ASKING:
                self.move(PairingStep(PairingState.CONNECTING, step.glasses))

    def answer(self, answer: Any) -> bool:
        """Answer the open question; False if there is none of this kind."""
        kind, waiting = self._question or (None, None)
        if waiting is None or type(answer) is not kind or waiting.done():
            return False
        waiting.set_result(answer)
        return True


class _Person:
    """Implements `Asker`: the person at the client of the window."""

    def __init__(self, window: _Window, glasses: HeardGlasses) -> None:
        self._window = window
        self._glasses = glasses

    async def passkey(self) -> int | None:
        return int(await self._window.ask(int, self._step("passkey")))

    async def same(self, number: int) -> bool:
        return bool(await self._window.ask(bool, self._step("compare", f"{number:06d}")))

    async def show(self, number: int) -> None:
        self._window.move(self._step("show", f"{number:06d}"))
        self._window.move(PairingStep(PairingState.CONNECTING, self._glasses))

    def _step(self, ask: str, number: str = "") -> PairingStep:
        return PairingStep(PairingState.ASKING, self._glasses, ask=ask, number=number)
