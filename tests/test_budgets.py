"""What a call and a start may cost, where it is no noise: commits, each of which waits for the
disk, and modules that are imported. Raise a bound only with a reason; lower it with every gain.
"""

import os
import socket
import subprocess
import sys
import tempfile

import pytest
import pytest_asyncio

from benchmarks.usage import DATABASE, commits
from edge.daemon.app import GC_THRESHOLDS, SWITCH_S
from edge.ports import Wait
from edge.storage.sqlite import writer
from tests.scenarios.world import all_apps, until, world

pytestmark = [pytest.mark.enable_socket, pytest.mark.asyncio(loop_scope="session")]
COMMITS = {
    "local read": 0,
    "local write": 2,
    "cloud to edge": 2,
    "edge to cloud": 3,
}
"""Most commits that a call waits for, when none of them is shared. What it does not wait for (a
read, a delivery, deletions) goes with the next commit, or has one of its own in a quiet moment.
"""
MODULES = {
    "--help": (8, 90),
    "status": (16, 112),
    "run": (280, 500),
}
"""Most modules of ours and most in all when a command has ended, `run` soon after it was READY. The
standard library of each Python has some more or less.
"""
CALLS = 8
ONCE = 1
"""Commits that do not come with each call: so much that nobody waits for has gathered."""
QUIET = 20
"""Looks, 10 ms apart, in which nothing was committed: then nothing of a call is left to do."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory):
    """A daemon with a cloud and without glasses, whose database commits each piece of work alone
    that is waited for, and the others with it: how many are committed together depends on how fast
    the disk is.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "GROUP", 1)
        patched.setattr(writer, "SOON_S", 600.0)
        async with world(tmp_path_factory.mktemp("budget")) as made:
            await made.start_cloud(apps=all_apps())
            daemon = await made.start_daemon()
            await until(lambda: daemon.uplink.status().up, "uplink up")
            await until(lambda: daemon.registry.describe()["origin"] == "cloud", "its registry")
            yield made


async def count(place, call):
    """Return the commits of a few calls of one kind, with all that follows them."""
    for _ in range(2):
        await call()
    before = await _at_rest(place)
    for _ in range(CALLS):
        await call()
    return await _at_rest(place) - before


async def _at_rest(place):
    """Return the commits so far, once there are no more."""
    seen = []

    def quiet():
        seen.append(commits(place.folder / "state" / DATABASE))
        return len(seen) > QUIET and len(set(seen[-QUIET:])) == 1

    await until(quiet, "a database at rest")
    return seen[-1]


def allowed(kind):
    return COMMITS[kind] * CALLS + ONCE


async def test_commits_of_a_local_read(place):
    async def call():
        assert (await place.call("clock:now", wait=Wait.ANSWER)).ok

    assert await count(place, call) <= allowed("local read")


async def test_commits_of_a_local_write(place):
    async def call():
        assert (await place.call("notes:add", {"text": "milk"}, wait=Wait.ANSWER)).ok

    assert await count(place, call) <= allowed("local write")


async def test_commits_of_a_call_from_the_cloud(place):
    async with place.onlooker() as cloud_side:

        async def call():
            assert (await cloud_side.answer_to(await cloud_side.invokes("clock:now", {})))["ok"]

        assert await count(place, call) <= allowed("cloud to edge")


async def test_commits_of_a_call_to_the_cloud(place):
    async def call():
        assert (await place.call("com.test.echo:answer", {"data": 1}, wait=Wait.ANSWER)).ok

    assert await count(place, call) <= allowed("edge to cloud")


# ------------------------------------------------------------------ what is imported

LISTED = """
import atexit, gc, os, sys
shown, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
def say():
    collector = f"{gc.isenabled()} {gc.get_freeze_count() > 10_000} {gc.get_threshold()[0]}"
    collector += f" {sys.getswitchinterval():g}"
    os.write(shown, f"{' '.join(sys.modules)}|{collector}".encode())
atexit.register(say)
os.dup2(nothing, 1), os.dup2(nothing, 2)
sys.argv[0] = "glassd"
from edge.cli import main
main()
"""
WITHOUT_GLASSES = """
version = 1
[glasses]
radio = "inproc"
connect = "paired"
[control]
group = ""
"""
"""None are paired, so that no radio is loaded: what one needs depends on the machine."""
OURS = ("edge", "firmware_bridge", "tools_cache")


def check_modules(door, listed):
    """Fail if a command imported more modules than it may; `listed` are their names."""
    names = listed.partition("|")[0].split()
    ours = sorted(name for name in names if name.partition(".")[0] in OURS)
    most_ours, most = MODULES[door]
    assert len(ours) <= most_ours, ours
    assert len(names) <= most, sorted(names)


def command(*words):
    return [sys.executable, "-c", LISTED, *words]


@pytest.mark.parametrize("word", ["--help", "status"])
async def test_modules_of_a_short_command(word, tmp_path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    ran = subprocess.run(
        command(word), env=env, capture_output=True, text=True, timeout=60, check=False
    )
    check_modules(word, ran.stdout)


async def test_modules_of_a_daemon_that_is_ready(tmp_path):
    (tmp_path / "glassd.toml").write_text(WITHOUT_GLASSES)
    with (
        tempfile.TemporaryDirectory() as short,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard,
    ):
        heard.bind(f"{short}/notify")
        heard.settimeout(60)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "NOTIFY_SOCKET": f"{short}/notify",
            "XDG_RUNTIME_DIR": short,
            "STATE_DIRECTORY": str(tmp_path / "state"),
        }
        daemon = subprocess.Popen(
            command("run", "--config", str(tmp_path / "glassd.toml")),
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            while b"READY=1" not in heard.recv(4096):
                pass
        finally:
            daemon.terminate()
            listed, _ = daemon.communicate(timeout=60)
    check_modules("run", listed)
    rest = listed.partition("|")[2].split()
    collector = ["True", "True", str(GC_THRESHOLDS[0])]
    assert rest[:3] == collector, "it is on again, and leaves the start alone"
    assert float(rest[3]) == SWITCH_S, "the store's thread is not kept waiting"
