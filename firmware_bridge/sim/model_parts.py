"""The parts a family's simulator is made of; the families are listed in model_specs.py."""

import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from firmware_bridge.models import Gatt, Model
from firmware_bridge.sides import Side
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.peripheral import PeripheralLink

Serve = Callable[[MockGlasses, Side | None, PeripheralLink], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts of one family.

    `sides`: (None,) for one radio. `latency_s`: of every answer. `read`: value of a channel.
    `gatt`: what is offered, if it is not exactly what the driver knows.
    """

    sides: tuple[Side | None, ...]
    serve: Serve
    more_follow: Callable[[bytes], bool]
    identity: Callable[[Model, Side | None], GattIdentity]
    mtu: int
    latency_s: float = 0.0
    read: Callable[[MockGlasses, Side | None, str], bytes] | None = None
    gatt: Gatt | None = None


def address_of(key: str) -> str:
    """Return a static random address, always the same for the same model."""
    return "F0:5A:" + zlib.crc32(key.encode()).to_bytes(4, "big").hex(":").upper()
