"""A Wyoming speech-to-text server as recogniser, of any language (whisper, vosk and others).

Used by the child process of hearing only, so it may wait. The sound goes to the configured address
as it is: on another machine, over the network and not encrypted.
"""

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from edge.core.hearing.grammar import Grammar
from edge.hearing.engines import Decoded, DecodingFailed, EngineMissing
from edge.runtime.wyoming import Address, Conversation, WyomingFault, objects, plain

if TYPE_CHECKING:
    from edge.hearing.engines import Samples

PORT: Final = 10300
RATE: Final = 16000
LIMIT_S: Final = 10.0
"""Seconds for the words of one utterance, all in all: no wearer waits longer for them."""
ASK_S: Final = 3.0
"""Seconds for what the server has to offer."""
FAST_S: Final = 0.4
"""A server that needed no longer for its last words is also asked while somebody speaks."""
MAX_TEXT: Final = 2000
_CHUNK: Final = RATE // 4 * 2
"""Bytes: a quarter of a second."""
_NO_WORDS: Final = re.compile(r"[\[(*♪][^\])]*[\])*♪]")
"""What recognisers write where nobody speaks: `[BLANK_AUDIO]`, `(music)`."""


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What a server recognises: its models and their languages, as it writes them."""

    models: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()

    def language(self, wanted: str) -> str | None:
        """Return the server's own name of a language (`de` or `de_DE` for `de-AT`); "" where it
        names none at all, None where it does not know this one.
        """
        if not self.languages:
            return ""
        same = {each.replace("_", "-").casefold(): each for each in reversed(self.languages)}
        plain = wanted.casefold()
        short = plain.partition("-")[0]
        like = {name.partition("-")[0]: each for name, each in reversed(same.items())}
        return same.get(plain) or same.get(short) or like.get(short)


def examine(address: Address, limit_s: float) -> ServerOffer:
    """Ask a server what it recognises. Raises `WyomingFault` with what is wrong with it."""
    with Conversation(address, limit_s) as server:
        server.send("describe")
        programs = [p for p in objects(server.receive("info"), "asr") if p.get("installed", True)]
        if not programs:
            raise WyomingFault("it recognises no speech")
        models = [
            model
            for program in programs
            for model in objects(program, "models")
            if model.get("installed", True)
        ]
        if not models:
            raise WyomingFault("it has no model")
    return ServerOffer(_texts(m.get("name") for m in models), _texts(_languages(models)))


class Wyoming:
    """One conversation for each utterance: the server may restart between two of them."""

    def __init__(self, server: str, language: str) -> None:
        self._name = server
        self._address = Address.parse(server, PORT)
        self._wanted = language
        self._language = ""
        self._is_fast = False

    def load(self) -> None:
        """Ask the server for the language. Raises `EngineMissing`."""
        self._language = self.offer(ASK_S).language(self._wanted) or ""

    def offer(self, limit_s: float) -> ServerOffer:
        """Return what the server recognises. Raises `EngineMissing` if it is not the language."""
        try:
            offer = examine(self._address, limit_s)
        except WyomingFault as e:
            raise EngineMissing(f"the server {self._name} does not recognise speech: {e}") from None
        if offer.language(self._wanted) is None:
            raise EngineMissing(
                f"the server {self._name} does not recognise {self._wanted}, only "
                f"{', '.join(offer.languages)[:200]}"
            )
        return offer

    def decode(self, samples: "Samples", grammar: Grammar | None, *, final: bool) -> Decoded:
        """Return the words; none of an unfinished utterance where the server is slow.

        Raises `DecodingFailed`.
        """
        del grammar  # the protocol cannot say which sentences are likely
        if not (final or self._is_fast):
            return Decoded("")
        started = time.monotonic()
        try:
            text = self._ask(pcm16(samples), LIMIT_S if final else 2 * FAST_S)
        except WyomingFault as e:
            self._is_fast = False
            if not final:
                return Decoded("")
            raise DecodingFailed(f"the server {self._name} gave no words: {e}") from None
        self._is_fast = time.monotonic() - started <= FAST_S
        return Decoded(text)

    def _ask(self, pcm: bytes, limit_s: float) -> str:
        form = {"rate": RATE, "width": 2, "channels": 1}
        with Conversation(self._address, limit_s) as server:
            server.send("transcribe", {"language": self._language} if self._language else None)
            server.send("audio-start", form)
            for at in range(0, len(pcm), _CHUNK):
                server.send("audio-chunk", form, pcm[at : at + _CHUNK])
            server.send("audio-stop")
            text = server.receive("transcript").get("text")
        if not isinstance(text, str):
            raise WyomingFault("its transcript has no text")
        return plain(_NO_WORDS.sub(" ", text[:MAX_TEXT]))


def pcm16(samples: "Samples") -> bytes:
    """Return the samples as 16 bits each, little endian."""
    scaled: Any = (samples * 32767.0).clip(-32768, 32767)
    data: bytes = scaled.astype("<i2").tobytes()
    return data


def _languages(models: list[dict[str, Any]]) -> list[Any]:
    listed = [model.get("languages") for model in models]
    return [language for each in listed if isinstance(each, list) for language in each]


def _texts(values: Any) -> tuple[str, ...]:
    """Return each text once, in their order; what else a server sends is left out."""
    return tuple(dict.fromkeys(v for v in values if isinstance(v, str) and v.isprintable()))
