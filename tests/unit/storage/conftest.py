"""What every test of a table stands on: a database on a real file, clocks to turn by hand, the
table of calls.
"""

import pytest

from tests.unit.storage.support import Hands, call_store, open_db


@pytest.fixture
async def db(tmp_path):
    database = await open_db(tmp_path)
    yield database
    await database.close()


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def calls(db, hands):
    return call_store(db, hands)
