"""Recogniser with a model of the user's own, run by sherpa-onnx (the only importer of it).

Which kind of model a folder holds is read from the names of its files, which sherpa-onnx's authors
use for the models that they publish.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edge.core.hearing.grammar import Grammar
from edge.hearing.engines import Decoded, EngineMissing
from firmware_bridge.messages import Reading

if TYPE_CHECKING:
    from edge.hearing.engines import Samples

RATE: Final = 16000
THREADS: Final = 2
HELP: Final = "install glassd[ears-sherpa]"
_SMALL: Final = ".int8."
"""In the names of files with smaller numbers: faster, and hardly worse."""
_ENGLISH: Final = "en"
_SENSE_VOICE: Final = ("zh", "en", "ko", "ja", "yue")


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of model: the factory of sherpa-onnx that loads it, and its files as parameter → name
    with wildcards. `folder`: a word in the folder's name, for kinds whose files have the same
    names.
    """

    factory: str
    files: Mapping[str, tuple[str, ...]]
    folder: str = ""

    @property
    def name(self) -> str:
        return self.factory.removeprefix("from_").replace("_", " ")


def _onnx(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}{end}" for name in names for end in (".onnx", ".ort"))


_TOKENS: Final = ("tokens.txt", "*-tokens.txt")
_ONE_FILE: Final = _onnx("model", "model.*")
KINDS: Final = (
    ModelKind(
        "from_transducer",
        {
            "encoder": _onnx("encoder*", "*-encoder*"),
            "decoder": _onnx("decoder*", "*-decoder*"),
            "joiner": _onnx("joiner*", "*-joiner*"),
            "tokens": _TOKENS,
        },
    ),
    ModelKind(
        "from_moonshine",
        {
            "preprocessor": _onnx("preprocess*"),
            "encoder": _onnx("encode*"),
            "uncached_decoder": _onnx("uncached_decode*"),
            "cached_decoder": _onnx("cached_decode*"),
            "tokens": _TOKENS,
        },
    ),
    ModelKind(
        "from_moonshine_v2",
        {
            "encoder": _onnx("encoder_model*"),
            "decoder": _onnx("decoder_model_merged*"),
            "tokens": _TOKENS,
        },
    ),
    ModelKind(
        "from_whisper",
        {
            "encoder": _onnx("*-encoder*"),
            "decoder": _onnx("*-decoder*"),
            "tokens": ("*-tokens.txt",),
        },
    ),
    ModelKind("from_paraformer", {"paraformer": _ONE_FILE, "tokens": _TOKENS}, "paraformer"),
    ModelKind("from_sense_voice", {"model": _ONE_FILE, "tokens": _TOKENS}, "sense-voice"),
)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that was found: its kind, and its files by parameter of the factory."""

    kind: ModelKind
    files: Mapping[str, str]


def examine(folder: Path) -> FoundModel:
    """Find the model in a folder. Raises `EngineMissing` with what is missing there."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
    except OSError as e:
        raise EngineMissing(f"the folder {folder} cannot be read: {e.strerror}") from None
    found = [(kind, _files(kind, names)) for kind in KINDS if kind.folder in folder.resolve().name]
    for kind, files in found:
        if all(files.values()):
            return FoundModel(kind, {each: str(folder / name) for each, name in files.items()})
    kind, files = max(found, key=lambda each: _nearness(each[1]))
    missing = [kind.files[each][0] for each, name in files.items() if not name]
    if not any(name for each, name in files.items() if each != "tokens"):
        raise EngineMissing(
            f"no model of a known kind is in {folder}: {', '.join(k.name for k in KINDS)} (of the "
            f"last two the folder's name must have the kind in it, as it was published)"
        )
    raise EngineMissing(f"{folder} looks like a {kind.name} model without {', '.join(missing)}")


def _files(kind: ModelKind, names: list[str]) -> dict[str, str]:
    """Return the file of each parameter, "" where there is none."""
    return {each: _pick(patterns, names) for each, patterns in kind.files.items()}


def _pick(patterns: tuple[str, ...], names: list[str]) -> str:
    fitting = [name for name in names if any(Path(name).match(p) for p in patterns)]
    return max(fitting, key=lambda name: _SMALL in name, default="")


def _nearness(files: Mapping[str, str]) -> float:
    return sum(map(bool, files.values())) / len(files)


class Sherpa:
    """A `RecognitionEngine`; see there. It ignores the grammar: sherpa-onnx takes wanted
    words only of some transducers, as pieces of words that its folder need not hold.
    """

    def __init__(self, folder: str, language: str, threads: int = THREADS) -> None:
        self._folder = Path(folder)
        self._language = language.partition("-")[0] or _ENGLISH
        self._threads = threads
        self._recogniser: Any = None

    def load(self) -> None:
        model = examine(self._folder)
        try:
            import sherpa_onnx  # noqa: PLC0415 - the extra may be missing
        except ImportError:
            raise EngineMissing(f"sherpa-onnx is not installed: {HELP}") from None

        make = getattr(sherpa_onnx.OfflineRecognizer, model.kind.factory)
        more = options(model.kind, self._language)
        try:
            self._recogniser = make(**model.files, num_threads=self._threads, **more)
        except (RuntimeError, ValueError, AssertionError) as e:
            why = f"the model in {self._folder} cannot be loaded: {e}"[:400]
            raise EngineMissing(why) from e

    def decode(self, samples: "Samples", grammar: Grammar | None, *, final: bool) -> Decoded:
        del grammar
        stream = self._recogniser.create_stream()
        stream.accept_waveform(RATE, samples)
        self._recogniser.decode_stream(stream)
        text = " ".join(stream.result.text.split())
        likely = [float(each) for each in stream.result.ys_log_probs]
        if not (final and text and likely):
            return Decoded(text)
        confidence = min(1.0, math.exp(sum(likely) / len(likely)))
        return Decoded(text, confidence, (Reading(text, sum(likely)),))


def options(kind: ModelKind, language: str) -> dict[str, Any]:
    """Return the parameters that a kind of model needs beside its files."""
    match kind.factory:
        case "from_transducer":
            return {"model_type": ""}  # read from the file: NeMo's are another type
        case "from_whisper":
            return {"language": language}
        case "from_sense_voice":
            return {"language": language if language in _SENSE_VOICE else "", "use_itn": True}
    return {}
