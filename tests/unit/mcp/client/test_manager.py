"""Other servers' tools in the daemon: the registry, calls, and what people see; the client
is a fake.
"""

import asyncio
import json
from types import SimpleNamespace

import pytest
import pytest_asyncio

from edge.core.tools.user_tools import ServerDefinition
from edge.mcp.client.cache import ListCache
from edge.mcp.client.manager import McpManager
from edge.mcp.client.models import (
    CallFault,
    Outcome,
    ServerNews,
    ServerProgress,
    Status,
    UpstreamTool,
    fault,
)
from edge.mcp.client.state import Wanted
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, ServerChanged
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall
from tools_cache.registry.models import Dropped

SOON_S = 20.0
ALL = frozenset({"*"})
URL = "https://auth.example/authorize?state=1"


def server(name="home", **more):
    return ServerDefinition(**{"name": name, "url": "https://h/mcp", "allowed_tools": ALL, **more})


def news(name="home", status=Status.CONNECTED, tools=("light",), **more):
    listed = (
        None
        if tools is None
        else tuple(UpstreamTool(name=tool, input_schema={"type": "object"}) for tool in tools)
    )
    return ServerNews(server=name, status=status, tools=listed, **more)


class Client:
    """A client that records requests and answers as configured."""

    def __init__(self):
        self.configured, self.calls, self.cancelled, self.refreshed, self.authorized = (
            [],
            [],
            [],
            [],
            [],
        )
        self.news = asyncio.Queue()
        self.answer = Outcome(content=({"type": "text", "text": "on"},))
        self.progress = ()
        self.hangs = False

    async def run(self):
        await asyncio.Event().wait()

    async def configure(self, servers):
        self.configured.append(list(servers))

    async def call(self, server_id, tool, args, *, call_id, on_progress=None, **more):
        self.calls.append((server_id, tool, dict(args), more))
        for said in self.progress:
            on_progress(said)
            await asyncio.sleep(0)
        try:
            await asyncio.Event().wait() if self.hangs else None
        except asyncio.CancelledError:
            self.cancelled.append(call_id)
            raise
        return self.answer

    async def refresh(self, server_id):
        self.refreshed.append(server_id)
        await self.news.put(news(server_id, tools=("light", "fresh")))

    async def authorize(self, server_id, code, state, *, iss=None):
        self.authorized.append((server_id, code, state))
        await self.news.put(news(server_id))

    async def events(self):
        while True:
            yield await self.news.get()


class Place:
    """A manager, and everything that it reports."""

    def __init__(self, folder):
        self.client, self.happened, self.noted, self.signed_in, self.refused = (
            Client(),
            [],
            [],
            [],
            (),
        )
        self.apps, self.away, self.digest = (), {}, ""
        self.desk = McpManager(
            self.client,
            use=self._use,
            shelf=ListCache(folder / "upstream.json"),
            bus=SimpleNamespace(publish=self.happened.append),
            clock=Clock(boot=lambda: 5.0, wall=lambda: 1000.0),
            tokens=folder,
            note=self.noted.append,
            sign_in=self._sign_in,
        )
        self.desk.load()
        self.running = None

    def _use(self, apps, away, digest):
        self.apps, self.away, self.digest = tuple(apps), dict(away), digest
        return self.refused

    async def _sign_in(self, *told):
        self.signed_in.append(told)

    def start(self, *servers):
        self.desk.take([one if isinstance(one, Wanted) else Wanted(one, one) for one in servers])
        if self.running is None:
            self.running = asyncio.ensure_future(self.desk.run())

    async def hears(self, one, holds):
        await self.client.news.put(one)
        await until(holds)

    def names(self):
        return [tool.name for app in self.apps for tool in app.tools]

    def tool(self, name):
        return next(tool for app in self.apps for tool in app.tools if tool.name == name)

    async def call(self, name="home:light", *, progress=None, **more):
        async def quiet(_text):
            pass

        call = ToolCall(
            **{
                "call_id": "c1",
                "tool": name,
                "args": {"on": True},
                "origin": CallOrigin.CLI,
                **more,
            }
        )
        return await self.desk.call(call, self.tool("home:light"), progress or quiet)

    def told(self, name="home"):
        return next(one for one in self.desk.describe() if one["id"] == name)

    async def close(self):
        if self.running is not None:
            self.running.cancel()
            await asyncio.wait({self.running})


