"""What each feature of each model was tried with besides our own simulator. Only the generated
table of supported glasses (support.py) needs this; the daemon does not import it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Feature(StrEnum):
    """What glasses may have; the value is for people."""

    TEXT = "text"
    PICTURES = "pictures"
    MICROPHONE = "microphone"
    SPEAKER = "speaker"
    PHOTOS = "photos"
    GESTURES = "gestures"
    BATTERY = "battery"


class Proof(Struct, frozen=True):
    """What a feature was tried with: a recording of real glasses, or software of somebody else that
    speaks to the simulator, or is spoken to by the driver. `test` is `FILE::TEST` in the
    repository.
    """

    feature: Feature
    tried_with: str
    test: str


def _tried_with(name: str, file: str, tests: Mapping[Feature, str]) -> tuple[Proof, ...]:
    """Return a proof of each feature: the test in a file of tests/foreign."""
    return tuple(
        Proof(feature, name, f"tests/foreign/{file}.py::{test}") for feature, test in tests.items()
    )


_EVEN_GLASSES: Final = _tried_with(
    "even-glasses 0.1.11",
    "test_even_glasses",
    {
        Feature.TEXT: "test_its_text_is_on_both_lenses",
        Feature.PICTURES: "test_a_picture_is_on_both_lenses",
        Feature.MICROPHONE: "test_the_microphone_is_heard",
        Feature.GESTURES: "test_a_double_tap_is_its_exit_command",
    },
)
_FRAME_MSG: Final = _tried_with(
    "frame-msg 5.2.1",
    "test_frame_msg",
    {
        Feature.TEXT: "test_a_text_message_is_on_the_lens",
        Feature.PICTURES: "test_a_sprite_is_on_the_lens",
        Feature.PHOTOS: "test_a_photo_arrives",
        Feature.GESTURES: "test_taps_are_counted",
        Feature.BATTERY: "test_lua_is_evaluated_at_the_prompt",
    },
)
_FRAME_SDK: Final = _tried_with(
    "frame-sdk 1.2.4",
    "test_frame_sdk",
    {
        Feature.TEXT: "test_its_text_is_on_the_lens",
        Feature.PICTURES: "test_a_rectangle_is_on_the_lens",
        Feature.MICROPHONE: "test_the_microphone_is_heard_until_it_is_silent",
        Feature.PHOTOS: "test_a_photo_is_taken_and_processed",
        Feature.GESTURES: "test_taps_are_reported",
        Feature.BATTERY: "test_the_battery_is_read",
    },
)
_BRILLIANT_SDK: Final = _tried_with(
    "brilliant-sdk 1.0.0",
    "test_brilliant_sdk",
    {
        Feature.TEXT: "test_a_text_is_on_the_lens",
        Feature.PICTURES: "test_a_sprite_is_on_the_lens",
        Feature.PHOTOS: "test_a_photo_arrives",
        Feature.GESTURES: "test_taps_are_counted",
        Feature.BATTERY: "test_the_battery_is_read_at_the_prompt",
    },
)
_FRAMEUTILS: Final = _tried_with(
    "frameutils 0.1.15",
    "test_frameutils",
    {
        Feature.TEXT: "test_a_file_is_uploaded_and_lua_is_evaluated",
        Feature.BATTERY: "test_a_file_is_uploaded_and_lua_is_evaluated",
    },
)
_HALO_EMULATOR: Final = _tried_with(
    "halo-emulator 2.3.0",
    "test_halo_emulator",
    {
        Feature.TEXT: "test_a_text_is_on_its_lens",
        Feature.PICTURES: "test_a_picture_is_on_its_lens",
        Feature.MICROPHONE: "test_its_microphone_is_heard",
        Feature.SPEAKER: "test_its_speaker_is_opened_fed_and_closed",
        Feature.GESTURES: "test_taps_and_button_are_gestures",
        Feature.BATTERY: "test_its_battery_is_known",
    },
)
_MONOCLE_DRIVER: Final = _tried_with(
    "brilliant-monocle-driver 0.1.3",
    "test_monocle_driver",
    {
        Feature.TEXT: "test_a_text_is_on_the_lens",
        Feature.GESTURES: "test_touches_are_reported",
        Feature.BATTERY: "test_the_battery_is_read",
    },
)
_OMI_SDK: Final = "omi-sdk 0.2.1"

PROOFS: Final[Mapping[str, tuple[Proof, ...]]] = {
    "even_g1": _EVEN_GLASSES,
    "frame": _FRAME_MSG + _FRAME_SDK + _BRILLIANT_SDK + _FRAMEUTILS,
    "halo": _BRILLIANT_SDK + _HALO_EMULATOR,
    "monocle": _MONOCLE_DRIVER,
    **dict.fromkeys(
        ("omi", "omi_glass"),
        _tried_with(
            _OMI_SDK,
            "test_omi_sdk",
            {Feature.MICROPHONE: "test_it_hears_and_decodes_the_microphone"},
        ),
    ),
    "openglass": _tried_with(
        _OMI_SDK,
        "test_omi_sdk",
        {Feature.MICROPHONE: "test_it_receives_the_packets_of_an_openglass"},
    ),
}
"""Model's key → its proofs, in the order of the table."""
