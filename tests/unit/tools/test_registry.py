"""The registry cache against a real HTTP server on a loopback port and real files."""

import asyncio
import contextlib
import json
import logging
import socket
from dataclasses import dataclass, field

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from edge.core.tools.registry_sync import SyncFailed, SyncPace
from edge.core.tools.user_tools import Own
from edge.ports import RegistryNotice
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, RegistrySynced, ToolsFiltered
from edge.tools import cloud_http
from edge.tools.registry import RegistrySettings, ToolRegistry
from edge.tools.registry_http import CloudRegistry
from firmware_bridge.capabilities import Capabilities, Origin
from tests.unit.tools.compiled import shipped as compiled
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry import reader
from tools_cache.registry.manifest import digest
from tools_cache.registry.models import MAX_BYTES, App
from tools_cache.registry.registry_store import RegistryStore

pytestmark = pytest.mark.enable_socket

BUILTIN = compiled()
LOCAL_TOOLS = sum(len(app["tools"]) for app in json.loads(BUILTIN)["apps"])
LENS = {
    "display": True,
    "display.bitmap": True,
    "display.brightness": True,
    "display.notifications": True,
    "display.dashboard": True,
    "microphone": True,
}
RARE = {
    "display.dashboard_content": True,
    "display.preferences": True,
    "display.restart": True,
    "display.navigation": True,
    "display.translation": True,
    "microphone.notes": True,
    "microphone.gain": True,
    "camera.gallery": True,
    "camera.record": True,
    "wifi.hotspot": True,
    "light": True,
    "light.brightness": True,
    "light.blink": True,
    "wifi": True,
    "wifi.setup": True,
    "imu": True,
    "haptic": True,
}
"""Parts that few glasses have, and for which there are tools."""
OF_A_CAMERA = {f"glasses:{tool}" for tool in ("take_photo", "gallery", "record_video", "end_video")}
TOKEN = "s3cret-token"


def app(package, *names, needs=(), **tool):
    tools = [
        {"name": n, "description": n, "inputSchema": {"type": "object"}, **tool} for n in names
    ]
    return {
        "packageName": package,
        "name": package,
        "hardwareRequirements": [{"type": t, "level": "REQUIRED"} for t in needs],
        "tools": tools,
    }


def document(*apps, version="v1", **head):
    return {"version": version, "sha256": digest(list(apps)), "apps": list(apps), **head}


@dataclass
class FakeCloud:
    """What a cloud serves, and what it was asked."""

    document: dict = field(default_factory=lambda: document(app("com.calc", "add")))
    tools: dict | None = None
    has_registry: bool = True
    etags: bool = True
    answer: Response | None = None
    requests: list = field(default_factory=list)
    url: str = ""
    redirect_to: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def etag(self):
        return f'"{self.document["sha256"][:16]}"'

    async def handle(self, request):
        self.requests.append((request.url.path, dict(request.headers)))
        self.asked.set()
        if self.redirect_to and request.url.path == "/api/registry":
            return Response(status_code=302, headers={"Location": self.redirect_to})
        if self.answer is not None:
            return self.answer
        if request.url.path == "/api/registry" and not self.has_registry:
            return Response(status_code=404)
        if request.url.path == "/api/tools":
            if self.tools is None:
                return Response(status_code=404)
            return Response(json.dumps(self.tools), headers={"ETag": '"t"'})
        if self.etags and request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304)
        return Response(
            json.dumps(self.document), headers={"ETag": self.etag} if self.etags else {}
        )


@pytest.fixture
async def cloud():
    fake = FakeCloud()
    web = Starlette(routes=[Route("/api/{rest}", fake.handle)])
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    fake.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(web, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    )
    server.install_signal_handlers = lambda: None
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server._serve([listener]))
        yield fake
        server.should_exit = True
    listener.close()


async def until(told, done, limit_s=40.0):
    """Wait for something to be true, looking whenever `told` is set."""
    async with asyncio.timeout(limit_s):
        while not done():
            told.clear()
            await told.wait()


class RecordingBus(Bus):
    """The bus, with everything that came over it."""

    def __init__(self):
        super().__init__()
        self.all = []
        self.told = asyncio.Event()

    def publish(self, happening):
        self.all.append(happening)
        self.told.set()
        super().publish(happening)


