"""The parts of each model's simulator: a family's own, or those of the reference profile."""

import importlib
from collections.abc import Sequence
from typing import Final

from firmware_bridge.catalog import find, supported
from firmware_bridge.models import Model
from firmware_bridge.sides import Side
from firmware_bridge.sim import peripheral
from firmware_bridge.sim.gatt import GattIdentity, by_service
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.options import SIMULATED
from firmware_bridge.sim.quirks import QuirkError

HOBBY_NAME: Final = "HOBBY"
"""Advertised name of the generic entry, which has none of its own."""


def parts_of(word: str, quirks: Sequence[str] = ()) -> ModelParts:
    """Return the parts of a model's simulator. Raises `QuirkError`."""
    model = find(word.removeprefix(SIMULATED))
    if model.simulator:
        family = importlib.import_module(f"{model.simulator}.glasses")
        parts: ModelParts = family.parts(model, quirks)
        return parts
    if quirks:
        others = ", ".join(SIMULATED + each.key for each in supported() if each.simulator)
        raise QuirkError(f"{word} has no quirks to choose; {others} have")
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
