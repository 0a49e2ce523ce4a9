"""One small cloud for all stories that leave it alone; every story has its own edge, state and
glasses.
"""

import pytest_asyncio

from tests.scenarios.world import all_apps, whole_world, world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cloud(tmp_path_factory):
    """A running devcloud with its embedded broker; stories that stop, restart or damage a cloud
    start their own.
    """
    async with world(tmp_path_factory.mktemp("cloud")) as place:
        yield await place.start_cloud(apps=all_apps())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(tmp_path_factory, cloud):
    """One whole world and a bare client beside it for a file of stories that leave it as it
    was: (world, onlooker).
    """
    async with (
        whole_world(tmp_path_factory.mktemp("served"), cloud=cloud) as place,
        place.onlooker() as cloud_side,
    ):
        yield place, cloud_side