async def until(holds):
    async with asyncio.timeout(SOON_S):
        while not holds():
            await asyncio.sleep(0.005)


@pytest_asyncio.fixture
async def place(tmp_path):
    made = Place(tmp_path)
    yield made
    await made.close()


@pytest_asyncio.fixture
async def lit(place):
    """A server that is connected and lists one tool."""
    place.start(server())
    await place.hears(news(), lambda: place.names() == ["home:light"])
    return place


# ------------------------------------------------------------------ lists


async def test_what_a_server_lists_comes_into_the_registry_and_onto_the_disk(lit, tmp_path):
    assert lit.digest
    assert (lit.told()["status"], lit.told()["tools"], lit.told()["available"]) == (
        "connected",
        ["home:light"],
        True,
    )
    await until((tmp_path / "upstream.json").is_file)
    again = Place(tmp_path)
    again.start(server())
    assert again.names() == ["home:light"]  # before anybody was asked
    await again.close()
    other = Place(tmp_path)
    other.desk.take([Wanted(server(url="https://elsewhere"))])
    assert other.names() == []  # the list was another server's


@pytest.mark.requirement("S1-02")
async def test_a_server_without_tools_adds_nothing(place):
    place.start(server(), server("empty"), server("unnamed", allowed_tools=frozenset()))
    await place.client.news.put(news("empty", tools=()))
    await place.client.news.put(news("unnamed"))
    await place.hears(news(), lambda: place.names() == ["home:light"])
    assert [app.package for app in place.apps] == ["home"]
    assert place.told("unnamed")["not_allowed"] == ["light"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b'{"version": 2, "servers": {}}',
        b'{"version": 1, "servers": {"home": {"tools": 5}}}',
        b"[" * 50_000,
    ],
)
async def test_a_damaged_stored_list_is_ignored(tmp_path, damage):
    (tmp_path / "upstream.json").write_bytes(damage)
    assert ListCache(tmp_path / "upstream.json").load() == {}


@pytest.mark.requirement("S1-43", "S1-15")
async def test_the_tools_of_an_unreachable_server_stay_and_say_why(lit):
    await lit.hears(
        news(status=Status.DISCONNECTED, error="it ended with 3"),
        lambda: lit.told()["error"] == "it ended with 3",
    )
    assert (lit.names(), lit.away) == (
        ["home:light"],
        {},
    )  # the next call makes the connection anew
    await lit.client.news.put(news(status=Status.LOADING))
    await lit.hears(news(status=Status.DISCONNECTED, error="cannot be started"), lambda: lit.away)
    assert lit.names() == ["home:light"]
    assert lit.away == {"home:light": "its server home is away: cannot be started"}
    await lit.hears(news(), lambda: not lit.away)


async def test_an_absent_server_logs_one_warning_and_its_return(lit, caplog):
    caplog.set_level("INFO", "edge.mcp.client.manager")
    for n in range(3):
        await lit.client.news.put(news(status=Status.LOADING))
        await lit.hears(
            news(status=Status.DISCONNECTED, error=f"refused {n}"),
            lambda n=n: f"refused {n}" in str(lit.away),
        )
    await lit.hears(news(), lambda: not lit.away)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "server home is disconnected: refused 0"),
        ("INFO", "server home is connected again"),
    ]


async def test_a_server_that_only_rests_is_there(lit):
    await lit.hears(
        news(status=Status.DISCONNECTED), lambda: lit.told()["status"] == "disconnected"
    )
    assert (lit.away, lit.told()["available"]) == ({}, True)


@pytest.mark.requirement("S1-49")
async def test_a_server_without_its_secret_says_so_and_is_not_connected(place, tmp_path):
    ListCache(tmp_path / "upstream.json")
    place.start(Wanted(server(), None, "${env.T} is not set"), server("other"))
    await until(lambda: place.client.configured)
    assert [[one.id for one in told] for told in place.client.configured] == [["other"]]
    assert (place.told()["status"], place.told()["error"]) == (
        "disconnected",
        "${env.T} is not set",
    )
    assert not await place.desk.refresh("home")


