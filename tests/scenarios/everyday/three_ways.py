"""One tool used in three ways: by a sentence that the glasses hear, by `glassd call` in a process
of its own, and by an unchanged MCP client at `glassd mcp`.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from edge.ports import Wait
from firmware_bridge.messages import Gesture
from tests.e2e.processes import CLI
from tests.scenarios.everyday.readable import UNREADABLE
from tests.scenarios.everyday.services import Services
from tests.scenarios.world import SOON_S, World
from tests.unit.commands.test_cli import environment

WHO = {"voice": "Vera", "cli": "Carl", "mcp": "Mona"}
"""Way → the person that its uses are about, so that no way finds what another one left."""
FIELDS = "Which of its fields is meant cannot be told from a sentence."
"""Why no sentence leads to some tools."""
PRESENT = {"io.glassd/present": True}
"""Metadata of a call by MCP whose answer the wearer is to see, also where it only looks up."""
_FINAL = ("ok", "error")

Step = Callable[["Scene"], Awaitable[None]]


@dataclass(frozen=True)
class Use:
    """What is done with one tool, and what comes of it. In all texts `{who}` and what a step
    remembered are filled in.
    """

    tool: str
    shows: str = ""
    """On the lens, and in the answer."""
    say: str = ""
    unspoken: str = ""
    """Why no sentence leads to it."""
    refused: str = ""
    """The error code that everybody gets who calls it."""
    args: Mapping[str, Any] = field(default_factory=dict)
    asks: str = ""
    """What the lens asks before anything is done."""
    before: Step | None = None
    then: Step | None = None
    """Checks what is at the server, or in the store of the tool."""


@dataclass(frozen=True)
class Answer:
    """What a way gets: its text, and how far it came."""

    ok: bool
    text: str


@dataclass
class Scene:
    """A wearer with all everyday tools, and the way that is used now."""

    place: World
    services: Services
    agent: Client
    ben: World | None = None
    """Another wearer at the same cloud; None without a broker."""
    fixed: dict[str, str] = field(default_factory=dict)
    """What all uses know."""
    way: str = "cli"
    known: dict[str, Any] = field(default_factory=dict)

    def begin(self, way: str) -> None:
        self.way = way
        self.known = {"who": WHO[way], **self.fixed}
        self.place.shown.clear()

    def fill(self, template: Any) -> Any:
        """Return it with its `{names}` filled in; a text that is one name becomes its value."""
        match template:
            case str():
                alone = template[1:-1] if template.startswith("{") else ""
                return self.known.get(alone) or template.format_map(self.known)
            case Mapping():
                return {key: self.fill(value) for key, value in template.items()}
            case list():
                return [self.fill(value) for value in template]
        return template

    # -------------------------------------------------------------- the wearer's own calls

    async def do(self, tool: str, **args: Any) -> Any:
        """Call a tool without a trace on the lens, after a yes if it asks; return its data."""
        call = self.place.call(tool, args, present=False, wait=Wait.ANSWER)
        return await self._data(self.place, call)

    async def ben_does(self, tool: str, **args: Any) -> Any:
        """Let the other wearer call a tool, and say yes if it asks; return its data."""
        return await self._data(self.ben, self.ben.call(tool, args, wait=Wait.ANSWER))

    async def _data(self, place: World, call: Awaitable[Any]) -> Any:
        calling = asyncio.ensure_future(call)
        prompter = place.daemon.stage._prompter
        while not calling.done():
            if prompter.active:
                await place.answer_question()
            await asyncio.wait({calling}, timeout=0.01)
        answer = calling.result()
        assert answer.ok, answer
        return answer.data

    # -------------------------------------------------------------- the three ways

    async def use(self, use: Use, gesture: Gesture = Gesture.TAP) -> Answer:
        """Use a tool in this scene's way; answer what it asks on the lens with a gesture."""
        way = {"voice": self._speak, "cli": self._type, "mcp": self._let_agent}[self.way]
        calling = asyncio.ensure_future(way(use))
        try:
            if use.asks:
                await self.place.lens_shows(self.fill(use.asks))
                await self.place.answer_question(gesture)
            async with asyncio.timeout(SOON_S):
                return await calling
        finally:
            calling.cancel()
            with suppress(asyncio.CancelledError):
                await calling

    async def _speak(self, use: Use) -> Answer:
        """The wearer says it; the answer is what comes on the lens."""
        await self.place.wearer_says(self.fill(use.say))
        answered = await self.place.heard("call.answered", tool=use.tool)
        if not answered["ok"]:
            return Answer(ok=False, text=answered["code"])
        return Answer(ok=True, text="\n".join(await self.place.lens_shows(self.fill(use.shows))))

    async def _type(self, use: Use) -> Answer:
        """Somebody types the command."""
        words = ("call", use.tool, json.dumps(self.fill(use.args)), "--json", "--wait", "delivery")
        process = await asyncio.create_subprocess_exec(
            *CLI,
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(GLASSD_SOCKET=str(self.place.socket)),
        )
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        envelope = json.loads(out or "{}")
        assert any(key in envelope for key in _FINAL), (out, err)
        assert envelope["ok"] is (process.returncode == 0), (process.returncode, envelope)
        return _answer(envelope["ok"], envelope["data"] if envelope["ok"] else envelope)

    async def _let_agent(self, use: Use) -> Answer:
        """An agent calls it."""
        args = self.fill(use.args)
        result = await self.agent.call_tool(name_for_agents(use.tool), args, meta=PRESENT)
        while call_id := _undecided(result.structured_content):
            result = await self.agent.call_tool("get_pending_result", {"id": call_id})
        return _answer(not result.is_error, result.structured_content)

    # -------------------------------------------------------------- the lens

    def check_lens(self, use: Use) -> None:
        """Fail if anything was on the lens since `begin` that people do not read."""
        seen = ["\n".join(page["lines"]) for page in self.place.drawn()]
        assert seen, "the lens stayed dark"
        for text in seen:
            assert not UNREADABLE.search(text), text


