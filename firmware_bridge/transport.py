"""The transport interface: moves the packets of one connection."""

from collections.abc import AsyncIterator
from typing import Protocol

from firmware_bridge.codec import P


class Transport(Protocol[P]):
    """One connection, used once. Its loss ends `packets()`; later writes raise `LinkLost`."""

    @property
    def name(self) -> str:
        """Name shown by `glassd status`: `bluez`, `tcp`, `inproc`, `usb`, `loopback`."""

    @property
    def address(self) -> str:
        """The peer's address."""

    @property
    def max_packet(self) -> int:
        """Bytes one write can carry now (ATT MTU − 3)."""

    async def write(self, packet: P) -> None:
        """Send one packet (GATT write without response). Raises `LinkLost`."""

    def packets(self) -> AsyncIterator[P]:
        """Packets from the glasses until the connection is lost."""

    async def close(self) -> None:
        """Disconnect; idempotent, never raises."""
