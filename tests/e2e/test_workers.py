"""Workers as processes of their own on one broker, over one state directory: one is killed mid
call, one answer comes.
"""

import asyncio
import contextlib
import json
import signal
import sqlite3
import sys
import uuid
from collections import Counter

import httpx
import pytest

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.connection import BrokerOptions, MqttConnection
from edge.cloud.mqtt.wire import MessageKind
from tests.e2e.broker import HOST, mosquitto, serving, until
from tests.e2e.test_devcloud import BENCH_APP, FakeEdge

pytestmark = [pytest.mark.enable_socket, pytest.mark.mosquitto]
LONG_S = 40.0

WORKER = """
import asyncio, json, pathlib, sys
from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker.worker import WorkerLimits, run_worker
state, broker, apps = pathlib.Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
asyncio.run(run_worker(
    state_dir=state, broker=broker, announce=lambda facts: print(json.dumps(facts), flush=True), limits=WorkerLimits(look_s=0.1, poll_s=0.05),
    apps=[InstalledApp(a["package"], "T", tuple(a["tools"]), public_url=a.get("url", ""), command=tuple(a.get("command", ()))) for a in apps]))
"""  # noqa: E501


def tool(name, **more):
    return {
        "name": name,
        "description": "for tests",
        "inputSchema": {"type": "object", "properties": {}},
        **more,
    }


class HeldApp:
    """A mini-app that tells who asked for what, and answers when it is let."""

    def __init__(self):
        self.asked, self.open = [], asyncio.Event()

    async def serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        self.asked.append(json.loads(await reader.readexactly(length))["name"])
        await self.open.wait()
        body = json.dumps({"success": True, "content": f"answer {len(self.asked)}"}).encode()
        writer.write(
            (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n"
            )
            % len(body)
        )
        writer.write(body)
        await writer.drain()


