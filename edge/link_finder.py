"""Finds our glasses over Bluetooth for the link manager. Knows one radio for as long as the daemon runs.

Refuses to decide when to look again, and what to do with glasses once they are connected.
"""

from edge.link_manager import Found
from firmware_bridge.catalog import CATALOG
from firmware_bridge.transports import ble
from firmware_bridge.transports.ble_connection import connect


class BleFinder:
    """Implements `Finder` on bleak; `radio` is a moniker of the configuration, `air` the virtual one of `inproc`."""

    def __init__(
        self, radio: str, *, address: str | None, model: str | None, scan_s: float, connect_s: float,
        air: object | None = None,
    ) -> None:  # fmt: skip
        self._moniker = radio
        self._address = address
        self._model = model
        self._scan_s = scan_s
        self._connect_s = connect_s
        self._air = air
        self._radio: ble.Radio | None = None

    async def seek(self) -> ble.Sighting:
        """Scan until our glasses are heard. Raises `RadioError`."""
        return await ble.scan(
            await self._open(), CATALOG, timeout_s=self._scan_s, address=self._address, model=self._model
        )

    async def connect(self, sighting: ble.Sighting) -> Found:
        """Connect glasses heard just now. Raises `RadioError`."""
        transport = await connect(await self._open(), sighting, timeout_s=self._connect_s)
        return Found(transport, sighting.entry)

    async def close(self) -> None:
        """Give the radio back; idempotent."""
        if self._radio is not None:
            await self._radio.close()

    async def _open(self) -> ble.Radio:
        if self._radio is None:
            self._radio = await ble.open_radio(self._moniker, air=self._air)
        return self._radio
