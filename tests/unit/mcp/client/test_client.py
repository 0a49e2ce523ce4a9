"""The daemon's handle to its child: what it makes of a child that dies, hangs, babbles or falls
asleep.
"""

import asyncio
import contextlib
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from edge.mcp.client.client import UpstreamClient
from edge.mcp.client.models import CallFault, McpServer, Status
from tests.unit.mcp.client.places import SOON_S, until

SERVERS = (McpServer(id="a", command="a"), McpServer(id="b", command="b"))


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


@contextlib.asynccontextmanager
async def handle(notes, *, servers=SERVERS, command=None, environment=None, **more):
    double = (sys.executable, "-S", str(Path(__file__).parent / "double.py"), str(notes))
    loop = asyncio.get_running_loop()
    client = UpstreamClient(
        chance=lambda: 0.0,
        now=loop.time,
        command=command or double,
        environment=environment or {},
        **more,
    )
    async with asyncio.TaskGroup() as group:
        service = group.create_task(client.run())
        await client.configure(servers)
        try:
            yield client
        finally:
            service.cancel()


def ask(client, tool, args=None, *, call_id="c", timeout_s=SOON_S, **more):
    return client.call("a", tool, args or {}, call_id=call_id, timeout_s=timeout_s, **more)


def read(notes):
    return notes.read_text().splitlines() if notes.exists() else []


async def test_a_call_goes_to_the_child_and_comes_back(notes):
    async with handle(notes, environment={"PATH": "/bin", "GLASSD_SECRET": "x"}) as client:
        said = []
        outcome = await ask(client, "echo", {"ü": [1]})
        assert outcome.structured["args"] == {"ü": [1]}
        assert "GLASSD_SECRET" not in outcome.structured["env"]
        assert (await ask(client, "steps", on_progress=said.append)).ok
        assert [(p.call_id, p.message) for p in said] == [("c", "half")]
        assert client.news()["b"].status is Status.CONNECTED
        assert (
            await client.call("c", "echo", {}, call_id="d", timeout_s=1)
        ).fault is CallFault.UNSENT
        assert (await ask(client, "echo", {"n": float("nan")})).fault is CallFault.UNSENT
        assert client.in_progress("a") == 0
    await until(lambda: "end" in read(notes))


@pytest.mark.requirement("S1-31")
@pytest.mark.parametrize(
    ("tool", "idempotent", "fault", "attempts"),
    [
        ("dies-unsent-once", False, None, 2),
        ("dies-unsent", False, CallFault.UNSENT, 2),
        ("dies-sent-once", True, None, 2),
        ("dies-sent-once", False, CallFault.LOST, 1),
        ("dies-sent", True, CallFault.LOST, 2),
    ],
)
async def test_a_call_is_repeated_by_the_next_child_if_allowed(
    notes, tool, idempotent, fault, attempts
):
    async with handle(notes) as client:
        outcome = await ask(client, tool, idempotent=idempotent)
        assert (outcome.fault, outcome.attempts) == (fault, attempts)
        assert [line for line in read(notes) if line.startswith("dies")] == [
            f"{tool} {n + 1}" for n in range(attempts)
        ]
        assert client.in_progress("a") == 0
        assert (await ask(client, "echo")).ok
        assert client.news()["a"].available


@pytest.mark.requirement("S1-28")
async def test_a_stuck_child_is_replaced_without_a_wait(notes, monkeypatch):
    monkeypatch.setattr("edge.mcp.client.client.GRACE_S", 0.3)
    async with handle(notes, end_s=0.3) as client:
        await until(lambda: client.news().get("a"))
        outcome = await ask(client, "stuck", timeout_s=0.1)
        assert outcome.is_error
        assert outcome.fault in (CallFault.TIMEOUT, CallFault.UNSENT)
        monkeypatch.undo()
        assert (await ask(client, "echo")).ok
        assert client.in_progress("a") == 0


async def test_a_child_that_does_not_keep_the_form_is_replaced(notes):
    async with handle(notes) as client:
        assert (await ask(client, "babbles", idempotent=True)).ok
        assert read(notes).count("babbles 1") == 1


@pytest.mark.requirement("S1-31")
async def test_a_call_of_a_half_read_child_may_be_sent(notes):
    async with handle(notes) as client:
        assert (await ask(client, "babbles-and-sends")).fault is CallFault.LOST
        assert [line for line in read(notes) if line.startswith("babbles")] == [
            "babbles-and-sends 1"
        ]
        assert (await ask(client, "echo")).ok


@pytest.mark.requirement("S1-31")
def test_a_call_into_a_broken_pipe_goes_to_the_next_child(notes):
    async def story():
        async with handle(notes) as client:
            assert (await ask(client, "echo")).ok
            client._pipe.transport.abort()
            await asyncio.sleep(0)
            assert (await ask(client, "echo")).ok
            assert client.in_progress("a") == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


