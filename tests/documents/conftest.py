"""A machine for one test."""

from contextlib import closing

import pytest

from tests.documents.place import Place


@pytest.fixture
def place():
    with closing(Place()) as place:
        yield place
