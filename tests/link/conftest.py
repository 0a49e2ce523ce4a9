"""Which radio the link stories run on: bumble unless the environment names another, as `make
vm-test` does.

GLASSD_LINK_RADIO=bluez-trixie GLASSD_LINK_LOSSES=100 python -m pytest tests/link
"""

import os
import tempfile
from pathlib import Path

import pytest
import pytest_asyncio

from tests.link.here import Here
from tests.link.world import World

RADIO = os.environ.get("GLASSD_LINK_RADIO", "bumble")
LOSSES = int(os.environ.get("GLASSD_LINK_LOSSES", "8"))
"""Link losses at random moments: 100 in `make vm-test`, 20 in its quick form, a thousand on
bumble in `make chaos`.
"""


class Holder:
    """The one world of a session; broken by a failed story, it is replaced before the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world: World | None = None
        self.broken = False

    async def fetch(self) -> World:
        if self.broken:
            await self.close()
        if self.world is None:
            self.world = World(self._place(), self.folder)
            self.broken = True  # until it is open
            await self.world.open()
            self.broken = False
        return self.world

    async def close(self) -> None:
        world, self.world = self.world, None
        if world is not None:
            await world.close()

    def _place(self):
        if RADIO == "bumble":
            return Here(Path(tempfile.mkdtemp(dir=self.folder)))
        from tests.link.guest import Guest
        from tests.vm.image import image, payload

        of = image(RADIO.removeprefix("bluez-"))
        return Guest(of, payload(of))


HOLDER = pytest.StashKey[Holder]()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _holder(request):
    with tempfile.TemporaryDirectory(
        prefix="glink-"
    ) as folder:  # short: a unix socket's path has 108 bytes
        holder = request.session.stash[HOLDER] = Holder(Path(folder))
        yield holder
        await holder.close()


@pytest_asyncio.fixture(loop_scope="session")
async def world(request, _holder):
    """The world, as the last story left it; a harm that does not exist on this radio skips the
    story by name.
    """
    needs = request.node.get_closest_marker("needs")
    if needs is not None and RADIO == "bumble":
        pytest.skip(f"there is no {needs.args[0]} on bumble; it runs in `make vm-test`")
    barred = request.node.get_closest_marker("not_on")
    if barred is not None and barred.args[0] == RADIO:
        pytest.skip(f"not on {RADIO}: {barred.args[1]}")
    place = await _holder.fetch()
    place.notes.clear()
    said = len(await place.place.log())
    yield place
    spoils = request.node.get_closest_marker("spoils")
    if spoils is not None and spoils.args[0] == RADIO:
        _holder.broken = True
    request.node.user_properties += [("note", note) for note in place.notes]
    log = (await place.place.log())[said:]
    assert "Traceback" not in log, log[-4000:]


@pytest.fixture
def losses() -> int:
    return LOSSES


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    holder = item.session.stash.get(HOLDER, None)
    if holder is not None and report.failed:
        holder.broken = True
    return report
