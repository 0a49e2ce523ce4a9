"""A machine to examine, gone with the test."""

import pytest

from tests.unit.doctor.house import Sandbox


@pytest.fixture
def sandbox(tmp_path):
    place = Sandbox(tmp_path)
    try:
        yield place
    finally:
        place.stop()
