"""Supported models: how each is recognised, its codec, its capabilities, and its quirks with
reasons.

The only place with model names; other code asks what glasses can do, not which model they are.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct, field

from firmware_bridge.capabilities import Scalar
from firmware_bridge.codec import Codec, Role
from firmware_bridge.codecs.even_g1 import wire as g1
from firmware_bridge.codecs.even_g1.conflicts import CONFLICTS
from firmware_bridge.codecs.reference.uuids import INFO_UUID, RX_UUID, SERVICE_UUID, TX_UUID
from firmware_bridge.metrics import metrics_for
from firmware_bridge.sides import Side


class CodecFactory(Protocol):
    """Creates the codec of one connection: as central, or as one `side` of two-sided glasses."""

    def __call__(
        self, max_packet: int, *, role: Role = Role.CENTRAL, side: Side | None = None
    ) -> Codec[Any]: ...


class Gatt(Struct, frozen=True):
    """GATT UUIDs of a family: lower case, 128 bit. `info` is None for families without it."""

    service: str
    rx: str
    tx: str
    info: str | None = None


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

    With `names` it is recognised by service and name; without, it takes all glasses of its service
    that no named model claims. `capabilities` is assumed until the firmware reports its own.

    `arms` is set for glasses with two radios: advertised name → (pair id, side), None for other
    names. Their codec exchanges `Sided` packets.
    """

    key: str
    title: str
    gatt: Gatt
    codec: CodecFactory
    names: tuple[str, ...] = ()
    firmware_models: tuple[str, ...] = ()
    capabilities: Mapping[str, Scalar] = field(default_factory=dict)
    font: str | None = None
    arms: Callable[[str], tuple[str, Side] | None] | None = None
    pairing: Pairing = Pairing.JUST_WORKS
    quirks: tuple[Quirk, ...] = ()

    def side_of(self, name: str) -> tuple[str, Side] | None:
        """Return the pair id and side of an advertised name; None for glasses with one radio."""
        return None if self.arms is None else self.arms(name)

    def claims(self, heard: Advertisement) -> bool:
        if self.arms is not None:
            return heard.name is not None and self.arms(heard.name) is not None
        return self.gatt.service in heard.service_uuids and heard.name in self.names

    def adopts(self, heard: Advertisement) -> bool:
        return not self.names and self.arms is None and self.gatt.service in heard.service_uuids


class AmbiguousModel(LookupError):
    """More than one entry claims the same glasses: an error in the catalogue."""


class UnknownModel(ValueError):
    """No entry has this key."""


