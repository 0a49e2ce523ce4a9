"""Finds our glasses over Bluetooth for the link manager, and carries out recovery steps."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edge.core.recovery import Wake
from edge.link.manager import FoundGlasses
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.transports import ble
from firmware_bridge.transports.side_radio import connect_any

log = logging.getLogger(__name__)

Ours = Callable[[], frozenset[str] | None]
"""The addresses (upper case) that we may connect to; None: any of the catalogue."""
LISTEN_S: Final = 30.0
"""Seconds of one scan during a rest; a new scanner each time, so that none is stuck for long."""


class BleFinder:
    """Implements `Finder` on bleak; `radio`: configured moniker, `air`: channel of `inproc`."""

    def __init__(
        self,
        radio: str,
        *,
        address: str | None,
        model: str | None,
        scan_s: float,
        connect_s: float,
        air: object | None = None,
        ours: Ours = lambda: None,
        keys: Path | None = None,
    ) -> None:
        self._moniker = radio
        self._address = address
        self._model = model
        self._scan_s = scan_s
        self._connect_s = connect_s
        self._air = air
        self._ours = ours
        self._keys = keys
        self._radio: ble.Radio | None = None
        self._heard: ble.Sighting | None = None
        self._last: tuple[str, ...] = ()
        self._adopt = True

    async def radio(self) -> ble.Radio:
        """Return this daemon's one radio; other users pause the link first. Raises `RadioError`."""
        if self._radio is None:
            self._radio = await ble.open_radio(self._moniker, air=self._air, keys=self._keys)
        return self._radio

    def has_radio_open(self) -> bool:
        """Whether our own host stack has its adapter open now; never with BlueZ."""
        return self._radio is not None and self._radio.is_open()

    # -------------------------------------------------------------- finding

    async def seek(self) -> ble.Sighting:
        """Return our glasses: heard while resting, left over, or scanned. Raises `RadioError`."""
        if self._ours() == frozenset():
            raise RadioError(
                RadioReason.NOT_PAIRED,
                "no glasses are paired with this edge",
                "find and pair them: glassd up",
            )
        radio = await self.radio()
        heard, self._heard = self._heard, None
        if heard is not None and not all(map(self._is_ours, heard.arms)):
            heard = None  # unpaired since they were heard
        if heard is None and self._adopt:
            self._adopt = False
            heard = next(iter(await self._left_over(radio)), None)
        return heard or await self._search(radio)

    async def connect(self, sighting: ble.Sighting) -> FoundGlasses:
        """Connect glasses heard just now. Raises `RadioError`."""
        self._last = tuple(arm.address for arm in sighting.arms)
        transport = await connect_any(
            await self.radio(), sighting, timeout_s=self._connect_s, wanted=self._is_ours
        )
        return FoundGlasses(transport, sighting.entry)

    async def wait_to_wake(self, wake: Wake) -> None:
        """Wait for a reason to try before the rest is over. Raises `RadioError` if unknowable."""
        radio = await self.radio()
        if wake is Wake.RADIO and radio.back is not None:
            await radio.back()
        elif wake is Wake.ADVERT:
            self._heard = await self._listen(radio)
        else:
            await asyncio.Event().wait()

    async def _listen(self, radio: ble.Radio) -> ble.Sighting:
        while True:
            try:
                return await self._scan(radio, LISTEN_S)
            except RadioError as error:
                if error.reason is not RadioReason.NOT_FOUND:
                    raise

    async def _search(self, radio: ble.Radio) -> ble.Sighting:
        try:
            return await self._scan(radio, self._scan_s)
        except RadioError as error:
            held = await self._left_over(radio) if error.reason is RadioReason.NOT_FOUND else []
            if not held:
                raise
        text = f"{held[0].address} is connected to this machine already, though not by us"
        hint = "another program here holds the glasses: end it, or: bluetoothctl disconnect"
        raise RadioError(RadioReason.CONNECTED_ELSEWHERE, text, hint)

    async def _scan(self, radio: ble.Radio, timeout_s: float) -> ble.Sighting:
        return await ble.scan(
            radio,
            timeout_s=timeout_s,
            address=self._address,
            model=self._model,
            wanted=self._is_ours,
        )

    def _is_ours(self, sighting: ble.Sighting) -> bool:
        ours = self._ours()
        return ours is None or sighting.address.upper() in ours

    async def _left_over(self, radio: ble.Radio) -> list[ble.Sighting]:
        """Our glasses already connected to this machine; those do not advertise."""
        found = await ble.left_over(radio, wanted=self._is_ours)
        if wanted := self._address:
            found = [s for s in found if wanted.upper() in {a.address.upper() for a in s.arms}]
        return [s for s in found if self._model is None or s.entry.key == self._model]

    # -------------------------------------------------------------- recovery steps

    async def fresh(self) -> None:
        """End left-over links to our glasses, and drop the radio's cache of them. Never raises."""
        self._heard = None
        radio = self._radio
        if radio is None or radio.fresh is None:
            return
        radio.silence.reset()
        ours = [arm.address for s in await self._left_over(radio) for arm in s.arms]
        for address in dict.fromkeys([*ours, *self._last]):
            await radio.fresh(address)

    async def reset(self) -> None:
        """Power-cycle the adapter, or open its HCI stream again. Never raises."""
        await self.fresh()
        radio = self._radio
        if radio is not None and radio.reset is not None:
            radio.silence.reset()
            await radio.reset()

    async def close(self) -> None:
        """Give the radio back; idempotent."""
        if self._radio is not None:
            await self._radio.close()
