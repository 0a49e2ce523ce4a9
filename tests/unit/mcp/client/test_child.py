"""The handle and its real child, with good, dead, slow and hostile servers in it. One child for
the module: it is dear.
"""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
import pytest_asyncio

from edge.mcp.client.client import UpstreamClient
from edge.mcp.client.models import CallFault, McpServer, Status
from tests.system import runs
from tests.unit.mcp.client.places import SOON_S, raw, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
MOST_MIB = 180
"""Resident, at the most the child ever was: 70 MiB of SDK, and what answers of 4 MiB take to be
read (106 measured).
"""


def good(**more):
    return raw("modern", id="good", **more)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def notes(tmp_path_factory):
    return tmp_path_factory.mktemp("child") / "notes"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(notes):
    servers = (
        good(),
        raw(f"notes={notes}", id="other"),
        McpServer(id="dead", command="/nonexistent/server"),
        raw("mute", id="mute", start_timeout_s=600),
        McpServer(id="nowhere", url="http://127.0.0.1:9/mcp"),
        raw("deaf", id="deaf"),
    )
    loop = asyncio.get_running_loop()
    client = UpstreamClient(chance=random.random, now=loop.time, environment=os.environ)
    async with asyncio.TaskGroup() as group:
        service = group.create_task(client.run())
        await client.configure(servers)
        yield client
        service.cancel()


_ids = iter(range(10**6))


def ask(client, server, tool, args=None, *, timeout_s=SOON_S, **more):
    return client.call(
        server, tool, args or {}, call_id=f"c{next(_ids)}", timeout_s=timeout_s, **more
    )


@pytest.mark.requirement("S1-36")
@pytest.mark.requirement("I6-start")
async def test_dead_and_slow_servers_cost_the_others_nothing(client):
    assert (await ask(client, "good", "echo", {"a": 1})).structured == {"a": 1}
    assert (await ask(client, "other", "echo")).ok
    news = await until(lambda: len(client.news()) == 6 and client.news())
    assert news["mute"].status is Status.LOADING
    for name, words in [("dead", "No such file"), ("nowhere", "127.0.0.1:9 cannot be reached")]:
        await until(lambda name=name: client.news()[name].error)
        assert client.news()[name].status is not Status.CONNECTED
        outcome = await ask(client, name, "echo")
        assert outcome.fault is CallFault.UNSENT
        assert words in outcome.message
    late = await ask(client, "mute", "echo", timeout_s=0.1)
    assert (late.fault, late.message) == (CallFault.UNSENT, "it was not connected in time")


@pytest.mark.requirement("S1-26")
@pytest.mark.requirement("S1-28")
async def test_a_hostile_server_is_one_clear_outcome_each_and_memory_stays_bounded(client):
    async with asyncio.TaskGroup() as group:
        hostile = [
            group.create_task(ask(client, "other", tool, args))
            for tool, args in [
                ("big", {"size": 10_000_000}),
                ("deep", {}),
                ("null", {}),
                ("lie", {}),
                ("wide", {"size": 300_000}),
            ]
        ]
        kind = [group.create_task(ask(client, "good", "echo", {"n": n})) for n in range(20)]
    assert [task.result().fault for task in hostile] == [
        CallFault.TOO_LARGE,
        CallFault.INVALID,
        CallFault.INVALID,
        CallFault.INVALID,
        CallFault.TOO_LARGE,
    ]
    assert [task.result().structured["n"] for task in kind] == list(range(20))
    assert (await ask(client, "good", "big", {"size": 4_000_000})).ok
    assert client.in_progress("other") == client.in_progress("good") == 0
    status = Path(f"/proc/{client._child.pid}/status").read_text()
    peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    assert peak_kib / 1024 < MOST_MIB


@pytest.mark.requirement("S1-31")
async def test_the_next_child_has_all_servers_of_a_killed_one(client, notes):
    pid = int((await ask(client, "deaf", "env")).structured["PID"])
    async with asyncio.TaskGroup() as group:
        call = group.create_task(ask(client, "other", "hang"))
        await until(lambda: notes.exists() and "hang" in notes.read_text())
        client._child.send_signal(signal.SIGKILL)
        lost = await call
    assert lost.fault is CallFault.LOST
    assert client.in_progress("other") == 0
    await until(lambda: not runs(pid))
    assert (await ask(client, "good", "echo")).ok
    assert (await ask(client, "other", "echo")).ok


async def test_progress_and_cancelling_pass_through(client, notes):
    said = []
    assert (await ask(client, "good", "steps", on_progress=said.append)).ok
    assert said[0].message == "step 1"
    async with asyncio.TaskGroup() as group:
        before = notes.read_text().count("hang")
        call = group.create_task(client.call("other", "hang", {}, call_id="x", timeout_s=SOON_S))
        await until(lambda: notes.read_text().count("hang") > before)
        await client.cancel("x")
        assert (await call).fault is CallFault.CANCELLED
    await until(lambda: "cancelled" in notes.read_text())


@pytest.mark.requirement("S1-29")
async def test_when_every_server_rests_so_does_the_child(client):
    await client.configure([good(idle_s=0.2)])
    await until(lambda: client.news().get("good") and client._child is None)
    news = client.news()["good"]
    assert (news.status, news.error, news.available) == (Status.DISCONNECTED, "", True)
    assert any(tool.name == "echo" for tool in news.tools)
    assert (await ask(client, "good", "echo")).ok
