"""The whole way of a call, as its caller waits for it, beside what the same messages, requests and
commits take alone.

The daemon is a process of its own, so is the floor (`benchmarks/floor.py`), and the broker is
Mosquitto. All ways take turns in one run.
"""

import asyncio
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import broker, floor, process
from benchmarks.table import Lines, Row, not_measured
from benchmarks.tools import CLOUD, document
from benchmarks.usage import Usage
from benchmarks.wires import Cloud, HttpClient, cloud
from tools_cache.registry.registry_store import Generation, RegistryStore

BLOCKS = 10
WARM_UP = 20
SETTLED_S = 0.3
"""After a block of calls: what they left to do is done, committed and counted."""
CALLERS, ROUNDS = 40, 7
READ, READ_ARGS = "clock:now", {"timezone": "Europe/Berlin"}
WRITE, WRITE_ARGS = "notes:add", {"text": "Buy two litres of milk and call the dentist"}
REMOTE, REMOTE_ARGS = "com.example.app000:look_00", {"query": "milk"}
CONFIG = """\
version = 1
[edge]
id = "bench"
[glasses]
radio = "inproc"
[uplink]
host = "127.0.0.1"
port = {port}
tls = false
[cloud]
url = "{cloud}"
[policy]
cloud_may = ["clock:now"]
rate_limits = {{ "clock:now" = {limit}, "notes:add" = {limit}, "{remote}" = {limit} }}
[control]
group = ""
"""
LIMIT = "{ calls = 100000, window = 60 }"

Taken = dict[str, float]
"""Name of a moment → ms until then; "" is the end."""


@dataclass
class Way:
    """One way of a call, and what was measured of it."""

    one: Callable[[], Awaitable[Taken]]
    usage: Usage | None = None
    """Of the daemon, where the way leads through it."""
    taken: dict[str, list[float]] = field(default_factory=dict)

    def ms(self, moment: str = "") -> float:
        """Return the median until a moment."""
        return statistics.median(self.taken[moment])


@dataclass(frozen=True)
class Setting:
    """What the ways lead through."""

    daemon: HttpClient
    floor: HttpClient
    cloud: Cloud
    control: Path
    pid: int
    state: Path

    def usage(self) -> Usage:
        return Usage(self.pid, self.state)


def measure(calls: int) -> Lines:
    """Yield every way beside its floor."""
    if why := broker.why_not():
        yield not_measured("the whole way of a call", why)
        return
    yield from asyncio.run(_measure(calls))


async def _measure(calls: int) -> list[Row]:
    async with _setting() as setting:
        ways = _ways(setting)
        await in_turns(ways, calls)
        rows = list(_rows(ways))
        rows += await _many_at_once(setting)
    return rows


def _ways(s: Setting) -> dict[str, Way]:
    return {
        "echo": Way(lambda: s.cloud.echo(0)),
        "echo 1": Way(lambda: s.cloud.echo(1)),
        "echo 2": Way(lambda: s.cloud.echo(2)),
        "invoke": Way(lambda: s.cloud.invoke(READ, READ_ARGS), s.usage()),
        "remote": Way(lambda: _remote(s), s.usage()),
        "publish 1": Way(lambda: _published(s, 1)),
        "publish 2": Way(lambda: _published(s, 2)),
        "post": Way(lambda: _posted(s, 0)),
        "post 1": Way(lambda: _posted(s, 1)),
        "read": Way(lambda: _local(s.daemon, READ, READ_ARGS), s.usage()),
        "write": Way(lambda: _local(s.daemon, WRITE, WRITE_ARGS), s.usage()),
    }


def _rows(ways: dict[str, Way]) -> Iterator[Row]:
    echo = ways["echo"].ms()

    def row(what: str, way: str, baseline: str, base: float, moment: str = "") -> Row:
        return Row(what, ways[way].ms(moment), "ms", baseline, base)

    def used(what: str, way: str) -> Lines:
        usage = ways[way].usage
        assert usage is not None
        return usage.rows(what)

    yield row("a raw echo over Mosquitto", "echo", "itself", echo)
    yield row("an echo after 1 commit", "echo 1", "a raw echo", echo)
    yield row("an echo after 2 commits", "echo 2", "a raw echo", echo)
    yield row("cloud to edge tool to result", "invoke", "a raw echo", echo)
    yield row("its `accepted`", "invoke", "a raw echo", echo, "accepted")
    yield from used("cloud to edge", "invoke")
    yield row("control API to cloud worker to answer", "remote", "a raw echo", echo)
    yield from used("edge to cloud", "remote")
    base = ways["publish 2"].ms("heard")
    floor_ = "POST, 2 commits, publish"
    yield row("POST, 1 commit, publish, until heard", "publish 1", floor_, base, "heard")
    yield row("control API request to publish heard", "remote", floor_, base, "published")
    post = ways["post"].ms()
    yield row("POST, 1 commit, answer", "post 1", "an h11 POST", post)
    yield row("local read over the control API", "read", "an h11 POST", post)
    yield from used("local read", "read")
    yield row("local write over the control API", "write", "an h11 POST", post)
    yield from used("local write", "write")


