"""The floors of a call's way: the same messages, requests and commits with nothing between them.

`python -m benchmarks.floor PORT SOCKET FOLDER`: over the broker at PORT it answers each message on
`floor/N/ask` after N commits; over the unix socket each POST to `/N` after N commits, to
`/publish/N` after a message too. It also is the cloud's worker, which answers each call at once and
stores nothing. PORT 0: there is no broker.
"""

import asyncio
import json
import logging
import socket
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import aiomqtt
import h11
import msgpack
import uvloop
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from benchmarks.broker import HOST

EDGE = "glassd/v1/default/e/bench"
HEARD = "floor/heard"
MSGPACK = "application/vnd.glassd.v1+msgpack"
ANSWER = {"text": "It is 09:41.", "iso": "2026-11-21T09:41:00+00:00", "timezone": "Europe/Berlin"}
REPLY = json.dumps({"ok": True, "data": ANSWER, "meta": {"tool": "clock:now", "duration": 1}})
ROW = "x" * 600
"""About what a stored call takes."""
READ = 65536
_log = logging.getLogger("benchmarks.mqtt")
_log.setLevel(logging.ERROR)  # that many messages wait for their PUBACK is what is wanted here

Commit = Callable[[int], Awaitable[None]]
"""Commits so many rows, one after the other."""


def client(name: str, port: int) -> aiomqtt.Client:
    """Return an MQTT 5 client that sends at once; not connected yet."""
    return aiomqtt.Client(
        HOST,
        port,
        identifier=name,
        protocol=aiomqtt.ProtocolVersion.V5,
        max_inflight_messages=256,
        max_concurrent_outgoing_calls=1000,
        logger=_log,
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )


def properties(kind: str, correlation: bytes, *, answers_to: str = "") -> Properties:
    """Return what a message about a call has beside its body."""
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    made.ContentType = MSGPACK
    made.CorrelationData = correlation
    made.MessageExpiryInterval = 40
    made.UserProperty = [("k", kind)]
    if answers_to:
        made.ResponseTopic = answers_to
    return made


async def serve(port: int, path: str, folder: Path) -> None:
    """Run until this process is ended."""
    loop, disk = asyncio.get_running_loop(), ThreadPoolExecutor(1)
    insert = await loop.run_in_executor(disk, _opened, folder / "floor.db")

    async def commit(times: int) -> None:
        for _ in range(times):
            await loop.run_in_executor(disk, insert)

    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(client("bench-floor", port)) if port else None
        if broker is not None:
            await broker.subscribe("floor/+/ask", qos=1)
            await broker.subscribe(f"{EDGE}/call/tools", qos=1)
        await asyncio.start_unix_server(partial(_talk, broker, commit), path)
        print(json.dumps({"ready": True}), flush=True)
        if broker is None:
            await asyncio.Event().wait()
        else:
            await _answer_all(broker, commit)


async def _answer_all(broker: aiomqtt.Client, commit: Commit) -> None:
    async with asyncio.TaskGroup() as tasks:
        async for message in broker.messages:
            tasks.create_task(_answer(broker, commit, message))


def _opened(path: Path) -> Callable[[], object]:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=256"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE rows (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    return partial(connection.execute, "INSERT INTO rows(body) VALUES (?)", (ROW,))


async def _answer(broker: aiomqtt.Client, commit: Commit, message: aiomqtt.Message) -> None:
    assert message.properties is not None
    topic, asked = message.topic.value, message.properties
    to, correlation = asked.ResponseTopic, asked.CorrelationData
    if topic.startswith("floor/"):
        await commit(int(topic.split("/")[1]))
        sent = properties("result", correlation)
        await broker.publish(to, message.payload, qos=1, properties=sent)
        return
    call = msgpack.unpackb(message.payload)
    for kind, body in (("accepted", {}), ("result", {"ok": True, "data": ANSWER})):
        packed = msgpack.packb({"v": 1, "k": kind, "id": call["call_id"], **body})
        await broker.publish(to, packed, qos=1, properties=properties(kind, correlation))


async def _talk(
    broker: aiomqtt.Client | None,
    commit: Commit,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection, as little as a server can do; a GET returns what was PUT last."""
    talk, kept = h11.Connection(h11.SERVER), b""
    while True:
        event = talk.next_event()
        if event is h11.NEED_DATA:
            if not (data := await reader.read(READ)):
                writer.close()
                return
            talk.receive_data(data)
        elif isinstance(event, h11.Request):
            request, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            if request.method == b"PUT":
                kept = body
            elif request.method == b"POST":
                json.loads(body)
                await _commit_and_publish(broker, commit, request.target.decode())
            await _reply(talk, writer, kept if request.method == b"GET" else REPLY.encode())
            talk.start_next_cycle()
        else:
            writer.close()
            return


async def _commit_and_publish(broker: aiomqtt.Client | None, commit: Commit, target: str) -> None:
    *publish, times = target.strip("/").split("/")
    await commit(int(times))
    if publish and broker is not None:
        await broker.publish(HEARD, REPLY, qos=1)


async def _reply(talk: h11.Connection, writer: asyncio.StreamWriter, body: bytes) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    parts: list[Any] = [
        h11.Response(status_code=200, headers=headers),
        h11.Data(body),
        h11.EndOfMessage(),
    ]
    writer.write(b"".join(talk.send(part) or b"" for part in parts))
    await writer.drain()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
