"""What scenarios of the microphone share."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from edge.core.hearing import purposes
from edge.core.hearing.purposes import LIMITS, Purpose
from edge.hearing import listening, recogniser
from tests.unit.hearing.children import AS_FAST_AS_OTHERS

PATIENCE_S = 40.0


@pytest.fixture(autouse=True)
def slow_recogniser(monkeypatch) -> None:
    """Wait longer for words than a wearer would: on a busy machine the child needs many seconds to
    start.
    """
    monkeypatch.setattr(recogniser, "_WORKER", AS_FAST_AS_OTHERS)
    _limit_push_to_talk(monkeypatch, PATIENCE_S)
    monkeypatch.setattr(listening, "LAST_WORDS_S", PATIENCE_S)
    monkeypatch.setattr(listening, "START_S", PATIENCE_S)


@pytest.fixture
def short_silence(monkeypatch, slow_recogniser) -> None:
    """End push to talk after half the usual silence; the last words are waited for nevertheless."""
    _limit_push_to_talk(monkeypatch, 5.0)


def _limit_push_to_talk(monkeypatch, silence_s: float) -> None:
    push = replace(LIMITS[Purpose.PUSH_TO_TALK], silence_s=silence_s, most_s=PATIENCE_S)
    limits = MappingProxyType({**LIMITS, Purpose.PUSH_TO_TALK: push})
    monkeypatch.setattr(purposes, "LIMITS", limits)
