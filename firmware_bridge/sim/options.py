"""Checks of the simulator's options that need no Bluetooth stack: a typing mistake is reported
before anything heavy is loaded.
"""

from collections.abc import Sequence
from typing import Final

from firmware_bridge.catalog import find, supported
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.models import Model, UnknownModel
from firmware_bridge.sim.faults import parse_fault

MIN_MTU: Final = 23
MAX_MTU: Final = 517
SIMULATED: Final = "sim:"
"""`sim:KEY` is a simulated real family; KEY is its key in the catalogue."""
RADIOS: Final = ("inproc", "tcp", "vhci", "usb")
_MAX_PORT: Final = 65535
RADIO_HINT: Final = "give --radio inproc, tcp:HOST:PORT (port 0 picks one), vhci, or usb:N"


def check(model: str, *, radio: str, mtu: int | None, faults: Sequence[str]) -> None:
    """Raise `ValueError` (model, MTU, faults) or `RadioError` for what cannot work."""
    if mtu is not None and not MIN_MTU <= mtu <= MAX_MTU:
        raise ValueError(f"mtu {mtu}; {MIN_MTU} to {MAX_MTU} are allowed")
    model_of(model)
    for word in faults:
        parse_fault(word)
    kind, rest = split_radio(radio)
    if kind == "tcp":
        split_address(radio, rest)


def model_of(word: str) -> Model:
    """Return the model of `mock:full` or `sim:even_g1`. Raises `UnknownModel`, which lists all."""
    try:
        return find(word.removeprefix(SIMULATED))
    except UnknownModel:
        mocks = [model.key for model in supported() if model.key.startswith("mock:")]
        known = mocks + [SIMULATED + model.key for model in supported() if model.simulator]
        raise UnknownModel(f"there is no mock of {word!r}; there are {', '.join(known)}") from None


def split_radio(radio: str) -> tuple[str, str]:
    """Return the kind of a radio and the rest of its name. Raises `RadioError`."""
    kind, _, rest = radio.partition(":")
    if kind not in RADIOS:
        raise RadioError(RadioReason.OTHER, f"radio {radio!r} is not known", RADIO_HINT)
    return kind, rest


def split_address(radio: str, rest: str) -> tuple[str, int]:
    """Return host and port of a `tcp:` radio. Raises `RadioError`."""
    host, _, port = rest.rpartition(":")
    if not host or not port.isdigit() or int(port) > _MAX_PORT:
        raise RadioError(RadioReason.OTHER, f"radio {radio!r} names no address", RADIO_HINT)
    return host, int(port)
