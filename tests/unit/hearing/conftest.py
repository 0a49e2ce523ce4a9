"""Tests of listening need no codec: what decodes sound is tested where it is."""

import pytest

from edge.hearing import obstacles


@pytest.fixture(autouse=True)
def missing_codec(monkeypatch) -> list[str]:
    """Why LC3 cannot be decoded: add a text."""
    missing: list[str] = []
    monkeypatch.setattr(obstacles, "lc3_missing", lambda: "".join(missing))
    return missing
