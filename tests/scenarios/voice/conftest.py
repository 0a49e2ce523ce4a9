"""What scenarios of the microphone share."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from edge.core.hearing import purposes
from edge.core.hearing.purposes import LIMITS, Purpose
from edge.hearing import listening

PATIENCE_S = 40.0


@pytest.fixture
def slow_recogniser(monkeypatch) -> None:
    """Wait longer for words than a wearer would: on a busy machine the child needs many seconds to
    start.
    """
    push = replace(LIMITS[Purpose.PUSH_TO_TALK], silence_s=PATIENCE_S, most_s=PATIENCE_S)
    limits = MappingProxyType({**LIMITS, Purpose.PUSH_TO_TALK: push})
    monkeypatch.setattr(purposes, "LIMITS", limits)
    monkeypatch.setattr(listening, "LAST_WORDS_S", PATIENCE_S)
