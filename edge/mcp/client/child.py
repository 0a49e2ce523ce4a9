"""The child process: takes frames from the daemon, holds the servers, says what comes of them.
Refuses to know the daemon.

It ends when its stdin does. Everything of its servers that could break it ends here: no bound of
theirs is the daemon's.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.client import frames
from edge.mcp.client.models import CallFault, McpServer, Outcome, ServerNews, ServerProgress, fault
from edge.mcp.client.server import McpServerClient
from edge.runtime.stdio import claim_stdio

MOST_FRAME: Final = 24 * 1024 * 1024
log = logging.getLogger(__name__)


class ServersChild:
    """One per process."""

    def __init__(self, out: asyncio.StreamWriter, group: asyncio.TaskGroup) -> None:
        self._out = out
        self._group = group
        self._servers: dict[str, McpServerClient] = {}
        self._calls: dict[str, asyncio.Task[None]] = {}

    async def run(self, stream: asyncio.StreamReader) -> None:
        """Do what is said until nothing more is."""
        while (frame := await frames.read(stream)) is not None:
            self._do(frame)
        for server in self._servers.values():
            server.close()
        for call in self._calls.values():
            call.cancel()

    def _do(self, frame: frames.Frame) -> None:
        what = frame["do"]
        if what == "configure":
            self._configure(frame)
        elif what == "call":
            self._calls[frame["id"]] = self._group.create_task(self._call(frame))
        elif what == "cancel" and frame["id"] in self._calls:
            self._calls[frame["id"]].cancel()
        elif what == "refresh" and frame["server"] in self._servers:
            self._servers[frame["server"]].refresh()
        elif what == "authorize" and frame["server"] in self._servers:
            self._servers[frame["server"]].authorize(frame["code"], frame["state"], frame["iss"])

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
        self._told()

    def _add(self, config: McpServer, tools: Any) -> None:
        def tell(news: ServerNews) -> None:
            if self._servers.get(config.id) is server:
                self._say({"say": "news", "news": frames.news_to(news)})
                self._told()

        known = None if tools is None else frames.tools_of(tools)
        server = self._servers[config.id] = McpServerClient(
            config, self._group, tell=tell, tools=known
        )
        self._say({"say": "news", "news": frames.news_to(server.news)})

    async def _call(self, frame: frames.Frame) -> None:
        id_ = frame["id"]
        outcome = fault(CallFault.CANCELLED, "cancelled; the server was told to stop")
        try:
            outcome = await self._outcome(frame)
        finally:
            del self._calls[id_]
            self._answer(id_, outcome)
            self._told()

    async def _outcome(self, frame: frames.Frame) -> Outcome:
        id_, server = frame["id"], self._servers.get(frame["server"])
        if server is None:
            return fault(CallFault.UNSENT, "the server is no longer configured")

        async def sending() -> None:
            """The daemon must know before the server can: should we die, it sends again only
            what was not said here.
            """
            self._say({"say": "sending", "id": id_})
            await self._out.drain()

        def progress(said: ServerProgress) -> None:
            self._say({"say": "progress", "id": id_, "progress": frames.progress_to(said)})

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

    def _answer(self, id_: str, outcome: Outcome) -> None:
        try:
            self._say({"say": "outcome", "id": id_, "outcome": frames.outcome_to(outcome)})
        except frames.BadFrame as e:
            self._say(
                {
                    "say": "outcome",
                    "id": id_,
                    "outcome": frames.outcome_to(fault(CallFault.INVALID, f"the answer is {e}")),
                }
            )

    def _told(self) -> None:
        if not self._calls and all(server.resting for server in self._servers.values()):
            self._say({"say": "idle"})

    def _say(self, frame: Mapping[str, Any]) -> None:
        if not self._out.is_closing():
            self._out.write(frames.pack(frame))


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
    """Be the child: stdin and stdout are taken for frames, so that nothing else can write there."""
    inward, outward = claim_stdio()
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("edge").setLevel(logging.DEBUG)
    asyncio.run(_run(inward, outward))
