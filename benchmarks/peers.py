"""The way of a call through a peer: ThingsBoard's IoT gateway, beside glassd and beside a raw echo.

A cloud asks over one Mosquitto, with QoS 1 both ways, what time it is, and waits for the answer.
All ways take turns in one run, and each call comes at a moment that the edge cannot foresee. The
gateway gets a venv of its own and runs `benchmarks/peers_gateway.py`. It takes calls in two ways:
to a device behind it (`v1/gateway/rpc`), which its own thread looks for every 100 ms, and to a
connector (`v1/devices/me/rpc/request/N`), which it answers at once.

The two do not promise the same. A call waits in the gateway in memory alone: MQTT's
acknowledgement goes out when the call is in a queue of that process, nothing of it is on disk
before, during or after it, and the session at the broker ends with the connection. A gateway that
is killed has forgotten the call, nobody hears it, and a call sent again is done again; what comes
between its connection and the end of its start is acknowledged and dropped. glassd has committed
the call before it acknowledges it, and the answer before it publishes it: a killed one answers
after its next start, and does nothing twice. Killed 2 to 30 ms after a call, version 3.8.5 of the
gateway answered none of 5 after its next start, glassd 5 of 5. Each of the two commits waits for
the disk; they are in its times here.

The gateway's connection waits for the broker's TCP acknowledgement before it sends an answer (40 ms
on Linux), because nothing sets TCP_NODELAY. With it set by this benchmark, the gateway's times are
those of a call that nothing checks, stores or records.
"""

import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiomqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from benchmarks import broker, floor, paths, process
from benchmarks.peers_gateway import DEVICE, QOS
from benchmarks.table import Line, Lines, Note, Row, not_measured
from benchmarks.tools import CLOUD
from benchmarks.usage import DATABASE, commits
from benchmarks.wires import cloud

PEER = "thingsboard-gateway==3.8.5"
VENV = process.HERE / ".venv-thingsboard-gateway"
NAME = "ThingsBoard's gateway"
OURS = "glassd, cloud to edge to result"
THEIRS = {
    "device": f"{NAME}, to a device",
    "connector": f"{NAME}, to a connector",
    "at once": f"{NAME}, to a connector, TCP_NODELAY",
}
"""Way → what it is called."""
BLOCKS = 10
WARM_UP = 10
SETTLED_S = 0.3
PAUSE_S = 0.1
"""Most between two calls: as long as the gateway's thread sleeps, so that a call comes at any
moment of it.
"""
IDLE_S = 5.0
ANSWER_S = 30.0
AGAIN_S = 0.2
UP_S = 60.0
CONNECTOR_KIND = "bench"
GATEWAY = {
    "thingsboard": {
        "host": broker.HOST,
        "remoteShell": False,
        "remoteConfiguration": False,
        "statistics": {"enable": False, "enableCustom": False},
        "deviceFiltering": {"enable": False},
        "security": {"type": "accessToken", "accessToken": "bench"},
        "qos": QOS,
    },
    "storage": {"type": "memory", "read_records_count": 100, "max_records_count": 100000},
    "grpc": {"enabled": False},
    "connectors": [
        {
            "type": CONNECTOR_KIND,
            "name": "clock",
            "class": "Clock",
            "configuration": "clock.json",
        }
    ],
}
LOGS = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"level": "WARNING", "handlers": ["console"]},
}
PROMISE = "loses a call when it is killed; glassd commits it and its answer (2 waits for the disk)"


