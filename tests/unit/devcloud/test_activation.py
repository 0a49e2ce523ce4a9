"""Starting mini-apps: real processes, their HTTP faked. When it is looked, how long, and that
nothing is ever cleaned up.
"""

import asyncio
import contextlib
import sys

import httpx
import pytest

from edge.devcloud.database import open_shared
from edge.devcloud.registry import AppRegistry, InstalledApp
from edge.devcloud.worker import activation
from edge.devcloud.worker.activation import ActivationFailed, ActivationTimeout, Launcher
from edge.devcloud.worker.app_processes import AppProcesses
from edge.devcloud.worker.runner import Runner
from edge.devcloud.worker.workers import Workers
from tests.unit.devcloud.parts import READ, FakeApp, a_call

pytestmark = pytest.mark.enable_socket  # a free port is asked for; what answers on it is faked
SLEEPS = InstalledApp(
    "com.x.app", "X", (READ,), command=(sys.executable, "-c", "import time; time.sleep(600)")
)
ENDS = InstalledApp(
    "com.x.ends", "E", (READ,), command=(sys.executable, "-c", "raise SystemExit('no licence')")
)


class Health:
    """Answers on an app's port after `silent` requests without an answer."""

    def __init__(self, *, silent=0, tool=None, status=200):
        self.silent, self.looks, self.status = silent, 0, status
        self.tool = tool or (lambda: httpx.Response(200, json={"success": True, "content": "done"}))

    def __call__(self, request):
        if request.url.path == "/tool":
            return self.tool()
        self.looks += 1
        if self.looks <= self.silent:
            raise httpx.ConnectError("nobody listens")
        return httpx.Response(self.status, json={"status": "ok"})


@contextlib.asynccontextmanager
async def launchers(tmp_path, health, *, count=1, connect_s=30.0):
    """As many as there are workers over one folder; each has a workers entry that `die()` takes
    back, as a dead process's is.
    """
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(transport=FakeApp(health)))
        made = []
        for number in range(count):
            workers = Workers(tmp_path, f"w{number}")
            workers.__enter__()
            stack.callback(workers.__exit__, None, None, None)
            db = await open_shared(tmp_path / "d.db")
            stack.push_async_callback(db.close)
            launcher = Launcher(
                http,
                state_dir=tmp_path / "apps",
                connect_s=connect_s,
                poll_s=0.001,
                processes=AppProcesses(db, workers),
            )
            stack.push_async_callback(launcher.aclose)
            launcher.die = lambda workers=workers: workers.__exit__(None, None, None)
            made.append(launcher)
        yield made


def state_of(launcher, app=SLEEPS):
    line = launcher.status().get(app.package)
    return line and (line["state"], line["starts"])


@pytest.mark.requirement("S0-20")
def test_an_app_has_ten_seconds_and_is_looked_for_every_200_ms(tmp_path):
    stock = Launcher(None, state_dir=tmp_path)
    assert (
        (activation.CONNECT_S, activation.POLL_S)
        == (10.0, 0.2)
        == (stock._connect_s, stock._poll_s)
    )
    assert str(stock._too_late(SLEEPS)) == "App com.x.app did not connect within 10000ms"


@pytest.mark.requirement("S0-20")
async def test_it_is_looked_again_and_again_until_the_app_answers(tmp_path, monkeypatch):
    pauses = []

    async def pause(seconds, _sleep=asyncio.sleep):
        pauses.append(seconds)
        await _sleep(0)

    monkeypatch.setattr(activation.asyncio, "sleep", pause)
    health = Health(silent=3)
    async with launchers(tmp_path, health) as (launcher,):
        running = await launcher.ensure(SLEEPS)
        assert (running.activated, health.looks, state_of(launcher)) == (True, 4, ("RUNNING", 1))
        assert pauses.count(0.001) == 3


@pytest.mark.requirement("S0-17")
async def test_one_that_runs_is_not_started_and_not_looked_for(tmp_path):
    health = Health()
    async with launchers(tmp_path, health) as (launcher,):
        first, second = await launcher.ensure(SLEEPS), await launcher.ensure(SLEEPS)
        assert (first.activated, second.activated, first.url == second.url) == (True, False, True)
        assert (health.looks, state_of(launcher)) == (1, ("RUNNING", 1))


@pytest.mark.requirement("S0-23")
async def test_one_that_never_connected_is_left_alone_and_may_yet_come(tmp_path):
    health = Health(silent=10**9)
    async with launchers(tmp_path, health, connect_s=0.05) as (launcher,):
        launcher._others = None  # asking the disk who else runs it could take these 50 ms by itself
        with pytest.raises(
            ActivationTimeout, match=r"^App com\.x\.app did not connect within 50ms$"
        ):
            await launcher.ensure(SLEEPS)
        assert state_of(launcher) == ("STARTING", 1)
        health.silent, launcher._connect_s = 0, 30.0
        running = await launcher.ensure(SLEEPS)
        assert (running.activated, state_of(launcher)) == (False, ("RUNNING", 1))


