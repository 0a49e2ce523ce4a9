"""A model of the user's own in sherpa-onnx: which one a folder holds, and words from a real one."""

import inspect
from pathlib import Path

import pytest

from edge.hearing.engines import EngineMissing
from edge.hearing.engines.sherpa import KINDS, Sherpa, examine, options
from tests.unit.hearing.models import moonshine_for_sherpa

FOLDERS = {
    "sherpa-onnx-zipformer-en-2023-06-26": (
        "from_transducer",
        (
            "encoder-epoch-99-avg-1.onnx encoder-epoch-99-avg-1.int8.onnx "
            "decoder-epoch-99-avg-1.onnx "
            "joiner-epoch-99-avg-1.int8.onnx bpe.model tokens.txt"
        ),
    ),
    "sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8": (
        "from_transducer",
        "encoder.int8.onnx decoder.int8.onnx joiner.int8.onnx tokens.txt",
    ),
    "sherpa-onnx-whisper-tiny": (
        "from_whisper",
        "tiny-encoder.onnx tiny-encoder.int8.onnx tiny-decoder.int8.onnx tiny-tokens.txt",
    ),
    "sherpa-onnx-moonshine-tiny-en-int8": (
        "from_moonshine",
        (
            "preprocess.onnx encode.int8.onnx uncached_decode.int8.onnx cached_decode.int8.onnx "
            "tokens.txt"
        ),
    ),
    "sherpa-onnx-moonshine-tiny-en-quantized-2026-02-27": (
        "from_moonshine_v2",
        "encoder_model.ort decoder_model_merged.ort tokens.txt",
    ),
    "sherpa-onnx-paraformer-zh-2024-03-09": ("from_paraformer", "model.int8.onnx tokens.txt"),
    "sherpa-onnx-sense-voice-zh-en-ja-ko-yue-2024-07-17": (
        "from_sense_voice",
        "model.onnx model.int8.onnx tokens.txt",
    ),
}
"""Folders as sherpa-onnx's authors publish them → the factory that loads them, and their files."""


def fill(folder: Path, names: str) -> Path:
    folder.mkdir()
    for name in names.split():
        (folder / name).touch()
    return folder


@pytest.mark.requirement("I14-sherpa")
@pytest.mark.parametrize("name", FOLDERS)
def test_the_kind_of_a_model_is_read_from_its_files(tmp_path, name) -> None:
    factory, files = FOLDERS[name]
    model = examine(fill(tmp_path / name, files))
    assert model.kind.factory == factory
    assert all(Path(path).is_file() for path in model.files.values())


@pytest.mark.parametrize("others", ["model.onnx", "model.fp16.onnx model.onnx", ""])
def test_of_several_files_the_smallest_numbers_are_taken(tmp_path, others) -> None:
    files = f"tokens.txt model.int8.onnx {others}"
    model = examine(fill(tmp_path / "sherpa-onnx-paraformer-zh", files))
    assert Path(model.files["paraformer"]).name == "model.int8.onnx"


@pytest.mark.requirement("I14-sherpa")
@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_that_is_missing_is_named(tmp_path, name) -> None:
    folder = fill(tmp_path / name, FOLDERS[name][1])
    next(folder.glob("*tokens.txt")).unlink()
    with pytest.raises(EngineMissing, match=r"looks like a .* model without .*tokens.txt"):
        examine(folder)


@pytest.mark.parametrize("files", ["", "tokens.txt", "README.md model.safetensors"])
def test_a_folder_without_a_known_model_names_the_kinds(tmp_path, files) -> None:
    with pytest.raises(EngineMissing, match=r"no model .* transducer, moonshine, .* sense voice"):
        examine(fill(tmp_path / "models", files))


def test_one_file_may_be_of_several_kinds(tmp_path) -> None:
    with pytest.raises(EngineMissing, match="the folder's name must have the kind in it"):
        examine(fill(tmp_path / "mine", "model.onnx tokens.txt"))


def test_a_folder_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(EngineMissing, match=r"none cannot be read: No such file"):
        Sherpa(f"{tmp_path}/none", "en").load()


# ------------------------------------------------------------------ the library


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.factory)
def test_the_library_has_each_factory_with_these_parameters(kind) -> None:
    sherpa_onnx = pytest.importorskip("sherpa_onnx")
    factory = getattr(sherpa_onnx.OfflineRecognizer, kind.factory)
    inspect.signature(factory).bind(
        **dict.fromkeys(kind.files, ""), num_threads=1, **options(kind, "de")
    )


@pytest.fixture(scope="module")
def moonshine(tmp_path_factory) -> Path:
    return moonshine_for_sherpa(tmp_path_factory.mktemp("sherpa"))


def speech(sentence: str):
    np = pytest.importorskip("numpy")
    nanotts = pytest.importorskip("py_nanotts")
    pcm = nanotts.NanoTTS().speak(sentence, voice="en-US", volume=0.5)
    return np.frombuffer(pcm, "<i2").astype(np.float32) / 32768


@pytest.mark.requirement("I14-sherpa")
def test_a_real_model_understands_speech(moonshine) -> None:
    engine = Sherpa(str(moonshine), "en-GB")
    engine.load()
    decoded = engine.decode(speech("what is the weather in Oslo"), None, final=True)
    assert decoded.text == "What is the weather in Oslo?"
    assert engine.decode(speech("stop the timer"), None, final=False).text, "and again"
