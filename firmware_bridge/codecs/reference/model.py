"""Models that speak the reference profile (PROFILE.md): mocks, and glasses of other makers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from firmware_bridge.capabilities import Scalar
from firmware_bridge.codec import Codec, Role
from firmware_bridge.codecs.reference.uuids import INFO_UUID, RX_UUID, SERVICE_UUID, TX_UUID
from firmware_bridge.models import NOTHING, Gatt, Model, Pairing, Quirk
from firmware_bridge.sides import Side


def _reference_codec(
    max_packet: int,
    *,
    role: Role = Role.CENTRAL,
    side: Side | None = None,  # noqa: ARG001 - the factory's
) -> Codec[bytes]:
    from firmware_bridge.codecs.reference.codec import ReferenceCodec  # noqa: PLC0415 - for such glasses only

    return ReferenceCodec(role, max_packet=max_packet)


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
_SIMULATED: Final = Quirk(
    "simulated", "invented hardware on a virtual radio: signal strength and battery are made up"
)


def _mock(kind: str, title: str, advertised: str, *abilities: Mapping[str, Scalar]) -> Model:
    known: dict[str, Scalar] = dict(NOTHING)
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
    Model(
        key="reference",
        title="Glasses speaking the reference profile",
        gatt=_REFERENCE,
        codec=_reference_codec,
    ),
)
"""Mocks of invented hardware, and all glasses that speak the profile."""
