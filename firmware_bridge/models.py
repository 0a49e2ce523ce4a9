"""What a glasses family says about itself: how its models are recognised, reached, driven and
simulated.

Each family has a module `firmware_bridge/codecs/<family>/model.py` with its entries; `catalog.py`
lists the families.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct, field

from firmware_bridge.capabilities import Scalar
from firmware_bridge.codec import Codec, Role
from firmware_bridge.sides import Side


class CodecFactory(Protocol):
    """Creates the codec of one connection: as central, or as one `side` of two-sided glasses."""

    def __call__(
        self, max_packet: int, *, role: Role = Role.CENTRAL, side: Side | None = None
    ) -> Codec[Any]: ...


class Channel(Struct, frozen=True):
    """A characteristic beside rx and tx: how packets name it, its UUIDs (as in `Gatt`), its use.

    A central subscribes to it (`notify`), writes it (`write`), reads it once when it connects
    (`first`), or whenever the codec asks (`read`). `optional`: it may be missing, or refuse.
    `on_request`: it is subscribed only while the codec wants it, and `packets.SUBSCRIBE` and
    `UNSUBSCRIBE` are sent to it instead of values.
    """

    name: str
    service: str
    uuid: str
    notify: bool = False
    write: bool = False
    read: bool = False
    first: bool = False
    optional: bool = False
    on_request: bool = False


class Gatt(Struct, frozen=True):
    """GATT UUIDs of a family: lower case, 128 bit.

    `rx` takes packets of the central and `tx` notifies; "" for families where only `channels` do,
    of which the first is not optional.
    `info` is None for families without it. The codec of glasses with `channels` exchanges
    `ChannelPacket`s.
    """

    service: str
    rx: str
    tx: str
    info: str | None = None
    channels: tuple[Channel, ...] = ()


class Pairing(StrEnum):
    """What pairing with these glasses must prove."""

    NONE = "none"
    """no pairing; any central may write"""
    JUST_WORKS = "just_works"
    """no code can be shown or entered: an eavesdropper present during pairing goes unnoticed"""
    CODE = "code"
    """the glasses can show or enter a code, so pairing without one is refused"""


class Quirk(Struct, frozen=True):
    """One peculiarity that code must handle, with the evidence for it."""

    name: str
    reason: str


class Advertisement(Struct, frozen=True):
    """A received advertisement: name, and service UUIDs in lower case."""

    name: str | None
    service_uuids: frozenset[str]


class Model(Struct, frozen=True):
    """One model.

    It is recognised by `arms`, by `recognises`, or by service and one of `names`; without any of
    these it takes all glasses of its service that no other model claims. `capabilities` is assumed
    until the firmware reports its own.

    `arms` is set for glasses with two radios: advertised name → (pair id, side), None for other
    names. Their codec exchanges `Sided` packets.

    `hello_s`: seconds for the answer to `Hello`.

    `simulator` is the package that simulates it: `parts(model, quirks)` in its `glasses.py`,
    `QUIRKS` in its `quirks.py`; "" for glasses that speak the reference profile.
    """

    key: str
    title: str
    gatt: Gatt
    codec: CodecFactory
    names: tuple[str, ...] = ()
    recognises: Callable[[Advertisement], bool] | None = None
    firmware_models: tuple[str, ...] = ()
    capabilities: Mapping[str, Scalar] = field(default_factory=dict)
    font: str | None = None
    arms: Callable[[str], tuple[str, Side] | None] | None = None
    pairing: Pairing = Pairing.JUST_WORKS
    hello_s: float = 5.0
    quirks: tuple[Quirk, ...] = ()
    simulator: str = ""

    @property
    def is_product(self) -> bool:
        """Whether it is certain glasses, not all that speak a profile."""
        return bool(self.names or self.arms or self.recognises)

    def side_of(self, name: str) -> tuple[str, Side] | None:
        """Return the pair id and side of an advertised name; None for glasses with one radio."""
        return None if self.arms is None else self.arms(name)

    def claims(self, heard: Advertisement) -> bool:
        if self.arms is not None:
            return heard.name is not None and self.arms(heard.name) is not None
        if self.recognises is not None:
            return self.recognises(heard)
        return self.gatt.service in heard.service_uuids and heard.name in self.names

    def adopts(self, heard: Advertisement) -> bool:
        return not self.is_product and self.gatt.service in heard.service_uuids


class AmbiguousModel(LookupError):
    """More than one entry claims the same glasses: an error in the catalogue."""


class UnknownModel(ValueError):
    """No entry has this key."""


NOTHING: Final[Mapping[str, Scalar]] = MappingProxyType(
    {
        "display": False,
        "speaker": False,
        "microphone": False,
        "camera": False,
        "button": False,
        "imu": False,
        "light": False,
        "wifi": False,
    }
)
"""Capabilities of glasses that can do nothing: a model overrides what its glasses can do."""