def name_for_agents(tool: str) -> str:
    """Return the name under which MCP clients are to find it (docs/mcp.md)."""
    return tool.replace(":", "__")


def _undecided(found: Mapping[str, Any]) -> str:
    """Return the id of a call that has no answer yet, else ""."""
    if found.get("status") == "pending":
        return str(found["pendingToolCallId"])
    asked = (found.get("error") or {}).get("code") == "CONFIRMATION_REQUIRED"
    return str(found["meta"]["callId"]) if asked else ""


def _answer(ok: bool, found: Mapping[str, Any]) -> Answer:
    return Answer(ok=ok, text=str(found["text"] if ok else found["error"]["code"]))


# ------------------------------------------------------------------ steps before and after a use


def first(tool: str, **args: Any) -> Step:
    """Call this tool before; what it returns is known to the use."""

    async def step(scene: Scene) -> None:
        scene.known |= await scene.do(tool, **scene.fill(args))

    return step


def finds(words: str, tool: str, **args: Any) -> Step:
    """What this tool returns now has these words in it."""

    async def step(scene: Scene) -> None:
        data = await scene.do(tool, **scene.fill(args))
        assert scene.fill(words) in json.dumps(data, ensure_ascii=False), data

    return step


def lacks(words: str, tool: str, **args: Any) -> Step:
    """What this tool returns now has these words nowhere in it."""

    async def step(scene: Scene) -> None:
        data = await scene.do(tool, **scene.fill(args))
        assert scene.fill(words) not in json.dumps(data, ensure_ascii=False), data

    return step


def both(*steps: Step) -> Step:
    """Take one step after the other."""

    async def step(scene: Scene) -> None:
        for each in steps:
            await each(scene)

    return step


@asynccontextmanager
async def agent(place: World) -> AsyncIterator[Client]:
    """An MCP client at a `glassd mcp` process. It lives in a task of its own: what it is made of
    must end in the task in which it began, and a fixture ends in another.
    """
    words = ["-m", "edge.cli", "mcp", "--socket", str(place.socket)]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment())
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def live() -> None:
        async with Client(stdio_client(server)) as client:
            ready.set_result(client)
            await over.wait()

    living = asyncio.ensure_future(live())
    try:
        await asyncio.wait({living, ready}, timeout=SOON_S, return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()
        yield ready.result()
    finally:
        over.set()
        await living