@pytest.mark.requirement("S0-23")
@pytest.mark.parametrize(("status", "ok"), [(200, True), (500, False)])
async def test_an_app_stays_whatever_its_call_came_to(tmp_path, status, ok):
    health = Health(tool=lambda: httpx.Response(status, json={"success": True, "content": "done"}))
    async with launchers(tmp_path, health) as (launcher,):
        runner = Runner(AppRegistry([SLEEPS]), launcher, launcher._http)
        response = await runner.run(a_call(n=1, ttl_s=60.0))
        assert (response.ok, response.meta["activatedForTool"], state_of(launcher)) == (
            ok,
            True,
            ("RUNNING", 1),
        )


@pytest.mark.requirement("S0-21")
async def test_an_app_that_ends_at_once_says_why_and_starts_again_later(tmp_path):
    async with launchers(tmp_path, Health(silent=10**9), count=2) as (launcher, other):
        for each in (launcher, launcher, other):
            with pytest.raises(
                ActivationFailed,
                match=r"^Failed to activate app: com\.x\.ends ended at once: no licence$",
            ):
                await each.ensure(ENDS)
        assert (state_of(launcher, ENDS), state_of(other, ENDS)) == (("STOPPED", 2), ("STOPPED", 1))


@pytest.mark.requirement("I5-cloud-one-app")
async def test_an_app_that_cannot_be_started_here_keeps_no_other_worker_waiting(tmp_path):
    (tmp_path / "apps").write_text("in the place of the folder of its log")
    async with (
        launchers(tmp_path, Health(), count=2, connect_s=600.0) as workers,
        asyncio.timeout(30),
    ):
        for each in workers:
            with pytest.raises(ActivationFailed, match=r"^Failed to activate app: "):
                await each.ensure(SLEEPS)


@pytest.mark.requirement("I5-cloud-one-app")
async def test_a_start_that_is_called_off_keeps_no_other_worker_waiting(tmp_path, monkeypatch):
    starting = asyncio.Event()

    async def never(*_args, **_more):
        starting.set()
        await asyncio.Event().wait()

    async with (
        launchers(tmp_path, Health(), count=2, connect_s=600.0) as (a, b),
        asyncio.timeout(30),
    ):
        with monkeypatch.context() as slow:
            slow.setattr(activation.Child, "start", never)
            called_off = asyncio.create_task(a.ensure(SLEEPS))
            await starting.wait()
            called_off.cancel()
            await asyncio.wait({called_off})
        assert (await b.ensure(SLEEPS)).activated


@pytest.mark.requirement("I5-cloud-one-app")
async def test_two_workers_that_need_an_app_at_once_start_it_once(tmp_path):
    async with launchers(tmp_path, Health(silent=3), count=2) as (a, b):
        first, second = await asyncio.gather(a.ensure(SLEEPS), b.ensure(SLEEPS))
        assert (first.url, first.api_key_hash) == (second.url, second.api_key_hash)
        assert sorted([first.activated, second.activated]) == [False, True]
        assert sorted([state_of(a), state_of(b)], key=str) == [("RUNNING", 1), ("STOPPED", 0)]


@pytest.mark.requirement("I5-cloud-one-app")
async def test_the_next_worker_starts_the_app_of_a_dead_one(tmp_path):
    async with launchers(tmp_path, Health(), count=2) as (a, b):
        before = await a.ensure(SLEEPS)
        a.die()
        after = await b.ensure(SLEEPS)
        assert (after.activated, before.url != after.url, state_of(b)) == (
            True,
            True,
            ("RUNNING", 1),
        )


async def test_a_crashed_app_is_started_here_and_a_slow_one_is_not(
    tmp_path,
):
    health = Health()
    async with launchers(tmp_path, health, count=2) as (a, b):
        await a.ensure(SLEEPS)
        health.status, b._connect_s = 503, 0.05
        with pytest.raises(ActivationTimeout):
            await b.ensure(SLEEPS)
        assert state_of(b) == ("STOPPED", 0)
        health.status, health.looks, health.silent, b._connect_s = (
            200,
            0,
            1,
            30.0,
        )  # nobody listens, once
        assert (await b.ensure(SLEEPS)).activated is True


async def test_one_that_was_stopped_is_free_for_any_worker(tmp_path):
    async with launchers(tmp_path, Health(), count=2) as (a, b):
        await a.ensure(SLEEPS)
        assert await a.stop(SLEEPS.package) is True
        assert (await b.ensure(SLEEPS)).activated is True


async def test_where_it_cannot_be_stored_the_app_is_started_all_the_same(tmp_path, caplog):
    async with launchers(tmp_path, Health()) as (launcher,):
        await launcher._others._db.close()
        assert (await launcher.ensure(SLEEPS)).activated is True
        assert "cannot be read" in caplog.text