class Platform:
    """What a ThingsBoard server is for the gateway, as far as it is needed here."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client
        self._calls = 0
        self._waiting: dict[int, asyncio.Future[float]] = {}

    async def wait_until_it_answers(self) -> None:
        """Call until there is an answer: the gateway drops what comes before it has started, after
        it has said that its device is there.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                await self.call_connector(within=AGAIN_S)
                return

    async def call_device(self) -> float:
        """Return ms until the answer of the device."""
        self._calls += 1
        data = {"id": self._calls, "method": "now", "params": paths.READ_ARGS}
        return await self._ask("v1/gateway/rpc", {"device": DEVICE, "data": data})

    async def call_connector(self, *, within: float = ANSWER_S) -> float:
        """Return ms until the answer of the connector."""
        self._calls += 1
        body = {"method": f"{CONNECTOR_KIND}_now", "params": paths.READ_ARGS}
        return await self._ask(f"v1/devices/me/rpc/request/{self._calls}", body, within)

    async def send_at_once(self, *, at_once: bool) -> None:
        """Set TCP_NODELAY of the gateway's connection, which it does not set itself."""
        self._calls += 1
        params = {**paths.READ_ARGS, "send_at_once": at_once}
        body = {"method": f"{CONNECTOR_KIND}_set", "params": params}
        await self._ask(f"v1/devices/me/rpc/request/{self._calls}", body)

    async def _ask(self, topic: str, body: dict[str, Any], within: float = ANSWER_S) -> float:
        answered = asyncio.get_running_loop().create_future()
        self._waiting[self._calls] = answered
        payload = json.dumps(body)
        began = time.perf_counter()
        async with asyncio.timeout(within), asyncio.TaskGroup() as tasks:
            tasks.create_task(self._client.publish(topic, payload, qos=1))
            ended = await answered
        return float(ended - began) * 1e3

    async def listen(self) -> None:
        """Take what comes, until it is cancelled."""
        for topic in (
            "v1/gateway/rpc",
            "v1/devices/me/rpc/request/+",
            "v1/devices/me/rpc/response/+",
        ):
            await self._client.subscribe(topic, options=SubscribeOptions(qos=1, noLocal=True))
        async for message in self._client.messages:
            now = time.perf_counter()
            topic, body = message.topic.value, json.loads(bytes(message.payload))
            if topic == "v1/gateway/rpc":
                self._take(body["id"], body["data"], now)
            elif (number := topic.rpartition("/")[2]) and "/response/" in topic:
                self._take(int(number), body, now)
            elif body["method"] == "getSessionLimits":
                await self._client.publish(
                    f"v1/devices/me/rpc/response/{number}", json.dumps({"rateLimits": {}}), qos=1
                )

    def _take(self, number: int, answer: dict[str, Any], now: float) -> None:
        assert answer["timezone"] == paths.READ_ARGS["timezone"], answer
        answered = self._waiting.pop(number)
        if not answered.done():
            answered.set_result(now)


@dataclass
class Way:
    """One way of a call, and what was measured of it."""

    one: Callable[[], Awaitable[float]]
    pid: int = 0
    """Of the process whose CPU time counts."""
    at_once: bool = False
    """TCP_NODELAY is set for the gateway."""
    ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    seconds: float = 0.0

    def cpu_ms(self, idle: float) -> float:
        """Return what a call used beyond what its process uses in that time without calls: `idle`
        is CPU seconds a second.
        """
        return max(0.0, self.cpu_s - idle * self.seconds) / len(self.ms) * 1e3

    def at(self, percent: int) -> float:
        return statistics.quantiles(self.ms, n=100)[percent - 1]


class Edge(NamedTuple):
    """A running process."""

    pid: int
    up_ms: float
    """From its start until it answered a call."""
    up_cpu_ms: float
    """What it had used then."""

    @classmethod
    def that_answers(cls, pid: int, began: float) -> Self:
        """Return a process that answers a call at this moment."""
        return cls(pid, (time.perf_counter() - began) * 1e3, process.cpu_s(pid) * 1e3)


@dataclass
class Setting:
    """The two edges and the ways to them."""

    glassd: Edge
    gateway: Edge
    platform: Platform
    database: Path
    ways: dict[str, Way]


def measure(calls: int) -> Lines:
    """Yield glassd beside the peer, each pair of one run."""
    why = broker.why_not() or process.install_in_venv(PEER, VENV)
    if why:
        yield not_measured(f"{NAME}, the way of a call", why)
        return
    try:
        yield from asyncio.run(_measure(calls))
    except NotUpError as error:
        yield not_measured(f"{NAME}, the way of a call", str(error))


class NotUpError(Exception):
    """The gateway answers no call; the text is the end of its log."""


async def _measure(calls: int) -> list[Line]:
    async with _setting() as setting:
        committed = commits(setting.database)
        await _in_turns(setting, calls)
        made = len(setting.ways["glassd"].ms) + WARM_UP
        committed = commits(setting.database) - committed
        idle = await _idle(setting)
        lines: list[Line] = [*_times(setting.ways), *_costs(setting, idle)]
    lines.append(Row("  commits a call: glassd", committed / made, ""))
    lines.append(Note(f"{NAME} {PROMISE}"))
    return lines


def _times(ways: dict[str, Way]) -> Iterator[Row]:
    def row(what: str, way: str, name: str, base: str, percent: int) -> Row:
        value, of = ways[way].at(percent), ways[base].at(percent)
        return Row(f"{what}, p{percent}", value, "ms", f"{name}, p{percent}", of)

    for percent in (50, 95):
        for way, what in (*THEIRS.items(), ("glassd", OURS)):
            yield row(what, way, "a raw echo", "echo", percent)
        yield row(OURS, "glassd", "an echo after 2 commits", "echo 2", percent)
        for way, what in THEIRS.items():
            yield row(OURS, "glassd", what, way, percent)


