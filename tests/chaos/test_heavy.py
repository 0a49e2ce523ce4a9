"""Heavy load in small: the uplink is back after each kill, and nothing is lost or done twice."""

import pytest

from tests.chaos import heavy
from tests.system import needs

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.mosquitto,
    needs("mosquitto"),
]


@pytest.mark.requirement("I11-uplink-backlog")
def test_the_uplink_is_back_after_each_kill_under_heavy_load(tmp_path):
    result = heavy.run(tmp_path / "heavy", seed=1, kills=2)
    assert result.whole, heavy.printed(result)
    assert min(result.open) >= heavy.INVOCATIONS
    assert max(result.waiting) >= heavy.DURABLE
    assert result.kills == 2
    assert result.found["refused"] == 0
    assert set(result.found["answers_by_code"]) <= {"ok", "INTERRUPTED"}
