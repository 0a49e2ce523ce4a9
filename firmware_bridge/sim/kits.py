"""What mocks of a family are made of: how many radios, what each advertises, who serves a central, how messages are cut.

The one place that names families; registration is spelled out here. Knows nothing of radios that are open.
"""

import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from firmware_bridge.catalog import Model, find
from firmware_bridge.sides import Side
from firmware_bridge.sim import peripheral
from firmware_bridge.sim.gatt import Identity, by_service
from firmware_bridge.sim.glasses import MockGlasses

HOBBY_NAME: Final = "HOBBY"
"""What a mock of the generic entry advertises, which has no name of its own."""
SIMULATED: Final = "sim:"
"""`sim:KEY` is a simulated real family, KEY its key in the catalogue."""

Serve = Callable[[MockGlasses, Side | None, peripheral.Link], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Kit:
    """One family's parts. `sides` is (None,) for glasses that are one radio."""

    sides: tuple[Side | None, ...]
    serve: Serve
    more_follow: Callable[[bytes], bool]
    identity: Callable[[Model, Side | None], Identity]
    mtu: int


def address_of(key: str) -> str:
    """Give a static random address, always the same for the same model."""
    return "F0:5A:" + ":".join(f"{byte:02X}" for byte in zlib.crc32(key.encode()).to_bytes(4, "big"))


def model_of(word: str) -> Model:
    """Give the catalogue entry of `mock:full` or `sim:even_g1`. Raises `UnknownModel`."""
    return find(word.removeprefix(SIMULATED))


def kit_of(word: str, quirks: Sequence[str] = ()) -> Kit:
    """Give the parts of a model's mock. Raises `QuirkError`."""
    if quirks:
        raise QuirkError(f"{word} has no quirks to choose")
    return REFERENCE


class QuirkError(ValueError):
    """A quirk that does not exist, or not so; the message says what does."""


def _reference_identity(model: Model, _side: Side | None) -> Identity:
    return by_service((*model.names, HOBBY_NAME)[0], address_of(model.key), model.gatt.service)


async def _serve_reference(glasses: MockGlasses, _side: Side | None, link: peripheral.Link) -> None:
    await peripheral.serve(glasses, link)


REFERENCE: Final = Kit((None,), _serve_reference, peripheral.more_follow, _reference_identity, 247)
"""MTU 247 is what most phones and dongles settle on: one full data-length-extended packet."""
