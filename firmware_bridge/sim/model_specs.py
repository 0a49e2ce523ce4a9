"""The families that can be simulated, and the parts of each. New families are registered here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from firmware_bridge.catalog import Model
from firmware_bridge.sides import Side
from firmware_bridge.sim import peripheral
from firmware_bridge.sim.even_g1 import glasses as even_g1
from firmware_bridge.sim.even_g1.quirks import QuirkError
from firmware_bridge.sim.gatt import GattIdentity, by_service
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.options import FAMILIES, SIMULATED

HOBBY_NAME: Final = "HOBBY"
"""Advertised name of the generic entry, which has none of its own."""


def parts_of(word: str, quirks: Sequence[str] = ()) -> ModelParts:
    """Return the parts of a model's simulator. Raises `QuirkError`."""
    make = _FAMILIES.get(word.removeprefix(SIMULATED))
    if make is not None:
        return make(quirks)
    if quirks:
        others = ", ".join(SIMULATED + key for key in _FAMILIES)
        raise QuirkError(f"{word} has no quirks to choose; {others} has")
    return REFERENCE


def _reference_identity(model: Model, _side: Side | None) -> GattIdentity:
    return by_service((*model.names, HOBBY_NAME)[0], address_of(model.key), model.gatt.service)


async def _serve_reference(
    glasses: MockGlasses, _side: Side | None, link: peripheral.PeripheralLink
) -> None:
    await peripheral.serve(glasses, link)


REFERENCE: Final = ModelParts(
    (None,), _serve_reference, peripheral.more_follow, _reference_identity, 247
)
"""MTU 247 is what most phones and dongles settle on: one full data-length-extended packet."""
_FAMILIES: Final[Mapping[str, Callable[[Sequence[str]], ModelParts]]] = dict(
    zip(FAMILIES, (even_g1.parts,), strict=True)
)
"""Simulated families by their key in the catalogue."""
