"""Which other servers a daemon has, with their secrets in; and whose tool a call goes to."""

import json
from types import SimpleNamespace

import pytest

from edge.config.model import McpConfig, McpServerConfig, PolicyConfig, Settings
from edge.control.dependencies import NoServer
from edge.core import idempotency
from edge.core.routing import RouteKind, kind_of
from edge.core.tools.user_tools import Own, ServerDefinition
from edge.daemon.mcp_servers import McpServers, joined
from edge.runtime.clock import Clock
from tools_cache.api.tool import CallOrigin, Source, ToolCall, ToolDefinition, ToolResponse
from tools_cache.frozen import FrozenDict

URL = "https://h/mcp"


def settings(*servers, **more):
    return Settings(
        mcp=McpConfig(
            servers=tuple(
                McpServerConfig(**{"url": URL, "allowed_tools": ("*",), **server})
                for server in servers
            )
        ),
        **more,
    )


class House:
    """The roof's part, with a registry that keeps what it is told."""

    def __init__(self, folder):
        self.apps, self.away, self.entries, self.hidden, self.ran = (), {}, {}, [], []
        registry = SimpleNamespace(
            use_upstream=self._use, snapshot=lambda: SimpleNamespace(find=self.entries.get)
        )

        async def present(*_told):
            return None

        self.servers = McpServers(
            registry,
            state=folder,
            env={},
            bus=SimpleNamespace(publish=lambda _h: None),
            clock=Clock.system(),
            hide=self.hidden.append,
            present=present,
            draw=present,
            ask=None,
            ready=lambda: False,
        )

    def _use(self, apps, away, _digest):
        self.apps, self.away = apps, away
        return ()

    def use(self, settings, own=None, **secrets):
        return self.servers.use(own or Own(), settings, secrets.get)

    def told(self, name):
        return next(one for one in self.servers.describe() if one["id"] == name)

    async def run(self, call):
        """As the pipeline does: whose tool it is, the registry says."""
        tool = self.entries[call.tool].definition
        backends = {RouteKind.UPSTREAM: self.servers.call, RouteKind.GLASSES: self._here}
        return await backends[kind_of(tool)](call, tool, quiet)

    async def _here(self, call, _tool, _progress):
        self.ran.append(call.tool)
        return ToolResponse(data="here")


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def definition(name, source):
    return ToolDefinition(name=name, description="", input_schema={"type": "object"}, source=source)


async def quiet(_text):
    pass


@pytest.mark.requirement("C-17", "S3-36")
async def test_a_call_of_a_built_in_tool_never_goes_to_a_server_that_took_its_name(house):
    """The registry says whose a tool is; what a server calls its own does not."""
    house.use(settings({"id": "glasses"}))
    house.servers._manager._origins["glasses:show_text"] = (
        "glasses",
        "show_text",
    )  # as its list would have it
    house.entries["glasses:show_text"] = SimpleNamespace(
        definition=definition("glasses:show_text", Source.GLASSES)
    )
    call = ToolCall(call_id="c", tool="glasses:show_text", args={}, origin=CallOrigin.CLI)
    assert (await house.run(call)).data == "here"
    assert house.ran == ["glasses:show_text"]


@pytest.mark.requirement("S1-42")
async def test_a_tool_whose_server_is_gone_is_found_nowhere(house):
    house.use(settings({"id": "home"}))
    house.entries["home:x"] = SimpleNamespace(definition=definition("home:x", Source.UPSTREAM))
    call = ToolCall(call_id="c", tool="home:x", args={}, origin=CallOrigin.CLI)
    assert (await house.run(call)).error.code == "TOOL_NOT_FOUND"


@pytest.mark.requirement("S1-39", "S1-49")
def test_what_is_switched_off_is_not_asked_and_says_by_whom(house):
    house.use(settings({"id": "a", "enabled": False}))
    assert house.servers._manager is None  # nothing is loaded for it
    assert house.told("a")["error"] == "switched off (enabled = false)"
    house.use(settings({"id": "a"}, {"id": "b"}, policy=PolicyConfig(tools_enabled=False)))
    assert house.servers._manager is None
    assert house.told("b")["error"] == "all tools are switched off (policy.tools_enabled)"