def _reference_codec(
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[bytes]:
    from firmware_bridge.codecs.reference.codec import ReferenceCodec  # noqa: PLC0415 - for such glasses only

    return ReferenceCodec(role, max_packet=max_packet)


def _even_g1_codec(
    max_packet: int, *, role: Role = Role.CENTRAL, side: Side | None = None
) -> Codec[Any]:
    if role is Role.PERIPHERAL:
        from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm  # noqa: PLC0415 - for the simulator only

        return EvenG1Arm(side or Side.LEFT, max_packet=max_packet)
    from firmware_bridge.codecs.even_g1.central import EvenG1Codec  # noqa: PLC0415 - for a G1 only

    return EvenG1Codec(width=metrics_for("g1-21", _EVEN_G1_GLYPHS).width, max_packet=max_packet)


_REFERENCE: Final = Gatt(service=SERVICE_UUID, rx=RX_UUID, tx=TX_UUID, info=INFO_UUID)

_LENS_22: Final[Mapping[str, Scalar]] = MappingProxyType(
    {
        "display": True,
        "display.width": 576,
        "display.height": 136,
        "display.bpp": 1,
        "display.lines": 5,
        "display.font": "lens-22",
        "display.line_height": 27,
        "display.page_bytes": 1024,
        "display.bitmap": True,
        "display.tiles": True,
    }
)
"""5 lines × 27 px = 135 of 136; 5 lines of 576 px hold 400 bytes of English, 800 of Cyrillic."""
_SPEAKER: Final[Mapping[str, Scalar]] = MappingProxyType(
    {"speaker": True, "speaker.codecs": "opus,pcm16", "speaker.rate": 16000}
)
_MICROPHONE: Final[Mapping[str, Scalar]] = MappingProxyType(
    {"microphone": True, "microphone.codecs": "pcm16"}
)
_NOTHING_ELSE: Final[Mapping[str, Scalar]] = MappingProxyType(
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
_SIMULATED: Final = Quirk(
    "simulated", "invented hardware on a virtual radio: signal strength and battery are made up"
)


def _mock(kind: str, title: str, advertised: str, *abilities: Mapping[str, Scalar]) -> Model:
    known: dict[str, Scalar] = dict(_NOTHING_ELSE)
    for ability in abilities:
        known.update(ability)
    return Model(
        key=f"mock:{kind}",
        title=title,
        gatt=_REFERENCE,
        codec=_reference_codec,
        names=(advertised,),
        firmware_models=(f"mock:{kind}",),
        capabilities=MappingProxyType(known),
        font=str(known["display.font"]) if known["display"] else None,
        quirks=(_SIMULATED,),
        pairing=Pairing.CODE if known["display"] else Pairing.JUST_WORKS,
    )


_EVEN_G1_GLYPHS: Final = "3000-30ff:18 4e00-9fff:18 ff01-ff5e:18 ac00-d7a3:24"
"""Han, kana and their punctuation; Hangul."""
_EVEN_G1: Final = Model(
    key="even_g1",
    title="Even Realities G1",
    gatt=Gatt(service=g1.SERVICE_UUID, rx=g1.RX_UUID, tx=g1.TX_UUID),
    codec=_even_g1_codec,
    firmware_models=("G1",),
    capabilities=MappingProxyType(
        {
            **_NOTHING_ELSE,
            "display": True,
            "display.width": g1.WIDTH,
            "display.height": g1.HEIGHT,
            "display.bpp": 1,
            "display.text_width": g1.TEXT_WIDTH,
            "display.lines": g1.LINES,
            "display.font": "g1-21",
            "display.glyphs": _EVEN_G1_GLYPHS,
            "display.line_height": 27,
            "display.page_bytes": g1.PAGE_BYTES,
            "display.bitmap": True,
            "display.tiles": False,
            "display.count": 2,
            "display.is_color": False,
            "display.color": "green",
            "display.brightness": True,
            "display.silent": True,
            "display.notifications": True,
            "display.dashboard": True,
            "microphone": True,
            "microphone.codecs": "lc3",
            "microphone.count": 1,
            "microphone.vad": False,
            "prompt": False,
            "gestures": "tap,double_tap,head_up,head_down,button_long",
        }
    ),
    font="g1-21",
    arms=g1.arm_of,
    pairing=Pairing.JUST_WORKS,
    quirks=(
        Quirk(
            "name-alone",
            "both arms are recognised by name; no source says that they advertise their service",
        ),
        Quirk(
            "lens-font",
            "its font is not published: text is measured with our font at 21 px, "
            "the size and the 488 px its demo uses",
        ),
        Quirk(
            "cjk-by-mentraos",
            "that it draws Chinese, Japanese (18 px a character) and Korean (24 px) is from "
            "MentraOS's table of widths, not yet seen on real glasses",
        ),
        Quirk(
            "no-lit-count",
            "C9 says that a page was taken, not how much of it was "
            "lit: pages are acknowledged, not shown",
        ),
        Quirk(
            "text-or-picture",
            "the lens holds text or one whole picture, never parts of both; columns become spaces",
        ),
        Quirk(
            "sound-30-s",
            "a recording ends by itself after 30 s; "
            "a microphone that falls silent is switched on again",
        ),
        Quirk(
            "hangs-up",
            "an arm disconnects 32 s after its last packet; "
            "each gets a heartbeat after 8 s without any",
        ),
        *(Quirk(conflict.name, conflict.reason) for conflict in CONFLICTS),
    ),
)
"""390 bytes a page are the smallest payload that every known host stays under."""

# Names have 8 bytes: a legacy advertisement has 31, of which flags take 3, a 128-bit service 18 and
# the name's head 2.
MODELS: Final = (
    _mock(
        "display",
        "Mock display glasses",
        "MOCK-DSP",
        _LENS_22,
        _MICROPHONE,
        {"gestures": "tap,double_tap"},
    ),
    _mock(
        "audio",
        "Mock audio glasses",
        "MOCK-AUD",
        _SPEAKER,
        _MICROPHONE,
        {"camera": True, "button": True, "gestures": "button,button_long"},
    ),
    _mock(
        "full",
        "Mock glasses with everything",
        "MOCK-ALL",
        _LENS_22,
        _SPEAKER,
        _MICROPHONE,
        {
            "camera": True,
            "button": True,
            "imu": True,
            "light": True,
            "wifi": True,
            "gestures": "tap,double_tap,button,button_long,head_up,head_down,nod,shake",
        },
    ),
    _EVEN_G1,
    Model(
        key="reference",
        title="Glasses speaking the reference profile",
        gatt=_REFERENCE,
        codec=_reference_codec,
    ),
)
"""All models. Registration is this tuple; nothing registers itself."""


class Catalog(Struct, frozen=True):
    """A set of models to recognise glasses among."""

    models: tuple[Model, ...] = MODELS

    def find(self, key: str) -> Model:
        """Return the model with this key. Raises `UnknownModel`, which lists the known keys."""
        for model in self.models:
            if model.key == key:
                return model
        known = ", ".join(model.key for model in self.models)
        raise UnknownModel(f"there is no model {key!r}; known: {known}")

    def recognise(self, heard: Advertisement) -> Model | None:
        """Return the model an advertisement belongs to, or None. Raises `AmbiguousModel`."""
        claims = [m for m in self.models if m.claims(heard)] or [
            m for m in self.models if m.adopts(heard)
        ]
        return _only(claims, f"{heard.name!r}")

    def title(self, key: str) -> str:
        """Return a model's product name; "" if unknown, or if known only by our profile."""
        return next((m.title for m in self.models if m.key == key and (m.names or m.arms)), "")

    def by_firmware_model(self, model_id: str) -> Model | None:
        """Return the model whose firmware reports this id, or None. Raises `AmbiguousModel`."""
        return _only(
            [m for m in self.models if model_id in m.firmware_models], f"firmware {model_id!r}"
        )


def _only(found: list[Model], what: str) -> Model | None:
    if len(found) > 1:
        raise AmbiguousModel(f"{what} is claimed by {', '.join(model.key for model in found)}")
    return found[0] if found else None


CATALOG: Final = Catalog()
find = CATALOG.find
recognise = CATALOG.recognise
by_firmware_model = CATALOG.by_firmware_model
title = CATALOG.title
