"""The catalogue: exactly one entry for one pair of glasses, every entry complete."""

import pytest
from msgspec.structs import replace

from firmware_bridge.capabilities import Capabilities, Hardware, Origin
from firmware_bridge.catalog import CATALOG, Catalog, by_firmware_model, find, recognise, supported
from firmware_bridge.codec import Role
from firmware_bridge.codecs.reference.uuids import SERVICE_UUID
from firmware_bridge.metrics import metrics_for
from firmware_bridge.models import Advertisement, AmbiguousModel, UnknownModel

OURS = frozenset({SERVICE_UUID})


def heard(name: str | None, services: frozenset[str] = OURS) -> Advertisement:
    return Advertisement(name, services)


@pytest.mark.parametrize("model", [m for m in supported() if m.names], ids=lambda m: m.key)
def test_each_model_is_recognised_by_its_own_name(model) -> None:
    for name in model.names:
        assert recognise(heard(name)) is model


def test_our_service_under_an_unknown_name_is_hobby_glasses() -> None:
    assert recognise(heard("Sunday project")) is find("reference")
    assert recognise(heard(None)) is find("reference")


def test_a_known_name_without_our_service_is_nothing_to_us() -> None:
    assert recognise(heard("MOCK-DSP", frozenset({"0000180f-0000-1000-8000-00805f9b34fb"}))) is None


def test_two_entries_claiming_the_same_glasses_is_an_error_that_names_both() -> None:
    twin = replace(find("mock:display"), key="twin")
    with pytest.raises(AmbiguousModel, match=r"mock:display.*twin"):
        Catalog((*supported(), twin)).recognise(heard("MOCK-DSP"))
    with pytest.raises(AmbiguousModel):
        Catalog((*supported(), twin)).by_firmware_model("mock:display")


def test_two_generic_entries_of_one_service_is_an_error() -> None:
    twin = replace(find("reference"), key="twin")
    with pytest.raises(AmbiguousModel):
        Catalog((*supported(), twin)).recognise(heard("x"))


def test_firmware_ids_lead_to_models_and_unknown_ones_to_none() -> None:
    assert by_firmware_model("mock:full") is find("mock:full")
    assert by_firmware_model("my-frames-3") is None


def test_an_unknown_key_names_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match="mock:display"):
        find("mock:nope")


def test_keys_are_unique_and_every_codec_speaks_both_roles() -> None:
    assert len({m.key for m in CATALOG.models}) == len(CATALOG.models)
    for model in supported():
        central, glasses = model.codec(100), model.codec(100, role=Role.PERIPHERAL)
        assert central is not glasses


@pytest.mark.parametrize(
    ("key", "has", "lacks"),
    [
        (
            "mock:display",
            {Hardware.DISPLAY, Hardware.MICROPHONE},
            {Hardware.SPEAKER, Hardware.CAMERA, Hardware.BUTTON},
        ),
        (
            "mock:audio",
            {Hardware.SPEAKER, Hardware.MICROPHONE, Hardware.CAMERA, Hardware.BUTTON},
            {Hardware.DISPLAY},
        ),
        ("mock:full", set(Hardware) - {Hardware.EXIST}, set()),
    ],
)
def test_what_the_mocks_can_do(key: str, has: set[Hardware], lacks: set[Hardware]) -> None:
    record = Capabilities.of(key, find(key).capabilities, origin=Origin.CATALOGUE, now=0.0)
    assert all(record.has(h) for h in has)
    assert not any(record.has(h) for h in lacks)


def test_the_display_mock_is_576_by_136_one_bit_five_lines() -> None:
    known = find("mock:display").capabilities
    assert [known[f"display.{k}"] for k in ("width", "height", "bpp", "lines")] == [576, 136, 1, 5]
    assert known["display.line_height"] == metrics_for(str(known["display.font"])).line_height


def test_hobby_glasses_can_do_only_what_their_firmware_says() -> None:
    assert not find("reference").capabilities


def test_advertised_names_fit_a_legacy_advertisement() -> None:
    assert all(len(name.encode()) <= 8 for m in supported() for name in m.names)


def test_every_quirk_has_a_reason() -> None:
    assert all(q.name and len(q.reason) > 20 for m in supported() for q in m.quirks)