async def test_a_refused_tool_is_logged_once_and_audited(lit):
    lit.refused = (Dropped("home:light", "a tool of this device has that name"),)
    await lit.hears(news(tools=("light", "other")), lambda: lit.noted)
    await lit.hears(news(tools=("light",)), lambda: lit.names() == ["home:light"])
    assert lit.noted == [
        {
            "toolId": "home:light",
            "outcome": "refused",
            "reason": "a tool of this device has that name",
        }
    ]
    told = lit.told()
    assert (told["tools"], told["available"], told["left_out"]) == (
        [],
        False,
        ["home:light: a tool of this device has that name"],
    )


async def test_a_new_address_ends_the_connection_and_a_new_allow_list_does_not(lit):
    lit.start(server(allowed_tools=frozenset()))
    assert (lit.names(), lit.told()["status"], lit.told()["not_allowed"]) == (
        [],
        "connected",
        ["light"],
    )
    lit.start(server())
    assert lit.names() == ["home:light"]
    lit.start(server(url="https://elsewhere/mcp"))
    assert (lit.names(), lit.told()["status"]) == ([], "disconnected")
    await until(
        lambda: (
            lit.client.configured[-1]
            and lit.client.configured[-1][0].url == "https://elsewhere/mcp"
        )
    )
    lit.start()
    assert lit.desk.describe() == []


# ------------------------------------------------------------------ calls


@pytest.mark.requirement("S1-42")
async def test_a_call_goes_to_its_listed_server_and_a_stale_one_nowhere(lit):
    answer = await lit.call(input={"requestState": "s"})
    assert (answer.ok, answer.data, answer.meta["content"]) == (
        True,
        {"text": "on"},
        [{"type": "text", "text": "on"}],
    )
    ((server_id, tool, args, more),) = lit.client.calls
    assert (server_id, tool, args, more["input"], more["idempotent"]) == (
        "home",
        "light",
        {"on": True},
        {"requestState": "s"},
        False,
    )
    assert more["timeout_s"] < 30
    kept = lit.tool("home:light")
    await lit.hears(news(tools=("lamp",)), lambda: lit.names() == ["home:lamp"])

    async def quiet(_text):
        pass

    stale = await lit.desk.call(
        ToolCall(call_id="c", tool="home:light", args={}, origin=CallOrigin.CLI), kept, quiet
    )
    assert stale.error.code is ErrorCode.TOOL_NOT_FOUND
    assert len(lit.client.calls) == 1


async def test_a_call_that_is_given_up_is_called_off_at_the_server(lit):
    lit.client.hangs = True
    running = asyncio.ensure_future(lit.call())
    await until(lambda: lit.client.calls)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert lit.client.cancelled == ["c1"]


async def test_how_far_a_call_is_comes_through(lit):
    said = []

    async def progress(text):
        said.append(text)

    lit.client.progress = (ServerProgress("c1", 1, 3, "one"), ServerProgress("c1", 2, 3))
    lit.client.hangs = True
    running = asyncio.ensure_future(lit.call(progress=progress))
    await until(lambda: said and said[-1] == "2 of 3")
    running.cancel()
    await asyncio.wait({running})


async def test_a_secret_in_a_servers_answer_is_removed(place):
    one = server()
    place.start(Wanted(one, one, secrets=frozenset({"hush0451"})))
    await place.hears(news(), lambda: place.names() == ["home:light"])
    place.client.answer = Outcome(
        content=({"type": "text", "text": "key hush0451"},), structured={"k": ["hush0451"]}
    )
    assert "hush0451" not in json.dumps((await place.call()).to_json())
    place.client.answer = fault(CallFault.FAILED, "bad key hush0451")
    assert "hush0451" not in json.dumps((await place.call()).to_json())


async def test_a_secret_in_a_servers_description_is_removed(place):
    one, said = server(), []
    place.start(Wanted(one, one, secrets=frozenset({"hush0451"})))
    talk = ServerNews(
        server="home",
        status=Status.CONNECTED,
        title="hush0451",
        version="hush0451",
        notes=("tool hush0451 is left out",),
        tools=(
            UpstreamTool(
                name="light",
                description="with hush0451",
                title="hush0451",
                input_schema={"type": "object"},
            ),
        ),
    )
    await place.hears(talk, lambda: place.names() == ["home:light"])

    async def tell(text):
        said.append(text)

    place.client.progress, place.client.hangs = (
        [ServerProgress("c1", 1, message="key hush0451")],
        True,
    )
    calling = asyncio.ensure_future(place.call(progress=tell))
    await until(lambda: said)
    calling.cancel()
    await asyncio.wait({calling})
    described, tool = place.desk.describe(), place.tool("home:light")
    await place.hears(
        news(status=Status.DISCONNECTED, error="bad key hush0451"), lambda: place.told()["error"]
    )
    everything = json.dumps(
        [described, place.desk.describe(), said, tool.description, dict(tool.raw)], default=dict
    ) + repr(place.happened)
    assert "hush0451" not in everything
    assert "***" in everything