class Crew:
    """The worker processes over one folder."""

    def __init__(self, folder, port):
        self.folder, self.broker, self.processes = folder, f"{HOST}:{port}", {}

    async def hire(self, *apps):
        """Start one more; gives its name when it takes calls."""
        facts = await self.start("-c", WORKER, str(self.folder), self.broker, json.dumps(apps))
        return facts["worker"]

    async def start(self, *words):
        """Start a Python program that announces itself; gives what it said."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE
        )
        self.processes[f"starting {process.pid}"] = process
        async with asyncio.timeout(LONG_S):
            facts = json.loads(await process.stdout.readline())
        self.processes[facts.get("worker", "cloud")] = self.processes.pop(f"starting {process.pid}")
        return facts

    async def glassd(self, *words):
        return await self.start(
            "-m",
            "edge.cli",
            "devcloud",
            "--broker",
            self.broker,
            "--state",
            str(self.folder),
            "--json",
            *words,
        )

    def look(self, question, *values):
        with contextlib.closing(sqlite3.connect(self.folder / "devcloud.db", timeout=10)) as db:
            found = db.execute(question, values).fetchone()
        return found[0] if found else None

    async def kill9(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        await self.processes[name].wait()

    async def dismiss(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def a_crew(tmp_path):
    with mosquitto(tmp_path) as broker:
        crew = Crew(tmp_path / "state", broker.port)
        try:
            async with MqttConnection(
                BrokerOptions(host=HOST, port=broker.port, client_id="edge-1", keepalive_s=5)
            ) as connection:
                edge = Asker(connection)
                await connection.subscribe(edge.topics.result)
                yield crew, edge
        finally:
            await crew.dismiss()


class Asker(FakeEdge):
    """An edge that counts the results of each call."""

    def __init__(self, connection):
        super().__init__(connection, "edge-1")
        self.results = Counter()

    async def result_of(self, call_id):
        async with asyncio.timeout(LONG_S):
            while True:
                inbound = await self.connection.receive()
                inbound.ack()
                message = wire.decode(
                    inbound.payload,
                    content_type=inbound.content_type,
                    correlation=inbound.correlation,
                    user_properties=inbound.user_properties,
                )
                self.results[message.id] += message.kind is MessageKind.RESULT
                if message.id == call_id and message.kind is MessageKind.RESULT:
                    return wire.response_of(message)

    async def ask(self, name):
        """As an edge asks: offered again, the same id, until somebody answers."""
        call_id = str(uuid.uuid4())

        async def offer():
            while True:
                await self.call(name, call_id=call_id, ttl_s=LONG_S)
                await asyncio.sleep(2)

        offering = asyncio.create_task(offer())
        try:
            return await self.result_of(call_id)
        finally:
            offering.cancel()
            await asyncio.wait({offering})


@pytest.mark.requirement("I5-cloud-workers")
@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_worker_is_killed_mid_call_and_exactly_one_answer_comes(tmp_path, repeatable):
    app = HeldApp()
    async with serving(app.serve) as port, a_crew(tmp_path) as (crew, edge):
        held = {
            "package": "com.test.held",
            "url": f"http://{HOST}:{port}",
            "tools": [tool("go", idempotent=repeatable), tool("bye")],
        }
        for _ in range(2):
            await crew.hire(held)
        call_id = await edge.call("com.test.held:go", ttl_s=LONG_S)
        await until(lambda: app.asked, deadline_s=LONG_S, what="the app is asked")
        owner = crew.look("SELECT owner FROM calls WHERE id = ?", call_id)
        await crew.kill9(owner)
        if repeatable:  # the survivor asks again, as that does no harm
            await until(lambda: len(app.asked) == 2, deadline_s=LONG_S, what="the survivor asks")
        app.open.set()
        response = await edge.result_of(call_id)
        if repeatable:
            assert response.data == "answer 2"
        else:
            assert (
                response.error.code,
                response.error.retryable,
                response.error.partial_side_effects,
            ) == ("INTERRUPTED", True, True)
        # Whatever the survivor said of the first call it said before it answers this one: there is
        # no second result.
        assert (await edge.ask("com.test.held:bye")).ok
        assert app.asked == ["go"] * (2 if repeatable else 1) + ["bye"]
        assert edge.results[call_id] == 1
        await until(
            lambda: crew.look("SELECT told FROM calls WHERE id = ?", call_id) == 1,
            what="the answer counts as told",
        )


@pytest.mark.requirement("I5-cloud-one-app")
async def test_workers_share_one_process_of_an_app_and_start_another_when_its_worker_died(tmp_path):
    script = tmp_path / "bench_app.py"
    script.write_text(BENCH_APP)
    bench = {
        "package": "com.test.bench",
        "command": [sys.executable, str(script)],
        "tools": [tool("bump")],
    }
    async with a_crew(tmp_path) as (crew, edge):
        for _ in range(2):
            await crew.hire(bench)
        answers = [await edge.ask("com.test.bench:bump") for _ in range(4)]
        assert [a.data["count"] for a in answers] == [1, 2, 3, 4]
        assert [a.meta["activatedForTool"] for a in answers] == [True, False, False, False]
        await crew.kill9(crew.look("SELECT worker FROM seats"))
        again = await edge.ask("com.test.bench:bump")
        assert (again.data["count"], again.meta["activatedForTool"]) == (1, True)


@pytest.mark.requirement("I5-cloud-workers")
async def test_a_worker_of_the_command_line_serves_on_when_the_cloud_it_stands_beside_is_killed(
    tmp_path,
):
    app = HeldApp()
    app.open.set()
    async with serving(app.serve) as port, a_crew(tmp_path) as (crew, edge):
        cloud = await crew.glassd("--http", f"{HOST}:0", "--legacy")
        await crew.glassd("--worker")
        async with httpx.AsyncClient(
            base_url=cloud["http"], trust_env=False, timeout=LONG_S
        ) as http:
            body = {"tools": [tool("go")], "publicUrl": f"http://{HOST}:{port}"}
            assert (await http.post("/api/apps/com.test.held/tools", json=body)).status_code == 201
            assert (await http.get("/api/tools/apps/com.test.held/tools")).json() == [
                {"id": "go", "description": "for tests"}
            ]
        await crew.kill9("cloud")
        assert (await edge.ask("com.test.held:go")).data == "answer 1"
