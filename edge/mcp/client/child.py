"""The child process: reads frames from the daemon, holds the servers, and reports outcomes. It ends
when its stdin does. Whatever a server breaks, it breaks here and not in the daemon.
"""

import asyncio
import logging
import os
import sys
from typing import Any

from edge.mcp.client import frames
from edge.mcp.client.models import CallFault, McpServer, Outcome, ServerNews, ServerProgress, fault
from edge.mcp.client.server import McpServerClient
from edge.runtime.stdio import claim_stdio


class ServersChild:
    """One per process."""

    def __init__(self, out: asyncio.StreamWriter, group: asyncio.TaskGroup) -> None:
        self._out = out
        self._group = group
        self._servers: dict[str, McpServerClient] = {}
        self._calls: dict[str, asyncio.Task[None]] = {}

    async def run(self, stream: asyncio.StreamReader) -> None:
        """Handle frames until the stream ends."""
        while (frame := await frames.read(stream)) is not None:
            self._do(frame)
        for server in self._servers.values():
            server.close()
        for call in self._calls.values():
            call.cancel()

    def _do(self, frame: frames.Frame) -> None:
        server = self._servers.get(frame.get("server", ""))
        match frame["do"]:
            case "configure":
                self._configure(frame)
            case "call":
                self._calls[frame["id"]] = self._group.create_task(self._call(frame))
            case "cancel" if frame["id"] in self._calls:
                self._calls[frame["id"]].cancel()
            case "refresh" if server is not None:
                server.refresh()
            case "authorize" if server is not None:
                server.authorize(frame["code"], frame["state"], frame["iss"])

    def _configure(self, frame: frames.Frame) -> None:
        wanted = {item["config"]["id"]: item for item in frame["servers"]}
        for id_, server in list(self._servers.items()):
            if id_ not in wanted or frames.server_of(wanted[id_]["config"]) != server.config:
                self._servers.pop(id_).close()
        for id_, item in wanted.items():
            if id_ not in self._servers:
                self._add(frames.server_of(item["config"]), frame["tools"].get(id_))
                if item["start"]:
                    self._servers[id_].start()
        self._report_idle()

    def _add(self, config: McpServer, tools: Any) -> None:
        def report(news: ServerNews) -> None:
            if self._servers.get(config.id) is server:
                self._send("news", news=news)
                self._report_idle()

        server = self._servers[config.id] = McpServerClient(
            config, self._group, report=report, tools=frames.tools_of(tools)
        )
        self._send("news", news=server.news)

    async def _call(self, frame: frames.Frame) -> None:
        id_ = frame["id"]
        outcome = fault(CallFault.CANCELLED, "cancelled; the server was asked to stop")
        try:
            outcome = await self._outcome(frame)
        finally:
            del self._calls[id_]
            try:
                self._send("outcome", id=id_, outcome=outcome)
            except frames.BadFrame as e:
                self._send(
                    "outcome", id=id_, outcome=fault(CallFault.INVALID, f"the answer is {e}")
                )
            self._report_idle()

    async def _outcome(self, frame: frames.Frame) -> Outcome:
        id_, server = frame["id"], self._servers.get(frame["server"])
        if server is None:
            return fault(CallFault.UNSENT, "the server is no longer configured")

        async def sending() -> None:
            """The daemon must know before the server can: if this process dies, the daemon repeats
            only calls that were not announced here.
            """
            self._send("sending", id=id_)
            await self._out.drain()

        def progress(step: ServerProgress) -> None:
            self._send("progress", id=id_, progress=step)

        return await server.call(
            frame["tool"],
            frame["args"],
            call_id=id_,
            timeout_s=frame["timeout_s"],
            idempotent=frame["idempotent"],
            retry=frame["attempt"] == 1,
            input=frame["input"],
            sending=sending,
            on_progress=progress if frame["progress"] else None,
        )

    def _report_idle(self) -> None:
        if not self._calls and all(server.resting for server in self._servers.values()):
            self._send("idle")

    def _send(self, what: str, **fields: Any) -> None:
        if not self._out.is_closing():
            body = {key: frames.plain(value) for key, value in fields.items()}
            self._out.write(frames.pack({"say": what, **body}))


async def _run(inward: int, outward: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(inward, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(outward, "wb", 0)
    )
    transport.set_write_buffer_limits(high=0)  # so that `drain` means: it is in the pipe
    async with asyncio.TaskGroup() as group:
        await ServersChild(asyncio.StreamWriter(transport, protocol, None, loop), group).run(reader)


def main() -> None:
    """Run the child. It keeps stdin and stdout for frames, so that nothing else can write there."""
    inward, outward = claim_stdio()
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("edge").setLevel(logging.DEBUG)
    asyncio.run(_run(inward, outward))
