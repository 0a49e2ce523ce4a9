"""The pytest plugin of this package: the fixture `glassd_mock`. Loaded by pytest wherever glassd is
installed, so it imports nothing of glassd before a test asks for the fixture.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from edge.testing import WornGlasses


@pytest.fixture
def glassd_mock() -> "Iterator[Callable[..., WornGlasses]]":
    """Make mock glasses and a daemon that wears them: `glassd_mock("mock:full")`. Both end with
    the test.
    """
    from edge.testing import MockFailed, wear  # noqa: PLC0415 - see above

    worn: list[WornGlasses] = []

    def make(model: str = "mock:full", *, config: str = "", tools: str = "") -> "WornGlasses":
        """Wear this model. `config` is more of `glassd.toml`, `tools` a file of own tools, as
        in `tools.d`.
        """
        __tracebackhide__ = True
        try:
            worn.append(wear(model, config=config, tools=tools))
        except MockFailed as e:
            pytest.fail(f"glassd_mock: {e}", pytrace=False)
        return worn[-1]

    try:
        yield make
    finally:
        for each in reversed(worn):
            each.close()