async def in_turns(ways: dict[str, Way], calls: int) -> None:
    """Measure so many calls of each way, in blocks that take turns."""
    for way in ways.values():
        for _ in range(WARM_UP):
            await way.one()
    each = max(1, calls // BLOCKS)
    for _ in range(BLOCKS):
        for way in ways.values():
            await asyncio.sleep(SETTLED_S)
            with way.usage.of(each) if way.usage else nullcontext():
                for _ in range(each):
                    for moment, ms in (await way.one()).items():
                        way.taken.setdefault(moment, []).append(ms)
                await asyncio.sleep(SETTLED_S)


# ------------------------------------------------------------------ the ways


async def _local(client: HttpClient, tool: str, args: dict[str, Any]) -> Taken:
    began = time.perf_counter()
    answer = await client.call(tool, args)
    took = (time.perf_counter() - began) * 1e3
    assert answer["ok"], answer
    return {"": took}


async def _remote(s: Setting) -> Taken:
    call = uuid.uuid4()
    published = s.cloud.seen("call", call.bytes)
    began = time.perf_counter()
    answer = await s.daemon.call(REMOTE, REMOTE_ARGS, call_id=str(call))
    took = (time.perf_counter() - began) * 1e3
    assert answer["ok"], answer
    return {"published": (await published - began) * 1e3, "": took}


async def _published(s: Setting, commits: int) -> Taken:
    heard = s.cloud.seen("heard")
    began = time.perf_counter()
    await s.floor.ask("POST", f"/publish/{commits}", floor.REPLY.encode())
    return {"heard": (await heard - began) * 1e3}


async def _posted(s: Setting, commits: int) -> Taken:
    body = json.dumps({"tool": READ, "args": READ_ARGS}).encode()
    began = time.perf_counter()
    await s.floor.ask("POST", f"/{commits}", body)
    return {"": (time.perf_counter() - began) * 1e3}


async def _many_at_once(s: Setting) -> list[Row]:
    """Callers who each wait for their answer before they call again; refused calls are not made
    again. The floor: as many who wait for an echo.
    """
    clients = [await HttpClient.connect(s.control) for _ in range(CALLERS)]
    refused = 0

    async def calls(client: HttpClient) -> None:
        nonlocal refused
        for _ in range(ROUNDS):
            refused += not (await client.call(REMOTE, REMOTE_ARGS)).get("ok")

    async def echoes(_: HttpClient) -> None:
        for _ in range(ROUNDS):
            await s.cloud.echo(0)

    async def took(callers: Callable[[HttpClient], Awaitable[None]]) -> float:
        began = time.perf_counter()
        await asyncio.gather(*map(callers, clients))
        return time.perf_counter() - began

    asked, usage = CALLERS * ROUNDS, s.usage()
    bare_s = await took(echoes)
    with usage.of(asked):
        calls_s = await took(calls)
        await asyncio.sleep(5 * SETTLED_S)
    for client in clients:
        client.close()
    what, base = f"{CALLERS} callers at once, to the cloud", "raw echoes"
    answered = (asked - refused) / calls_s
    return [
        Row(f"{what}, answered", answered, "/s", base, asked / bare_s),
        Row(f"{what}, refused of {asked}", refused, ""),
        *usage.rows(what),
    ]


# ------------------------------------------------------------------ the processes


@asynccontextmanager
async def _setting() -> AsyncIterator[Setting]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glassd-")))
        port = stack.enter_context(broker.mosquitto(folder))
        floor_socket = stack.enter_context(process.floor(port, folder))
        RegistryStore(folder / "state" / "registry").save(Generation(document(1, 10), CLOUD))
        config = CONFIG.format(port=port, cloud=CLOUD, limit=LIMIT, remote=REMOTE)
        side = await stack.enter_async_context(cloud(port))
        pid, _, _ = stack.enter_context(process.daemon(folder, config))
        async with asyncio.timeout(20):
            await side.online.wait()
        control = folder / "glassd" / "control.sock"
        daemon = await HttpClient.connect(control)
        bare = await HttpClient.connect(floor_socket)
        stack.callback(daemon.close)
        stack.callback(bare.close)
        yield Setting(daemon, bare, side, control, pid, folder / "state")
