"""What turns speech into words, in a child process: one engine per way of recognising."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from firmware_bridge.messages import Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edge.core.hearing.grammar import Grammar

    Samples = NDArray[np.float32]
    """16 kHz, mono, -1 to 1."""


class EngineMissing(Exception):
    """This engine cannot run on this machine; the text says why, and what would help."""


class DecodingFailed(Exception):
    """This utterance could not be decoded, the next one may be; the text says why."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The words of one utterance: `text` is the likeliest reading.

    `confidence`: 0 to 1, of what was read without any expectation; None where the engine says none.
    `readings`: the likeliest first, the one without any expectation among them; may be empty.
    """

    text: str
    confidence: float | None = None
    readings: tuple[Reading, ...] = ()


class RecognitionEngine(Protocol):
    """Used by one thread."""

    def load(self) -> None:
        """Make ready to decode. Raises `EngineMissing`."""

    def decode(self, samples: "Samples", grammar: "Grammar | None", *, final: bool) -> Decoded:
        """Return the words of an utterance; of one that goes on (`final` false) only the text, as
        fast as can be, or none. Raises `DecodingFailed`.
        """