class Rig:
    """A cache on real files, and what it said."""

    def __init__(self, tmp_path, cloud=None, **options):
        builtin = tmp_path / "tool_registry.json"
        if not builtin.exists():
            builtin.write_text(BUILTIN)
        self.bus = RecordingBus()
        self.state = tmp_path / "registry"
        source = CloudRegistry(cloud.url, token=TOKEN, user_id="ada") if cloud else None
        self.cache = ToolRegistry(
            builtin=builtin,
            state=self.state,
            bus=self.bus,
            clock=Clock.system(),
            cloud=source,
            settings=RegistrySettings(
                options.pop("disabled", ()), refresh_s=options.pop("refresh_s", 60.0)
            ),
            **{"retry_s": (0.02, 0.1), **options},
        )
        self.cache.load()

    def happened(self, kind):
        return [h for h in self.bus.all if isinstance(h, kind)]

    async def until(self, done):
        await until(self.bus.told, done)

    def names(self):
        return {e.definition.name for e in self.cache.snapshot().entries()}


@contextlib.asynccontextmanager
async def running(rig):
    task = asyncio.ensure_future(rig.cache.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def glasses(**facts):
    return Capabilities.of("m", facts, origin=Origin.FIRMWARE, now=0.0)


# ------------------------------------------------------------------ without a cloud


async def test_without_any_cloud_the_built_in_tools_are_there_at_once(tmp_path):
    rig = Rig(tmp_path)
    assert len(rig.names()) == LOCAL_TOOLS
    described = rig.cache.describe()
    assert (described["origin"], described["age_s"], described["version"]) == (
        "local",
        None,
        json.loads(BUILTIN)["version"],
    )
    assert described["cloud"]["configured"] is False
    assert (
        rig.cache.snapshot().find("glasses:show_text").hidden
        == "needs a display or a speaker; no glasses are known yet"
    )
    async with running(rig):
        await rig.cache.notice(RegistryNotice("v", "a" * 64, "http://x"))
    with pytest.raises(SyncFailed, match="no cloud"):
        await rig.cache.sync()


@pytest.mark.parametrize("text", [None, "{", "{}"])
async def test_a_missing_or_broken_built_in_registry_is_an_alarm_with_its_cure(tmp_path, text):
    builtin = tmp_path / "tool_registry.json"
    builtin.write_text(text or "x")
    rig = Rig(tmp_path)
    if text is None:
        builtin.unlink()
        rig.cache.load()
    assert rig.names() == set()
    assert "glassd registry build" in rig.happened(Alarmed)[0].text
    rig.bus.all.clear()
    async with running(rig):
        await rig.until(lambda: rig.happened(Alarmed))  # said again: at `load()` nobody listens yet


# ------------------------------------------------------------------ arguments


async def test_defaults_are_filled_then_everything_is_checked(tmp_path):
    rig = Rig(tmp_path)
    search = rig.cache.snapshot().find("notes:search").definition
    assert rig.cache.check_args(search, {"query": "x"}) == ({"query": "x", "limit": 10}, [])
    filled, problems = rig.cache.check_args(search, {"limit": "3", "zz": 1})
    assert filled == {"limit": "3", "zz": 1}
    assert sorted(p["path"] for p in problems) == ["/limit", "root", "root"]


async def test_a_schema_that_does_not_compile_is_a_problem_not_a_crash(tmp_path):
    bad = ToolDefinition(
        name="a:b", description="", input_schema={"type": "strin"}, source=Source.CLOUD
    )
    args, problems = Rig(tmp_path).cache.check_args(bad, {"x": 1})
    assert args == {"x": 1}
    assert problems[0]["path"] == "root"


# ------------------------------------------------------------------ with a cloud


async def test_the_clouds_tools_join_the_local_ones(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    described = await rig.cache.sync()
    assert rig.names() > {"com.calc:add", "notes:add"}
    assert (described["origin"], described["cloud"]["version"], described["tools"]) == (
        "cloud",
        "v1",
        LOCAL_TOOLS + 1,
    )
    assert described["version"] not in ("v1", json.loads(BUILTIN)["version"])
    synced = rig.happened(RegistrySynced)[-1]
    assert (synced.origin, synced.version, synced.tools) == (
        "cloud",
        described["version"],
        LOCAL_TOOLS + 1,
    )


async def test_the_request_names_its_user_and_carries_the_token(tmp_path, cloud):
    await Rig(tmp_path, cloud).cache.sync()
    path, headers = cloud.requests[0]
    assert path == "/api/registry"
    assert (headers["authorization"], headers["x-user-id"], headers["accept-encoding"]) == (
        f"Bearer {TOKEN}",
        "ada",
        "identity",
    )
    assert TOKEN not in repr(CloudRegistry(cloud.url, token=TOKEN))


@pytest.mark.requirement("K5-etag")
async def test_an_unchanged_registry_is_asked_for_by_its_etag_and_refreshes_the_age(
    tmp_path, cloud
):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    before = rig.cache.snapshot()
    await rig.cache.sync()
    assert cloud.requests[1][1]["if-none-match"] == cloud.etag
    assert rig.cache.snapshot() is before
    assert rig.cache.describe()["age_s"] < 5


async def test_a_changed_registry_is_activated_and_an_old_snapshot_stays(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    held = rig.cache.snapshot()
    cloud.document = document(app("com.calc", "sub"), version="v2")
    await rig.cache.sync()
    assert rig.names() >= {"com.calc:sub"}
    assert "com.calc:add" not in rig.names()
    assert held.find("com.calc:add") is not None
    assert held.version != rig.cache.snapshot().version


@pytest.mark.requirement("K5-last-good")
async def test_a_restart_without_the_cloud_serves_the_last_good_copy_with_its_age(tmp_path, cloud):
    await Rig(tmp_path, cloud).cache.sync()
    cloud.answer = Response(status_code=503)
    rig = Rig(tmp_path, cloud)
    assert "com.calc:add" in rig.names()
    described = rig.cache.describe()
    assert described["origin"] == "disk"
    assert 0 <= described["age_s"] < 60
    with pytest.raises(SyncFailed) as failed:
        await rig.cache.sync()
    told = {key: rig.cache.describe()[key] for key in ("origin", "version", "age_s")}
    assert rig.cache.origin() == {**told, "error": str(failed.value)}
    assert "com.calc:add" in rig.names()
    cloud.answer = None
    await rig.cache.sync()
    assert cloud.requests[-1][1]["if-none-match"] == cloud.etag, "the stored ETag is used"
    assert rig.cache.describe()["origin"] == "cloud"


async def test_the_copy_of_another_cloud_is_not_offered(tmp_path, cloud):
    await Rig(tmp_path, cloud).cache.sync()
    assert "com.calc:add" not in Rig(tmp_path, FakeCloud(url="http://127.0.0.1:1")).names()
    assert "com.calc:add" not in Rig(tmp_path).names()


@pytest.mark.requirement("I4-enrol")
async def test_a_cloud_enrolled_with_while_we_run_is_followed_at_once(tmp_path, cloud):
    rig = Rig(tmp_path)
    async with running(rig):
        rig.cache.follow(CloudRegistry(cloud.url, token=TOKEN))
        await rig.until(lambda: "com.calc:add" in rig.names())
        rig.cache.follow(
            CloudRegistry(cloud.url, token="another")
        )  # the same cloud: its tools stay
        assert "com.calc:add" in rig.names()
        rig.cache.follow(CloudRegistry("http://127.0.0.1:1"))
        assert (rig.cache.describe()["origin"], rig.cache.describe()["age_s"]) == ("local", None)
        assert "com.calc:add" not in rig.names()


async def test_what_comes_late_from_a_cloud_that_was_left_is_not_taken(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)

    class Slow:
        url = cloud.url

        async def fetch(self, *args, **kwargs):
            found = await CloudRegistry(cloud.url, token=TOKEN).fetch(*args, **kwargs)
            rig.cache.follow(None)
            return found

    rig.cache.follow(Slow())
    with pytest.raises(SyncFailed, match="another cloud"):
        await rig.cache.sync()
    assert "com.calc:add" not in rig.names()


async def test_leaving_a_cloud_while_its_registry_is_stored_leaves_no_tools_and_no_age(
    tmp_path, cloud, monkeypatch
):
    rig = Rig(tmp_path, cloud)
    loop, save = asyncio.get_running_loop(), RegistryStore.save

    def left_meanwhile(self, generation):
        asyncio.run_coroutine_threadsafe(_leave(rig), loop).result()
        return save(self, generation)

    monkeypatch.setattr(RegistryStore, "save", left_meanwhile)
    with pytest.raises(SyncFailed, match="another cloud"):
        await rig.cache.sync()
    assert (
        rig.cache.describe()["origin"],
        rig.cache.describe()["age_s"],
        rig.names() & {"com.calc:add"},
    ) == ("local", None, set())


async def _leave(rig):
    rig.cache.follow(None)


async def test_who_waits_for_a_sync_finds_that_there_is_no_cloud_any_more(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    async with rig.cache._syncing:
        waiting = asyncio.ensure_future(rig.cache.sync())
        await asyncio.sleep(0)
        rig.cache.follow(None)
    with pytest.raises(SyncFailed, match="no cloud is configured"):
        await waiting


async def test_that_another_cloud_is_followed_is_no_failure(tmp_path, cloud, caplog):
    rig = Rig(tmp_path, cloud)

    class Slow:
        url = cloud.url

        async def fetch(self, *args, **kwargs):
            found = await CloudRegistry(cloud.url, token=TOKEN).fetch(*args, **kwargs)
            rig.cache.follow(
                CloudRegistry(cloud.url, token=TOKEN)
            )  # as a reload does that changes nothing of it
            return found

    rig.cache.follow(Slow())
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())
    assert rig.cache.describe()["cloud"]["error"] == ""
    assert not [r for r in caplog.records if "another cloud" in r.getMessage()]


async def test_a_damaged_newest_copy_falls_back_to_the_one_before_and_says_so(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    cloud.document = document(app("com.calc", "sub"), version="v2")
    await rig.cache.sync()
    (rig.state / "current.json").write_bytes(b"garbage")
    again = Rig(tmp_path, cloud)
    assert "com.calc:add" in again.names()
    (alarm,) = again.happened(Alarmed)
    assert "current.json" in alarm.text
    assert "the one before it serves" in alarm.text
    assert not alarm.over
    await again.cache.sync()
    assert "com.calc:sub" in again.names()
    assert [a.over for a in again.happened(Alarmed)] == [False, True]


async def test_a_damaged_copy_is_healed_even_when_the_cloud_has_nothing_new(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    (rig.state / "previous.json").write_bytes((rig.state / "current.json").read_bytes())
    (rig.state / "current.json").write_bytes(b"garbage")
    again = Rig(tmp_path, cloud)
    await again.cache.sync()
    assert [a.over for a in again.happened(Alarmed)] == [False, True]
    assert Rig(tmp_path, cloud).happened(Alarmed) == []


async def test_both_copies_damaged_leave_the_local_tools(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    cloud.document = document(app("com.calc", "sub"))
    await rig.cache.sync()
    for name in ("current.json", "previous.json"):
        (rig.state / name).write_bytes(b"garbage")
    again = Rig(tmp_path, cloud)
    assert len(again.names()) == LOCAL_TOOLS
    assert "only local tools" in again.happened(Alarmed)[0].text


BAD = {
    "a wrong hash": lambda c: setattr(c, "document", document(app("x", "y"), sha256="0" * 64)),
    "a wrong envelope": lambda c: setattr(
        c, "document", document(app("x", "y"), envelopeVersion="9.0.0")
    ),
    "not JSON": lambda c: setattr(c, "answer", Response(b"<html>")),
    "too large": lambda c: setattr(c, "answer", Response(b" " * (MAX_BYTES + 1))),
    "refused": lambda c: setattr(c, "answer", Response(status_code=401)),
    "broken": lambda c: setattr(c, "answer", Response(status_code=500)),
    "a redirect": lambda c: setattr(
        c, "answer", Response(status_code=302, headers={"Location": "http://127.0.0.1:1/"})
    ),
    "compressed": lambda c: setattr(
        c, "answer", Response(b"x", headers={"Content-Encoding": "gzip"})
    ),
    "no such path": lambda c: setattr(c, "has_registry", False),
    "a 304 nobody asked for": lambda c: (
        setattr(c, "etags", False),
        setattr(c, "answer", Response(status_code=304)),
    ),
    "an empty answer": lambda c: setattr(c, "answer", Response(b"")),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.requirement("K5-last-good")
async def test_the_last_good_registry_stays_when_the_cloud_serves(tmp_path, cloud, name):
    if name == "a 304 nobody asked for":
        cloud.etags = False
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    before = rig.cache.snapshot()
    stored = {p.name: p.read_bytes() for p in rig.state.iterdir()}
    BAD[name](cloud)
    with pytest.raises(SyncFailed):
        await rig.cache.sync()
    assert rig.cache.snapshot() is before
    assert {p.name: p.read_bytes() for p in rig.state.iterdir()} == stored
    told = rig.cache.describe()
    assert told["cloud"]["error"] in told["problem"]
    assert "the last good copy is used meanwhile" in told["problem"]


@pytest.mark.requirement("I11-registry-said")
async def test_a_wrong_hash_is_said_with_both_and_with_the_rule(tmp_path, cloud):
    right = document(app("x", "y"))
    cloud.document = {**right, "sha256": "0" * 64}
    rig = Rig(tmp_path, cloud)
    with pytest.raises(SyncFailed):
        await rig.cache.sync()
    told = rig.cache.describe()
    assert told["problem"] == (
        f"The cloud's registry cannot be used: its sha256 is {'0' * 64}, "
        f"but that of its apps is {right['sha256']} "
        "(SHA-256 over `apps` alone, as canonical JSON by RFC 8785); "
        "only the tools of this device are there meanwhile"
    )
    assert (
        told["cloud"]["hint"]
        == "Whoever runs the cloud has to correct it; then: glassd registry sync"
    )
    cloud.document = right
    await rig.cache.sync()
    assert rig.cache.describe()["problem"] == ""
    cloud.document = {**right, "sha256": "0" * 64}
    with pytest.raises(SyncFailed):
        await rig.cache.sync()
    rig.cache.follow(None)
    assert rig.cache.describe()["problem"] == "", "there is no cloud any more"


async def test_a_cloud_that_is_not_there_is_a_plain_failure(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        rig = Rig(tmp_path, FakeCloud(url=f"http://127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(SyncFailed, match="cannot be reached"):
            await rig.cache.sync()


async def test_a_cloud_that_never_answers_is_given_up(tmp_path):
    gone = asyncio.Event()

    async def hang(reader, writer):
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(SyncFailed, match="did not finish"):
        await CloudRegistry(url, limit_s=0.2).fetch(None, past_caches=False)
    async with asyncio.timeout(40):
        await gone.wait()
    server.close()
    await server.wait_closed()


async def test_a_cloud_that_falls_silent_is_told_from_a_slow_one(monkeypatch):
    monkeypatch.setattr(cloud_http, "STALL_S", 0.1)

    gone = asyncio.Event()

    async def begin(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        with contextlib.suppress(ConnectionError):
            while await reader.read(100):
                pass
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(SyncFailed, match=r"cannot be reached: nothing came for 0\.1 s"):
        await CloudRegistry(url).fetch(None, past_caches=False)
    async with asyncio.timeout(40):
        await gone.wait()
    server.close()
    await server.wait_closed()


async def test_a_redirect_is_not_followed_and_the_token_stays(tmp_path, cloud):
    cloud.redirect_to = f"{cloud.url}/api/elsewhere"
    with pytest.raises(SyncFailed, match="redirects"):
        await Rig(tmp_path, cloud).cache.sync()
    assert [path for path, _ in cloud.requests] == ["/api/registry"]


async def test_a_registry_of_unknown_length_is_cut_at_the_limit(tmp_path, cloud):
    async def too_much():
        for _ in range(4 * MAX_BYTES // 65536):
            yield b" " * 65536

    cloud.answer = StreamingResponse(too_much())
    with pytest.raises(
        SyncFailed, match="is larger than"
    ):  # read whole, it would be refused in other words
        await Rig(tmp_path, cloud).cache.sync()


@pytest.mark.requirement("I5-tools-only")
async def test_a_cloud_that_has_only_a_tool_list_will_do(tmp_path, cloud):
    cloud.has_registry = False
    cloud.tools = {
        "tools": [
            {"name": "com.calc:add", "description": "d", "inputSchema": {"type": "object"}},
            {"name": "nocolon", "description": "d", "inputSchema": {"type": "object"}},
        ]
    }
    rig = Rig(tmp_path, cloud)
    described = await rig.cache.sync()
    assert "com.calc:add" in rig.names()
    assert described["cloud"]["kind"] == "tools"
    assert any(line.startswith("nocolon: ") for line in described["dropped"])
    await rig.cache.sync()
    assert "if-none-match" not in cloud.requests[-2][1], (
        "the list's ETag says nothing about the registry"
    )
    assert cloud.requests[-1][1]["if-none-match"] == '"t"'
    assert "com.calc:add" in Rig(tmp_path, cloud).names()


@pytest.mark.requirement("M-one-bad-tool")
async def test_one_bad_tool_is_named_and_the_rest_serve(tmp_path, cloud):
    cloud.document = document(app("com.calc", "add", "a:b"), app("notes", "add"))
    rig = Rig(tmp_path, cloud)
    dropped = (await rig.cache.sync())["dropped"]
    assert "com.calc:add" in rig.names()
    assert any(line.startswith("com.calc:a:b: Tool name cannot contain") for line in dropped)
    assert any(line.startswith("notes:add: ") and "refused" in line for line in dropped)
    assert rig.cache.snapshot().find("notes:add").definition.source is Source.LOCAL
    assert rig.happened(RegistrySynced)[-1].dropped == tuple(dropped)


@pytest.mark.usefixtures("child_reads_registries")
async def test_a_tool_whose_schema_does_not_compile_is_hidden_with_the_reason_over_a_restart_too(
    tmp_path, cloud
):
    cloud.document = document(
        app("com.calc", "add"),
        app("com.bad", "x", inputSchema={"type": "object", "properties": {"a": {"type": "strin"}}}),
    )
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    for cache in (rig.cache, Rig(tmp_path, cloud).cache):
        assert "Invalid JSON Schema" in cache.snapshot().find("com.bad:x").hidden
        assert cache.snapshot().find("com.calc:add").hidden == ""


@pytest.mark.usefixtures("child_reads_registries")
async def test_when_schemas_cannot_be_checked_the_tools_serve_all_the_same(
    tmp_path, cloud, monkeypatch
):
    monkeypatch.setattr(reader.subprocess_call.sys, "executable", "/nonexistent/python")
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    assert rig.cache.snapshot().find("com.calc:add").hidden == ""


async def test_a_full_disk_loses_the_copy_not_the_registry(tmp_path, cloud, monkeypatch):
    rig = Rig(tmp_path, cloud)
    rig.state.write_text("a file where the directory should be")
    await rig.cache.sync()
    assert "com.calc:add" in rig.names()
    assert "cannot be stored" in rig.happened(Alarmed)[0].text
    rig.state.unlink()
    await rig.cache.sync()
    assert rig.happened(Alarmed)[-1].over
    assert (rig.state / "current.json").exists()


async def test_the_same_registry_is_not_written_again(tmp_path, cloud):
    cloud.etags = False
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    await rig.cache.sync()
    assert {p.name for p in rig.state.iterdir()} == {"current.json", "registry.index"}


# ------------------------------------------------------------------ glasses


async def test_other_glasses_change_what_is_in_force_and_the_bus_says_so(tmp_path, cloud):
    cloud.document = document(app("photo", "take", needs=["CAMERA"]))
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    find = lambda name: rig.cache.snapshot().find(name)  # noqa: E731 - read three times below
    assert find("photo:take").hidden == "needs a camera; no glasses are known yet"
    version = rig.cache.snapshot().version

    rig.cache.set_capabilities(glasses(camera=True, **LENS, **RARE), stale=False)
    assert (find("photo:take").hidden, find("glasses:show_text").hidden) == ("", "")
    assert find("glasses:say").hidden == "", "it shows what it cannot speak"
    assert rig.happened(RegistrySynced)[-1].compatible == LOCAL_TOOLS + 1  # and photo:take
    assert rig.cache.snapshot().version == version

    rig.cache.set_capabilities(glasses(camera=True, **LENS, **RARE), stale=True)
    assert (find("photo:take").hidden, find("photo:take").stale) == ("", True)

    rig.cache.set_capabilities(glasses(speaker=True), stale=False)
    assert find("photo:take").missing == ("CAMERA",)
    said = len(rig.happened(RegistrySynced))
    rig.cache.set_capabilities(glasses(speaker=True), stale=False)
    assert len(rig.happened(RegistrySynced)) == said, "nothing changed, nothing is said"


async def test_the_owner_can_switch_tools_off(tmp_path):
    rig = Rig(tmp_path, disabled=["notes:add", "timer:*"])
    off = {
        e.definition.name
        for e in rig.cache.snapshot().entries()
        if e.hidden == "disabled in the configuration"
    }
    assert off == {"notes:add", "timer:start", "timer:list", "timer:cancel"}


# ------------------------------------------------------------------ the service


async def test_the_service_syncs_at_start(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())


async def test_the_service_syncs_every_so_often(tmp_path, cloud):
    rig = Rig(tmp_path, cloud, refresh_s=0.02)
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())
        cloud.document = document(app("com.calc", "sub"))
        await rig.until(lambda: "com.calc:sub" in rig.names())


async def test_a_notice_fetches_at_once_past_any_cache(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())
        cloud.document = document(app("com.calc", "sub"))
        await rig.cache.notice(RegistryNotice("v2", cloud.document["sha256"].upper(), cloud.url))
        await rig.until(lambda: "com.calc:sub" in rig.names())
    assert "if-none-match" not in cloud.requests[-1][1]
    assert cloud.requests[-1][1]["cache-control"] == "no-cache"


@pytest.mark.requirement("I11-added-tool")
async def test_an_announced_registry_can_be_waited_for(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())
        cloud.document = document(app("com.calc", "sub"))
        await rig.cache.notice(RegistryNotice("v2", cloud.document["sha256"], cloud.url))
        assert "com.calc:sub" not in rig.names()
        await asyncio.wait_for(rig.cache.catch_up(), 30)
        assert "com.calc:sub" in rig.names()


async def test_without_an_announcement_there_is_nothing_to_wait_for(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    waiting = asyncio.ensure_future(rig.cache.catch_up())
    await asyncio.sleep(0)
    assert waiting.done()


async def test_a_fetch_that_fails_ends_the_wait_for_an_announced_registry(
    tmp_path, cloud, monkeypatch
):
    monkeypatch.setattr("edge.tools.registry.CATCH_UP_S", 3600.0)
    rig = Rig(tmp_path, cloud, retry_s=(3600.0, 3600.0))
    async with running(rig):
        await rig.until(lambda: "com.calc:add" in rig.names())
        cloud.answer = Response(status_code=500)
        await rig.cache.notice(RegistryNotice("v2", "f" * 64, cloud.url))
        await asyncio.wait_for(rig.cache.catch_up(), 30)


async def test_the_wait_for_an_announced_registry_has_an_end(tmp_path, cloud, monkeypatch):
    monkeypatch.setattr("edge.tools.registry.CATCH_UP_S", 0.05)
    rig = Rig(tmp_path, cloud)  # nothing runs that could fetch it
    await rig.cache.notice(RegistryNotice("v2", "f" * 64, cloud.url))
    await asyncio.wait_for(rig.cache.catch_up(), 30)


async def test_a_notice_of_what_we_have_fetches_nothing(tmp_path, cloud):
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    await rig.cache.notice(RegistryNotice("v1", cloud.document["sha256"], cloud.url))
    assert not rig.cache._wake.is_set()


class Log(logging.Handler):
    """The cache's log lines, and when there is one more."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.told = asyncio.Event()

    def emit(self, record):
        self.lines.append((record.levelno, record.getMessage()))
        self.told.set()


async def test_the_service_outlives_failures_and_tells_the_first_and_the_recovery(
    tmp_path, cloud, caplog
):
    cloud.answer = Response(status_code=500)
    rig, log = Rig(tmp_path, cloud), Log()
    caplog.set_level(logging.DEBUG, logger="edge.tools.registry")
    logging.getLogger("edge.tools.registry").addHandler(log)
    async with running(rig):
        await until(cloud.asked, lambda: len(cloud.requests) >= 4)
        cloud.answer = None
        await until(log.told, lambda: (logging.INFO, "registry: in sync again") in log.lines)
    logging.getLogger("edge.tools.registry").removeHandler(log)
    levels = [level for level, text in log.lines if "answered 500" in text]
    assert levels[0] == logging.WARNING
    assert set(levels[1:]) == {logging.DEBUG}
    assert "com.calc:add" in rig.names()


# ------------------------------------------------------------------ the pace


def test_failures_double_the_wait_up_to_a_cap_and_success_resets_it():
    pace = SyncPace(300.0, (1.0, 60.0), lambda: 1.0)
    assert [pace.failed(0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert pace.failed(120.0) == 120.0, "the cloud's own word counts"
    assert pace.succeeded("a") == pytest.approx(330.0)
    assert pace.failed(0) == 1
    assert SyncPace(300.0, (1.0, 60.0), lambda: 0.0).failed(0) == 0.5


def test_an_announced_registry_is_fetched_a_few_times_then_given_up():
    pace = SyncPace(300.0, (1.0, 60.0), lambda: 0.5)
    assert pace.announced("new")
    assert not pace.announced("new")
    waits = [pace.succeeded("old") for _ in range(3)]
    assert waits == [0.75, 1.5, 300.0]
    assert pace.wanted == ""
    assert pace.announced("new")
    assert (pace.succeeded("new"), pace.wanted) == (300.0, "")


@pytest.mark.requirement("S0-13")
async def test_which_apps_glasses_leave_out_is_said_once_a_change_with_what_they_lack(
    tmp_path, cloud, caplog
):
    cloud.document = document(
        app("photo", "take", "share", needs=["CAMERA", "LIGHT"]), app("calc", "add")
    )
    rig = Rig(tmp_path, cloud)
    with caplog.at_level(logging.DEBUG, logger="edge.tools.registry"):
        await rig.cache.sync()
        rig.cache.set_capabilities(glasses(**LENS, **RARE, speaker=True), stale=False)
        said = rig.happened(ToolsFiltered)
        assert said[-1] == ToolsFiltered({"photo": ("CAMERA",), "glasses": ("CAMERA",)}, 2)
        assert "Skipping tools from incompatible app photo: missing CAMERA" in caplog.text
        rig.cache.set_capabilities(glasses(**LENS, **RARE, speaker=True), stale=True)
        assert rig.happened(ToolsFiltered) == said, "the same apps for the same reason are no news"
        rig.cache.set_capabilities(glasses(**LENS, **RARE, speaker=True, camera=True), stale=False)
        assert rig.happened(ToolsFiltered)[-1] == ToolsFiltered({}, 0)


@pytest.mark.requirement("S0-13")
async def test_an_event_of_five_hundred_apps_names_fifty_and_counts_all(tmp_path, cloud):
    cloud.document = document(*(app(f"a{n}", "t", needs=["CAMERA"]) for n in range(120)))
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    rig.cache.set_capabilities(glasses(**LENS, speaker=True), stale=False)
    told = rig.happened(ToolsFiltered)[-1]
    assert (len(told.apps), told.count) == (50, 121)


@pytest.mark.requirement("S0-09")
async def test_a_tools_own_needs_count_only_where_that_is_switched_on(tmp_path, cloud, caplog):
    picky = {"_meta": {"io.glassd/hardware": [{"type": "CAMERA", "level": "REQUIRED"}]}}
    shown = app("photo", "plain", "picky")
    shown["tools"][1] |= picky
    cloud.document = document(shown)
    for on, hidden in ((False, set()), (True, {"photo:picky"})):
        (tmp_path / str(on)).mkdir()
        rig = Rig(tmp_path / str(on), cloud, per_tool_hardware=on)
        await rig.cache.sync()
        rig.cache.set_capabilities(glasses(**LENS, **RARE, speaker=True), stale=False)
        names = {e.definition.name for e in rig.cache.snapshot().entries() if e.hidden}
        assert names == hidden | OF_A_CAMERA
        assert ("hardware belongs to the app" in caplog.text) is not on
        caplog.clear()


@pytest.mark.requirement("S0-14")
async def test_an_app_without_tools_is_no_error(tmp_path, cloud):
    bare = app("bare")
    missing = {key: value for key, value in app("missing").items() if key != "tools"}
    cloud.document = document(bare, missing, {**app("nothing"), "tools": None}, app("calc", "add"))
    rig = Rig(tmp_path, cloud)
    await rig.cache.sync()
    assert {
        n for n in rig.names() if not n.startswith(("notes:", "glasses:", "clock:", "timer:"))
    } >= {"calc:add"}
    assert rig.cache.describe()["dropped"] == []


async def test_own_tools_that_are_withheld_later_are_hidden_at_once(tmp_path):
    rig = Rig(tmp_path)
    tool = ToolDefinition(
        name="my:own", description="d", input_schema={"type": "object"}, source=Source.LOCAL
    )
    own = Own(apps=(App(package="my", name="my", tools=(tool,)),))
    hidden = []
    for withheld in ({}, {"my:own": "no secret"}, {"my:own": "no key"}, {}):
        rig.cache.use_own(own, withheld)
        hidden.append(rig.cache.snapshot().find("my:own").hidden)
    assert hidden == ["", "no secret", "no key", ""]
