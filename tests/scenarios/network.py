"""What stands between a daemon and its cloud, and who else listens there: a cable to pull, and a
bare MQTT client.

The onlooker uses none of glassd's own wire code: what it understands, any MQTT 5 client would.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiomqtt
import msgpack
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

HOST = "127.0.0.1"
MSGPACK = "application/vnd.glassd.v1+msgpack"
JSON = "application/vnd.glassd.v1+json"
PATIENCE_S = 40.0


class Cable:
    """A TCP cable to one port: it can be pulled (refused and reset), or frozen (what is
    connected says nothing more).
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.accepted = 0
        self.came_back = bytearray()
        """Everything the far end said, over all connections."""
        self._server: asyncio.Server | None = None
        self._lines: set[_Line] = set()

    async def plug_in(self) -> None:
        self._server = await asyncio.start_server(self._carry, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def pull_out(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.cut()

    async def cut(self) -> None:
        """Reset every connection; new ones pass."""
        lines = list(self._lines)
        for line in lines:
            line.cut.set()
        await asyncio.gather(*(line.over.wait() for line in lines))

    def freeze(self) -> None:
        """Swallow from now on what the present connections carry; new ones pass: a forgotten
        NAT entry.
        """
        for line in self._lines:
            line.frozen = True

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        line = _Line(self.came_back)
        self._lines.add(line)
        try:
            await line.carry(self.target, reader, writer)
        finally:
            self._lines.discard(line)
            line.over.set()


class _Line:
    """One connection through the cable."""

    def __init__(self, came_back: bytearray) -> None:
        self.came_back = came_back
        self.frozen = False
        self.cut = asyncio.Event()
        self.over = asyncio.Event()

    async def carry(
        self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ends, works = [writer], [asyncio.ensure_future(self.cut.wait())]
        try:
            up_reader, up_writer = await asyncio.open_connection(HOST, target)
            ends.append(up_writer)
            works += [
                asyncio.ensure_future(self._pump(reader, up_writer, bytearray())),
                asyncio.ensure_future(self._pump(up_reader, writer, self.came_back)),
            ]
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass  # nobody is at the other end: the caller is reset
        finally:
            for work in works:
                work.cancel()
            for end in ends:
                end.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, spy: bytearray
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                spy += data
                if not self.frozen:
                    sink.write(data)
                    await sink.drain()
        if self.frozen:
            await asyncio.Event().wait()  # the end of the other side does not come through either


@asynccontextmanager
async def web(
    answer: Callable[[str, str, Mapping[str, str], bytes], tuple[int, Mapping[str, str], bytes]],
) -> AsyncIterator[str]:
    """A web server of `answer(method, path, headers, body)`; gives its address. One request a
    connection.
    """
    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        try:
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest if line)
            }
            method, path, _ = first.split(" ")
            status, more, body = answer(
                method,
                path,
                headers,
                await reader.readexactly(int(headers.get("content-length", 0))),
            )
            head = "".join(
                f"{k}: {v}\r\n"
                for k, v in {
                    **more,
                    "Content-Length": str(len(body)),
                    "Connection": "close",
                }.items()
            )
            writer.write(f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller went away
        finally:
            writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*served, return_exceptions=True)


@dataclass(frozen=True)
class Said:
    """One MQTT message as a bare client sees it."""

    topic: str
    body: Any
    retained: bool
    content_type: str | None = None
    correlation: bytes | None = None
    response_topic: str | None = None
    expiry_s: int | None = None
    user: Mapping[str, str] = field(default_factory=dict)
    qos: int = 0

    @property
    def kind(self) -> str:
        return self.user.get("k", "")

    @property
    def tail(self) -> str:
        """The topic below the edge's own prefix."""
        return self.topic.split("/", 5)[-1]


class Onlooker:
    """Hears what it is subscribed to, in order, and says what it is told to say."""

    def __init__(self, client: aiomqtt.Client, edge_id: str) -> None:
        self._client = client
        self.prefix = f"glassd/v1/default/e/{edge_id}"
        self.reply_topic = f"{self.prefix}/reply/onlooker-{uuid.uuid4().hex[:6]}"
        self.heard: list[Said] = []

    async def listen(self) -> None:
        async for message in self._client.messages:
            self.heard.append(_said(message))

    async def subscribe(self, topic: str) -> None:
        await self._client.subscribe(topic, qos=1)

    async def hears(
        self,
        what: str,
        condition: Callable[[Said], bool],
        *,
        since: int = 0,
        within_s: float = PATIENCE_S,
    ) -> Said:
        """The first message from number `since` on that fits."""
        try:
            async with asyncio.timeout(within_s):
                while not (found := [s for s in self.heard[since:] if condition(s)]):
                    await asyncio.sleep(0.01)
                return found[0]
        except TimeoutError:
            heard = "\n".join(
                f"  {s.tail} {s.kind} {str(s.body)[:100]}" for s in self.heard[since:][-12:]
            )
            raise AssertionError(f"nobody said {what}; heard:\n{heard}") from None

    async def hears_on(
        self, tail: str, *, since: int = 0, within_s: float = PATIENCE_S, **fields: Any
    ) -> Said:
        """The first message on a topic of this edge whose body has these fields."""

        def fits(s: Said) -> bool:
            return s.tail == tail and isinstance(s.body, dict) and fields.items() <= s.body.items()

        return await self.hears(f"{fields} on {tail}", fits, since=since, within_s=within_s)

    async def says(
        self,
        topic: str,
        body: Any,
        *,
        kind: str | None = None,
        content_type: str | None = MSGPACK,
        reply_to: str | None = None,
        correlation: bytes | None = None,
        expiry_s: int | None = 30,
    ) -> None:
        """Publish under the edge's prefix. A body of bytes goes as it is."""
        raw = (
            body
            if isinstance(body, bytes)
            else json.dumps(body).encode()
            if content_type == JSON
            else msgpack.packb(body)
        )
        properties = Properties(PacketTypes.PUBLISH)
        if content_type is not None:
            properties.ContentType = content_type
        if reply_to is not None:
            properties.ResponseTopic = reply_to
        if correlation is not None:
            properties.CorrelationData = correlation
        if expiry_s is not None:
            properties.MessageExpiryInterval = expiry_s
        if kind is not None:
            properties.UserProperty = [("k", kind)]
        await self._client.publish(f"{self.prefix}/{topic}", raw, qos=1, properties=properties)

    async def invokes(
        self, tool: str, args: Mapping[str, Any], *, call_id: str | None = None, **more: Any
    ) -> str:
        """Call a tool of the edge; its answers come to `reply_topic`."""
        call_id = call_id or str(uuid.uuid4())
        body = {"v": 1, "id": call_id, "tool": tool, "args": dict(args), "ttl_s": 20}
        await self.says(
            "invoke",
            body,
            kind="call",
            reply_to=self.reply_topic,
            correlation=uuid.UUID(call_id).bytes,
            **more,
        )
        return call_id

    async def answer_to(self, call_id: str, **more: Any) -> dict[str, Any]:
        """The one result of an invocation."""
        said = await self.hears(
            f"the result of {call_id}",
            lambda s: s.kind == "result" and s.body.get("id") == call_id,
            **more,
        )
        return said.body

    def results_of(self, call_id: str) -> list[dict[str, Any]]:
        return [s.body for s in self.heard if s.kind == "result" and s.body.get("id") == call_id]


@asynccontextmanager
async def onlooker(host: str, port: int, edge_id: str, *topics: str) -> AsyncIterator[Onlooker]:
    """Connect a bare client; by default it hears everything about the edge."""
    client = aiomqtt.Client(
        host,
        port,
        protocol=aiomqtt.ProtocolVersion.V5,
        identifier=f"onlooker-{uuid.uuid4().hex[:8]}",
        timeout=PATIENCE_S,
    )
    async with client:
        looker = Onlooker(client, edge_id)
        listening = asyncio.ensure_future(looker.listen())
        try:
            for topic in topics or (f"{looker.prefix}/#",):
                await looker.subscribe(topic)
            yield looker
        finally:
            listening.cancel()
            await asyncio.wait({listening})


def state_of(body: Mapping[str, Any]) -> str:
    """The state in a `delivery` message (or in `meta`): a word, or an object with more to say."""
    told = body["delivery"]
    return told if isinstance(told, str) else told["state"]


def _said(message: aiomqtt.Message) -> Said:
    properties = message.properties
    content_type = getattr(properties, "ContentType", None)
    raw = bytes(message.payload or b"")
    body: Any = raw
    with suppress(ValueError, RecursionError):  # what is no document stays bytes
        body = json.loads(raw) if content_type == JSON else msgpack.unpackb(raw)
    return Said(
        str(message.topic),
        body,
        bool(message.retain),
        content_type,
        getattr(properties, "CorrelationData", None),
        getattr(properties, "ResponseTopic", None),
        getattr(properties, "MessageExpiryInterval", None),
        dict(getattr(properties, "UserProperty", [])),
        message.qos,
    )