async def test_without_a_child_a_call_ends_unsent(notes, monkeypatch):
    monkeypatch.setattr("edge.mcp.client.client.GRACE_S", 0.05)
    async with handle(notes, command=("/nonexistent/python",)) as client:
        outcome = await ask(client, "echo", timeout_s=0.05)
        assert outcome.fault is CallFault.UNSENT


@pytest.mark.requirement("S1-41")
async def test_a_cancelled_call_is_cancelled_where_it_is(notes):
    async with handle(notes) as client, asyncio.TaskGroup() as group:
        call = group.create_task(ask(client, "waits"))
        await until(lambda: "waits 1" in read(notes))
        await client.cancel("c")
        assert (await call).fault is CallFault.CANCELLED
        dropped = group.create_task(ask(client, "waits", call_id="d"))
        await until(lambda: read(notes).count("waits 1") == 2)
        dropped.cancel()
        await until(lambda: read(notes).count("cancel") == 2)
        assert client.in_progress("a") == 0


@pytest.mark.requirement("S1-41")
async def test_a_call_cancelled_before_there_is_a_child_reaches_none(notes):
    client = UpstreamClient(
        chance=lambda: 0.0, now=asyncio.get_running_loop().time, command=("/nonexistent",)
    )
    await client.configure(SERVERS)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(ask(client, "echo"))
        await until(lambda: client.in_progress("a") == 1)
        await client.cancel("c")
        assert (await call).fault is CallFault.CANCELLED


async def test_when_all_rest_the_child_ends_and_the_next_call_begins_another(notes):
    async with handle(notes, servers=SERVERS[:1]) as client:
        assert (await ask(client, "rests")).ok
        await until(lambda: "end" in read(notes))
        assert client.news()["a"].available
        assert client.news()["a"].tools[0].name == "echo"
        assert (await ask(client, "echo")).ok
        assert read(notes)[:4] == ["configure a:start", "rests 1", "end", "configure a:rest"]


@pytest.mark.requirement("S1-31")
async def test_a_call_during_the_childs_end_goes_to_the_next_one_only(notes, caplog):
    late = []

    class Late(logging.Handler):
        def emit(self, record):
            if "all servers are idle" in record.getMessage() and not late:
                late.append(
                    asyncio.get_running_loop().create_task(ask(client, "echo", call_id="late"))
                )

    watch = Late(logging.DEBUG)
    logging.getLogger("edge.mcp.client.client").addHandler(watch)
    try:
        with caplog.at_level(logging.DEBUG, "edge.mcp.client.client"):
            async with handle(notes, servers=SERVERS[:1]) as client:
                assert (await ask(client, "rests")).ok
                await until(lambda: late)
                outcome = await late[0]
                assert (outcome.ok, outcome.attempts) == (True, 1)
                assert [line for line in read(notes) if line.startswith("echo")] == ["echo 1"]
    finally:
        logging.getLogger("edge.mcp.client.client").removeHandler(watch)


async def test_news_tell_the_state_of_each_server(notes):
    async with handle(notes) as client:
        told = []

        async def hear():
            async for news in client.events():
                told.append(news)  # noqa: PERF401 - it never ends

        async with asyncio.TaskGroup() as group:
            ear = group.create_task(hear())
            await until(
                lambda: {n.server for n in told if n.status is Status.CONNECTED} == {"a", "b"}
            )
            assert (await ask(client, "dies-sent")).fault is CallFault.LOST
            await until(lambda: client.news()["a"].available and client.news()["b"].available)
            await client.configure(SERVERS[1:])
            assert set(client.news()) == {"b"}
            await client.refresh("b")
            await client.authorize("b", "code", "state")
            await until(lambda: read(notes)[-2:] == ["refresh", "authorize"])
            ear.cancel()


async def test_without_the_sdk_every_server_says_what_to_install(notes, monkeypatch):
    monkeypatch.setattr("edge.mcp.client.client.find_spec", lambda name: None)
    async with handle(notes) as client:
        assert {news.error for news in client.news().values()} == {
            "the MCP SDK is missing on this machine: install glassd[mcp]"
        }
        assert "glassd[mcp]" in (await ask(client, "echo")).message
        await client.refresh("a")
    assert read(notes) == []


async def test_servers_of_a_dead_child_are_unavailable_and_keep_their_tools(notes):
    async with handle(notes) as client:
        await until(lambda: len(client.news()) == 2)
        assert (await ask(client, "dies-for-good")).fault is CallFault.LOST
        for news in client.news().values():
            assert (news.status, news.available, news.tools[0].name) == (
                Status.DISCONNECTED,
                False,
                "echo",
            )
            assert "ended" in news.error


def test_the_handle_loads_nothing_of_what_the_child_is_for():
    """The daemon's memory is counted in tenths of a MiB."""
    code = (
        "import edge.mcp.client.client, sys; print({'mcp', 'mcp_types', 'pydantic', "
        "'anyio', 'httpx2', 'jsonschema_rs'} & set(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    assert ran.stdout.strip() == "set()"
