"""Finding and connecting glasses of two radios: both arms of one pair, left first, or one of them again.

Knows no packets; the two connections it makes become one in side_pair.py. Always bleak, by way of ble.py.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from firmware_bridge.catalog import CATALOG, Catalog
from firmware_bridge.errors import BridgeError, RadioError
from firmware_bridge.sides import Side
from firmware_bridge.transport import Transport
from firmware_bridge.transports.ble import Radio, Sighting, left_over, scan
from firmware_bridge.transports.ble_connection import BleTransport, connect
from firmware_bridge.transports.side_pair import SidePair

log = logging.getLogger(__name__)

LISTEN_S: Final = 10.0
"""One scan for a side that is away; other users of the radio wait for its end."""


async def connect_any(
    radio: Radio, sighting: Sighting, *, timeout_s: float, catalog: Catalog = CATALOG
) -> Transport[bytes] | SidePair:  # fmt: skip
    """Connect glasses heard just now, of one radio or of two. Raises `RadioError`."""
    if sighting.side is None:
        return await connect(radio, sighting, timeout_s=timeout_s)
    return await connect_pair(radio, sighting, timeout_s=timeout_s, catalog=catalog)


async def connect_pair(radio: Radio, sighting: Sighting, *, timeout_s: float, catalog: Catalog = CATALOG) -> SidePair:
    """Connect the left arm, then the right; one that was not heard or cannot be had joins later. Raises `RadioError`."""
    there: dict[Side, Transport[bytes]] = {}
    failed: list[RadioError] = []
    try:
        for arm in sorted(sighting.arms, key=lambda arm: arm.side or ""):
            assert arm.side is not None
            try:
                there[arm.side] = await connect(radio, arm, timeout_s=timeout_s)
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
        log.warning("going on without the %s side: %s", missing[0], why)
    return SidePair(sighting.pair, partial(join, radio, sighting.pair, catalog=catalog, timeout_s=timeout_s), there)


async def join(radio: Radio, pair: str, side: Side, *, timeout_s: float, catalog: Catalog = CATALOG) -> BleTransport:
    """Listen for one arm of a pair and connect it; one that this machine still holds does not advertise.

    Raises `RadioError`.
    """

    def wanted(heard: Sighting) -> bool:
        return (heard.pair, heard.side) == (pair, side)

    held = [arm for glasses in await left_over(radio, catalog) for arm in glasses.arms if wanted(arm)]
    arm = held[0] if held else await scan(radio, catalog, timeout_s=LISTEN_S, wanted=wanted, arms=False)
    return await connect(radio, arm, timeout_s=timeout_s)


async def _close(there: dict[Side, Transport[bytes]]) -> None:
    for each in there.values():
        try:
            await each.close()
        except BridgeError as error:
            log.debug("closing a side: %s", error)
