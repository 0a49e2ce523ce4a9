"""Moonshine's English model in onnxruntime: words with their probabilities, guided by what may be
said.

The package `moonshine_voice` is only the model's files: its own library gives no probabilities.
"""

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from edge.core.hearing.grammar import Grammar, letters
from edge.hearing.engines import Decoded, EngineMissing
from edge.hearing.engines.guided_search import FIXED_FOUND, GuidedSearch, Vocabulary
from firmware_bridge.messages import Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge.hearing.engines import Samples

RATE: Final = 16000
THREADS: Final = 2
READINGS: Final = 8
"""Readings returned, beside at most `FIXED_FOUND` sentences without free words."""
_CLEAR: Final = 6.0
"""A sentence that may be said is taken without a search if all others are so much less likely
(natural logarithm).
"""
_SHORTEST: Final = RATE // 4
_LONGEST: Final = 12 * RATE
"""Longer speech is no command and is read freely: a search in 30 s of sound takes 8 s and 440 MiB.
"""
_TOKENS_PER_S: Final = 6.5
_MORE_TOKENS: Final = 8
_BEGIN: Final = 1
_END: Final = 2
_FIRST: Final = 259
"""Tokens before are marks of the model, and single bytes that double others."""
_HEADS: Final = 8
_HEAD: Final = 36
_HELP: Final = "install glassd[ears]"


class Moonshine:
    """A `RecognitionEngine`; see there."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._model: _Model | None = None

    def load(self) -> None:
        if self._model is None:
            self._model = _Model(_folder(), self._threads)

    def decode(self, samples: "Samples", grammar: Grammar | None, *, final: bool) -> Decoded:
        self.load()
        assert self._model is not None
        if len(samples) < _SHORTEST:
            return Decoded("", 0.0)
        vocabulary, heard = self._model.vocabulary, self._model.listen(samples)
        most = int(len(samples) / RATE * _TOKENS_PER_S) + _MORE_TOKENS
        tokens, scores = heard.likeliest(most)
        chances = [float(row.max()) for row in scores]
        free = Reading(vocabulary.text(tokens), sum(chances))
        confidence = math.exp(free.log_probability / len(chances))
        if not final:
            return Decoded(free.text, confidence)
        readings = [free]
        if grammar is not None and len(samples) <= _LONGEST:
            search = GuidedSearch(heard, vocabulary, grammar)
            if not search.stands_alone(tokens, scores, _CLEAR):
                readings += [
                    Reading(vocabulary.text(found.tokens), found.log_probability)
                    for found in search.run(most)
                ]
        likeliest = _merge(readings)
        rest = likeliest[READINGS:]
        fixed = [r for r in rest if grammar is not None and grammar.fixed.accepts(r.text)]
        likeliest = (*likeliest[:READINGS], *fixed[:FIXED_FOUND])
        return Decoded(likeliest[0].text, confidence, likeliest)


class _Model:
    """The loaded model and its vocabulary."""

    def __init__(self, folder: Path, threads: int) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 - the extra may be missing: another engine may hear
        except ImportError:
            raise EngineMissing(f"onnxruntime is not installed: {_HELP}") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # 20 MiB that it would never give back
        options.log_severity_level = 3
        options.add_session_config_entry("session.load_model_format", "ORT")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")

        def session(name: str) -> Any:
            path = str(folder / name)
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        self.encoder = session("encoder_model.ort")
        self.decoder = session("decoder_model_merged.ort")
        self.past = [
            f"past_key_values{output.name.removeprefix('present')}"
            for output in self.decoder.get_outputs()[1:]
        ]
        self.own_past = [name for name in self.past if ".encoder." not in name]
        tokens = _read_tokens(folder / "tokenizer.bin")
        self.vocabulary = Vocabulary(tokens, begin=_BEGIN, end=_END, first=_FIRST)

    def listen(self, samples: "Samples") -> "_EncodedUtterance":
        sound = samples[None].astype(np.float32)
        feed = {"input_values": sound, "attention_mask": np.ones(sound.shape, np.int64)}
        return _EncodedUtterance(self, self.encoder.run(None, feed)[0])


class _EncodedUtterance:
    """One utterance, encoded; a `TokenDecoder`."""

    def __init__(self, model: _Model, encoded: "NDArray[np.float32]") -> None:
        self._model = model
        self._encoded = encoded

    def likeliest(self, most: int) -> tuple[list[int], list["NDArray[np.float32]"]]:
        """Take the likeliest token each time: the tokens, and the log probabilities of each place,
        that of the end among them.
        """
        tokens: list[int] = []
        rows: list[NDArray[np.float32]] = []
        past = None
        for _ in range(most):
            scores, past = self.after([tokens[-1] if tokens else _BEGIN], past)
            rows.append(scores[0])
            best = int(scores[0].argmax())
            if best == _END:
                break
            tokens.append(best)
        return tokens, rows

    def after(self, tokens: Sequence[int], past: Any) -> tuple["NDArray[np.float32]", Any]:
        first = past is None
        if first:
            nothing = np.zeros((len(tokens), _HEADS, 0, _HEAD), np.float32)
            past = dict.fromkeys(self._model.past, nothing)
        encoded = np.repeat(self._encoded, len(tokens), 0)
        feed = {
            "input_ids": np.array(tokens, np.int64)[:, None],
            "encoder_hidden_states": encoded,
            "encoder_attention_mask": np.ones((len(tokens), 1), np.int64),  # all of the sound
            "use_cache_branch": np.array([not first]),
            **past,
        }
        names = self._model.past if first else self._model.own_past
        scores, *present = self._model.decoder.run(["logits", *map(_present, names)], feed)
        scores = scores[:, -1]
        scores -= scores.max(-1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
        return scores, {**past, **dict(zip(names, present, strict=True))}

    def select(self, past: Any, rows: Sequence[int]) -> Any:
        kept = {
            name: value[: len(rows)] for name, value in past.items()
        }  # the sound's are all alike
        return {**kept, **{name: past[name][list(rows)] for name in self._model.own_past}}


def _present(past: str) -> str:
    return past.replace("past_key_values", "present")


def _merge(readings: list[Reading]) -> tuple[Reading, ...]:
    """Take readings that differ only in marks and capitals as one, written like the likeliest."""
    best: dict[str, Reading] = {}
    for reading in sorted(readings, key=lambda r: -r.log_probability):
        best.setdefault(" ".join(letters(reading.text).split()), reading)
    return tuple(best.values())


def _folder() -> Path:
    """Find the model in the installed package, which is not imported: it imports a lot."""
    found = importlib.util.find_spec("moonshine_voice")
    if found is None or found.origin is None:
        raise EngineMissing(f"moonshine-voice is not installed: {_HELP}")
    folder = Path(found.origin).parent / "assets/tiny-en"
    if not (folder / "tokenizer.bin").is_file():
        raise EngineMissing(f"moonshine-voice holds no English model: {_HELP}")
    return folder


def _read_tokens(path: Path) -> list[bytes]:
    """Read the vocabulary: each token after its length, in one byte, or two from 128 on."""
    data = path.read_bytes()
    found, at = [], 0
    while at < len(data):
        length = data[at]
        at += 1
        if length >= 128:
            length += data[at] * 128 - 128
            at += 1
        found.append(data[at : at + length])
        at += length
    return found