def test_a_secret_comes_from_its_file_else_from_where_all_do_and_stays_out_of_the_log(
    house, tmp_path
):
    (tmp_path / "token").write_text("hush-file\n")
    one = {
        "id": "a",
        "headers": {"Authorization": "Bearer ${env.T} ${env.U}"},
        "secret_files": {"T": str(tmp_path / "token")},
    }
    house.use(settings(one), T="not-this", U="hush-env")
    ready = house.servers._manager._known["a"].wanted.ready
    assert ready.headers == {"Authorization": "Bearer hush-file hush-env"}
    assert set(house.hidden) == {"hush-file", "hush-env"}
    assert "hush" not in json.dumps(house.servers.describe())
    house.use(settings(one))
    assert "${env.U} is not set" in house.told("a")["error"]
    house.use(settings({**one, "secret_files": {"T": str(tmp_path / "gone")}}), U="x")
    assert "cannot be read" in house.told("a")["error"]


def test_of_two_servers_of_one_name_the_configuration_stands(house):
    own = Own(
        servers=(
            ServerDefinition(name="a", url="https://other"),
            ServerDefinition(name="b", url=URL),
        )
    )
    servers, taken = joined(settings({"id": "a"}), own)
    assert [(one.name, one.url) for one in servers] == [("a", URL), ("b", URL)]
    assert [one.name for one in taken] == ["a"]


def test_there_may_be_as_many_servers_as_one_child_can_hold_wherever_they_are_written_down():
    own = Own(servers=tuple(ServerDefinition(name=f"s{n:02}", url=URL) for n in range(40)))
    servers, crowd = joined(settings({"id": "a"}), own)
    assert len(servers) == 32
    assert ([one.name for one in crowd], crowd[0].reason) == (
        [f"s{n}" for n in range(31, 40)],
        "there are 32 servers already",
    )


async def test_who_is_not_there_is_said(house):
    with pytest.raises(NoServer, match="there is no server x"):
        await house.servers.refresh("x")
    house.use(settings({"id": "a", "enabled": False}))
    with pytest.raises(NoServer, match="a is not asked: switched off"):
        await house.servers.refresh("a")
    house.use(settings({"id": "a"}))
    with pytest.raises(NoServer, match="a needs no sign-in now"):
        await house.servers.authorize("a", "c", "s", None)


def test_a_daemon_without_servers_has_none_of_this(house):
    house.use(Settings())
    assert (house.servers._manager, house.servers.describe()) == (None, [])


def test_the_same_call_with_what_its_tool_asked_for_is_another_one():
    call = ToolCall(
        call_id="c", tool="a:b", args={}, origin=CallOrigin.MCP, idempotency_key="k", turn_id="t"
    )
    brought = ToolCall(
        call_id="d",
        tool="a:b",
        args={},
        origin=CallOrigin.MCP,
        idempotency_key="k",
        turn_id="t",
        input={"requestState": "s"},
    )
    first, second = idempotency.keys_of(call, "e"), idempotency.keys_of(brought, "e")
    assert len(first) == len(second) == 2
    assert not set(first) & set(second)
    assert second == idempotency.keys_of(brought, "e")


def test_a_configured_server_keeps_all_its_settings():
    given = McpServerConfig(
        id="a",
        name="A",
        url="https://a",
        headers={"X": "1"},
        allowed_tools=("t",),
        confirm="always",
    )
    ((server,), _) = joined(Settings(mcp=McpConfig(servers=(given,))), Own())
    assert server == ServerDefinition(
        name="a",
        title="A",
        url="https://a",
        headers={"X": "1"},
        allowed_tools=frozenset({"t"}),
        visible=False,
        confirm="always",
    )
    assert isinstance(server.headers, FrozenDict)