def _costs(setting: Setting, idle: dict[str, float]) -> Iterator[Row]:
    """Yield what a call costs beyond idling, and what the processes are."""
    ours, theirs = setting.glassd, setting.gateway

    used = setting.ways["glassd"].cpu_ms(idle["glassd"])
    for way, base in THEIRS.items():
        base_used = setting.ways[way].cpu_ms(idle["gateway"])
        yield Row("  glassd, CPU a call beyond idling", used, "ms", base, base_used)
    used, base_used = idle["glassd"] * 100, idle["gateway"] * 100
    yield Row(f"  glassd, idle CPU of one core, {IDLE_S:.0f} s", used, "%", NAME, base_used)
    rss, base_rss = process.rss_mib(ours.pid), process.rss_mib(theirs.pid)
    yield Row("  glassd, RSS after the calls", rss, "MiB", NAME, base_rss)
    what = "  glassd, from its start until it answers"
    yield Row(what, ours.up_ms, "ms", NAME, theirs.up_ms)
    yield Row(f"{what}, CPU", ours.up_cpu_ms, "ms", NAME, theirs.up_cpu_ms)


async def _in_turns(setting: Setting, calls: int) -> None:
    pause, ways = random.Random(1), setting.ways.values()
    for way in ways:
        for _ in range(WARM_UP):
            await way.one()
    for _ in range(BLOCKS):
        for way in ways:
            await setting.platform.send_at_once(at_once=way.at_once)
            await asyncio.sleep(SETTLED_S)
            began, used = time.monotonic(), process.cpu_s(way.pid) if way.pid else 0.0
            for _ in range(max(1, calls // BLOCKS)):
                await asyncio.sleep(pause.uniform(0, PAUSE_S))
                way.ms.append(await way.one())
            await asyncio.sleep(SETTLED_S)
            way.seconds += time.monotonic() - began
            way.cpu_s += process.cpu_s(way.pid) - used if way.pid else 0.0


async def _idle(setting: Setting) -> dict[str, float]:
    """Return the CPU seconds that each edge uses in a second without calls."""
    pids = {"glassd": setting.glassd.pid, "gateway": setting.gateway.pid}
    before = {name: process.cpu_s(pid) for name, pid in pids.items()}
    await asyncio.sleep(IDLE_S)
    return {name: (process.cpu_s(pid) - before[name]) / IDLE_S for name, pid in pids.items()}


# ------------------------------------------------------------------ the processes


@asynccontextmanager
async def _setting() -> AsyncIterator[Setting]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glassd-")))
        port = stack.enter_context(broker.mosquitto(folder))
        stack.enter_context(process.floor(port, folder))
        side = await stack.enter_async_context(cloud(port))
        platform = await stack.enter_async_context(_platform(port))
        settings = {"port": port, "cloud": CLOUD, "limit": paths.LIMIT, "remote": paths.REMOTE}
        config = paths.CONFIG.format(**settings).replace("inproc", "bluez")
        began = time.perf_counter()
        pid, _, _ = await asyncio.to_thread(stack.enter_context, process.daemon(folder, config))
        async with asyncio.timeout(UP_S):
            await side.online.wait()
        await side.invoke(paths.READ, paths.READ_ARGS)
        glassd = Edge.that_answers(pid, began)
        began = time.perf_counter()
        pid = stack.enter_context(_gateway(folder / "gateway", port))
        try:
            async with asyncio.timeout(UP_S):
                await platform.wait_until_it_answers()
        except TimeoutError:
            log = (folder / "gateway" / "log").read_text(errors="replace")[-500:]
            raise NotUpError(f"it answers no call: {log}") from None
        gateway = Edge.that_answers(pid, began)

        async def echo(commits: int) -> float:
            return (await side.echo(commits))[""]

        async def invoke() -> float:
            return (await side.invoke(paths.READ, paths.READ_ARGS))[""]

        ways = {
            "echo": Way(partial(echo, 0)),
            "echo 2": Way(partial(echo, 2)),
            "glassd": Way(invoke, glassd.pid),
            "device": Way(platform.call_device, gateway.pid),
            "connector": Way(platform.call_connector, gateway.pid),
            "at once": Way(platform.call_connector, gateway.pid, at_once=True),
        }
        yield Setting(glassd, gateway, platform, folder / "state" / DATABASE, ways)


@asynccontextmanager
async def _platform(port: int) -> AsyncIterator[Platform]:
    async with floor.client("bench-platform", port) as client:
        platform = Platform(client)
        listening = asyncio.ensure_future(platform.listen())
        try:
            yield platform
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening


@contextmanager
def _gateway(folder: Path, port: int) -> Iterator[int]:
    """Run the gateway until the block ends; yields its pid."""
    folder.mkdir()
    config = {**GATEWAY, "thingsboard": {**GATEWAY["thingsboard"], "port": port}}
    for name, content in (("tb_gateway", config), ("clock", {"id": "clock"}), ("logs", LOGS)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    script = str(process.HERE / "benchmarks" / "peers_gateway.py")
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(
            [str(VENV / "bin" / "python"), "-I", script, str(folder)],
            cwd=folder,
            env=process.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield child.pid
    finally:
        child.kill()  # it catches no SIGTERM
        child.wait(10)