@pytest.mark.requirement("I6-hostile")
async def test_an_answer_that_we_stumble_over_ends_its_call_and_nothing_else(place):
    one = server()
    place.start(Wanted(one, one, secrets=frozenset({"hush0451"})))
    await place.hears(news(), lambda: place.names() == ["home:light"])
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}
    place.client.answer = Outcome(content=({"type": "text", "text": "deep"},), structured=deep)
    answer = await place.call()
    assert (answer.error.code, answer.error.partial_side_effects) == ("HANDLER_ERROR", True)
    place.client.answer = Outcome(content=({"type": "text", "text": "on"},))
    assert (await place.call()).ok


# ------------------------------------------------------------------ people


@pytest.mark.requirement("S1-35", "S1-38")
async def test_a_server_is_described_without_its_secrets(place):
    web = server(
        headers={"Authorization": "Bearer ${env.T}"},
        url="https://h/mcp?key=${env.T}",
        title="My home",
    )
    program = server(
        "files",
        url="",
        command="/usr/bin/files",
        args=("--key", "${env.K}", "/srv"),
        env={"TOKEN": "literal-0451"},
    )
    place.start(
        Wanted(web, server(headers={"Authorization": "Bearer hush"}, url="https://h/mcp?key=hush")),
        program,
    )
    told = json.dumps(place.desk.describe())
    assert "hush" not in told
    assert "literal-0451" not in told
    assert place.told()["config"] == {"url": "https://h/…", "headers": ["Authorization"]}
    assert place.told("files")["config"] == {
        "command": "/usr/bin/files",
        "args": ["--key", "***", "/srv"],
        "env": ["TOKEN"],
        "cwd": "",
    }
    assert "hush" not in repr(Wanted(web, server(url="https://hush")))


@pytest.mark.requirement("S1-32", "S1-34", "S1-36", "S1-48")
async def test_a_needed_sign_in_is_announced_once_until_it_is_done(lit):
    wants = news(status=Status.AUTHORIZING, error="authorisation required", authorize_url=URL)
    await lit.hears(wants, lambda: lit.signed_in)
    await lit.hears(news(status=Status.LOADING), lambda: lit.told()["status"] == "loading")
    await lit.hears(wants, lambda: lit.told()["status"] == "authorizing")
    assert lit.signed_in == [("home", "home", URL)]
    assert (lit.told()["authorize_url"], lit.away) == (URL, {})
    alarms = [one for one in lit.happened if isinstance(one, Alarmed)]
    assert [(one.alarm, one.over) for one in alarms] == [("server.home", False)]
    lit.client.answer = fault(CallFault.AUTH, "authorisation required", authorize_url=URL)
    answer = await lit.call()
    assert (answer.error.code, answer.error.details) == (ErrorCode.AUTH, {"authorizeUrl": URL})
    assert answer.to_json()["error"]["reauthRequired"] is True
    assert not await lit.desk.authorize("other", "c", "s")
    assert await lit.desk.authorize("home", "code", "state")
    assert lit.client.authorized == [("home", "code", "state")]
    assert [one.over for one in lit.happened if isinstance(one, Alarmed)] == [False, True]
    assert "authorize_url" not in lit.told()
    statuses = [one.status for one in lit.happened if isinstance(one, ServerChanged)]
    assert statuses == ["connected", "authorizing", "loading", "authorizing", "connected"]


@pytest.mark.requirement("S1-44")
async def test_a_fresh_look_brings_what_is_new(lit):
    assert await lit.desk.refresh("home")
    assert lit.names() == ["home:fresh", "home:light"] or lit.names() == [
        "home:light",
        "home:fresh",
    ]
    assert lit.client.refreshed == ["home"]
