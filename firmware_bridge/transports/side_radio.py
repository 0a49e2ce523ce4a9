"""Finds and connects glasses with two radios; side_pair.py joins the two connections."""

import asyncio
import logging
from typing import Final

from firmware_bridge.catalog import CATALOG, Catalog
from firmware_bridge.errors import BridgeError, RadioError
from firmware_bridge.sides import Side
from firmware_bridge.transport import Transport
from firmware_bridge.transports.ble import Radio, Sighting, Wanted, left_over, scan
from firmware_bridge.transports.ble_connection import BleTransport, connect
from firmware_bridge.transports.side_pair import SidePair

log = logging.getLogger(__name__)

LISTEN_S: Final = 10.0
"""Seconds of one scan for a missing side; other users of the radio wait for its end."""


async def connect_any(
    radio: Radio,
    sighting: Sighting,
    *,
    timeout_s: float,
    catalog: Catalog = CATALOG,
    wanted: Wanted | None = None,
) -> Transport[bytes] | SidePair:
    """Connect glasses just heard, with one radio or two. Raises `RadioError`."""
    if sighting.side is None:
        return await connect(radio, sighting, timeout_s=timeout_s)
    return await connect_pair(radio, sighting, timeout_s=timeout_s, catalog=catalog, wanted=wanted)


async def connect_pair(
    radio: Radio,
    sighting: Sighting,
    *,
    timeout_s: float,
    catalog: Catalog = CATALOG,
    wanted: Wanted | None = None,
) -> SidePair:
    """Connect the left arm, then the right; a failed one joins later. Raises `RadioError`."""
    there: dict[Side, Transport[bytes]] = {}
    failed: list[RadioError] = []
    try:
        for side, arm in sorted(by_side(sighting).items()):
            try:
                there[side] = await connect(radio, arm, timeout_s=timeout_s)
            except RadioError as error:
                failed.append(error)
    except BaseException:
        await asyncio.shield(_close(there))
        raise
    if not there:
        raise failed[0]
    missing = [side for side in Side if side not in there]
    if missing:
        why = failed[0] if failed else "it was not heard"
        log.warning("continuing without the %s side: %s", missing[0], why)
    return SidePair(sighting.pair, SideJoiner(radio, sighting, catalog, wanted, timeout_s), there)


class SideJoiner:
    """Reconnects arms of one pair by their previous address: the name is only a channel, which
    other glasses may share. For an arm never heard before, the first wanted one is taken.
    """

    def __init__(
        self,
        radio: Radio,
        sighting: Sighting,
        catalog: Catalog,
        wanted: Wanted | None,
        timeout_s: float,
    ) -> None:
        self._radio = radio
        self._pair = sighting.pair
        self._catalog = catalog
        self._wanted = wanted
        self._timeout_s = timeout_s
        self._addresses = {side: arm.address for side, arm in by_side(sighting).items()}

    async def __call__(self, side: Side) -> BleTransport:
        """Connect an arm, heard or still connected to this machine. Raises `RadioError`."""

        def fits(heard: Sighting) -> bool:
            return self._is(heard, side)

        held = await left_over(self._radio, self._catalog, wanted=fits)
        arm = (
            held[0]
            if held
            else await scan(self._radio, self._catalog, timeout_s=LISTEN_S, wanted=fits, arms=False)
        )
        joined = await connect(self._radio, arm, timeout_s=self._timeout_s)
        self._addresses[side] = arm.address
        return joined

    def _is(self, heard: Sighting, side: Side) -> bool:
        if (heard.pair, heard.side) != (self._pair, side) or heard.address != self._addresses.get(
            side, heard.address
        ):
            return False
        return self._wanted is None or self._wanted(heard)


def by_side(sighting: Sighting) -> dict[Side, Sighting]:
    return {arm.side: arm for arm in sighting.arms if arm.side is not None}


async def _close(there: dict[Side, Transport[bytes]]) -> None:
    for each in there.values():
        try:
            await each.close()
        except BridgeError as error:
            log.debug("closing a side: %s", error)
