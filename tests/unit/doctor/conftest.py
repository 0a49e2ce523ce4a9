"""A machine to examine, gone with the test."""

import tempfile
from pathlib import Path

import pytest

from tests.unit.doctor.house import Sandbox


@pytest.fixture
def sandbox():
    """Not in pytest's own folder: some tests go on as the user nobody, who may not enter that
    one.
    """
    with tempfile.TemporaryDirectory(prefix="glassd-doctor-") as folder:
        Path(folder).chmod(0o755)
        place = Sandbox(Path(folder))
        try:
            yield place
        finally:
            place.stop()
