"""Tests of listening need no codec: what decodes sound is tested where it is."""

import pytest

from edge.hearing import obstacles, recogniser
from tests.unit.hearing.children import AS_FAST_AS_OTHERS


@pytest.fixture(autouse=True)
def fast_child(monkeypatch) -> None:
    monkeypatch.setattr(recogniser, "_WORKER", AS_FAST_AS_OTHERS)


@pytest.fixture(autouse=True)
def missing_codec(monkeypatch) -> list[str]:
    """Why LC3 cannot be decoded: add a text."""
    missing: list[str] = []
    monkeypatch.setattr(obstacles, "lc3_missing", lambda: "".join(missing))
    return missing
