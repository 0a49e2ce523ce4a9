"""Performs the steps of a demo, records every event, and waits for those a script expects."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx

from edge.demo.clients import DaemonHttp, HttpClient, MockClient
from edge.demo.script import BadScript, Expectation, ScriptStep, seconds, split_call, split_caps
from edge.demo.speech import NoSpeech, synthesise
from edge.runtime.control_api import ToolPages
from firmware_bridge.deadlines import timeout

EXPECT_S: Final = 30.0
"""An app may take 10 s to start; nothing in a demo takes longer, and a busy machine is slower."""
MAX_EVENTS: Final = 10_000
Emit = Callable[[dict[str, Any]], None]

_FROM_MOCK: Final = frozenset({"lens", "speaker", "prompt", "fault"})
"""Events that are taken from the mock only, which decodes them from the radio's bytes."""


class Unmet(Exception):
    """A script's expectation was not met in time."""


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of the three processes."""

    daemon: DaemonHttp
    mock: MockClient
    cloud: HttpClient


class Player:
    """One run of a demo. Every event goes through `emit` once, in the order it arrived.

    `forgiving`: a wrong step is reported and the demo goes on, as for a person; a script ends.
    """

    def __init__(
        self, clients: Clients, *, emit: Emit, edge_id: str, forgiving: bool = False
    ) -> None:
        self._daemon = clients.daemon
        self._mock = clients.mock
        self._cloud = clients.cloud
        self._forgiving = forgiving
        self._emit = emit
        self._edge_id = edge_id
        self._events: list[dict[str, Any]] = []
        self._news = asyncio.Condition()
        self._mark = 0
        self._background: asyncio.TaskGroup | None = None

    # -------------------------------------------------------------- events

    async def run(self, steps: AsyncIterator[ScriptStep]) -> None:
        """Perform every step. Raise `Unmet` or `BadScript`."""
        try:
            await self._run(steps)
        except* (Unmet, BadScript) as failed:
            first: BaseException = failed
        else:
            return
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first

    async def _run(self, steps: AsyncIterator[ScriptStep]) -> None:
        async with asyncio.TaskGroup() as listeners:
            sources = ((self._daemon.events(), False), (self._mock.events(), True))
            tasks = [
                listeners.create_task(self._listen(events, from_mock=mock), name="demo events")
                for events, mock in sources
            ]
            try:
                async with asyncio.TaskGroup() as self._background:
                    async for step in steps:
                        await self._try(step)
            finally:
                for task in tasks:
                    task.cancel()

    async def _listen(self, events: AsyncIterator[dict[str, Any]], *, from_mock: bool) -> None:
        async for event in events:
            if (event.get("event") in _FROM_MOCK) == from_mock:
                await self.note(event)

    async def note(self, event: dict[str, Any]) -> None:
        """Record and show one event."""
        async with self._news:
            if len(self._events) < MAX_EVENTS:
                self._events.append(event)
            self._emit(event)
            self._news.notify_all()

    async def expect(self, wanted: Expectation, *, timeout_s: float = EXPECT_S) -> dict[str, Any]:
        """Wait for an event that came after the last step began. Raise `Unmet`."""

        def found() -> dict[str, Any] | None:
            return next((e for e in self._events[self._mark :] if wanted.met_by(e)), None)

        try:
            async with timeout(timeout_s), self._news:
                while (event := found()) is None:
                    await self._news.wait()
                return event
        except TimeoutError:
            seen = [e for e in self._events[self._mark :] if e.get("event") == wanted.event]
            raise Unmet(
                f"{wanted} did not come in {timeout_s:g} s; of that name came: {seen[-3:]}"
            ) from None

    # -------------------------------------------------------------- steps

    async def _try(self, step: ScriptStep) -> None:
        try:
            await self.perform(step)
        except (BadScript, Unmet) as wrong:
            if self._forgiving:
                await self._problem(str(wrong))
                return
            if isinstance(wrong, BadScript):
                raise BadScript(f"line {step.line}: {wrong}") from None
            raise

    async def perform(self, step: ScriptStep) -> None:
        """Perform one step. Raise `BadScript` and, for `expect`, `Unmet`."""
        if step.verb == "expect":
            await self.expect(Expectation.parse(step.rest))
            return
        self._mark = len(self._events)
        if step.verb == "title":
            await self.note({"event": "step", "title": step.rest})
            return
        act = self._acts().get(step.verb)
        if act is None:
            raise BadScript(f"{step.verb} is only for a person at the terminal")
        try:
            await act(step.rest)
        except (httpx.HTTPError, OSError) as away:
            await self._problem(f"{step.verb}: {str(away) or type(away).__name__}")

    def _acts(self) -> dict[str, Callable[[str], Awaitable[Any]]]:
        """Return the function of each verb, which gets the rest of the line."""
        gestures = ("tap", "double_tap", "button", "button_long", "drop")
        shown = ("tools", "lens", "status")
        return {
            "say": self._say,
            "hear": self._hear,
            "call": self._call,
            "invoke": self._invoke,
            "caps": lambda rest: self._wear(do="caps", set=split_caps(rest)),
            "fault": lambda rest: self._wear(do=rest),
            "wait": lambda rest: asyncio.sleep(seconds(rest)),
            "offline": lambda _: self._broker(running=False),
            "online": lambda _: self._broker(running=True),
            **{verb: partial(self._gesture, verb) for verb in gestures},
            **{verb: partial(self._show, verb) for verb in shown},
        }

    async def _problem(self, text: str) -> None:
        await self.note({"event": "problem", "text": text})

    async def _say(self, text: str) -> None:
        """Speak; if the glasses recognise no speech, give the daemon the text."""
        if not await self._wear(do="say", text=text):
            self._later(self._daemon.post("/v1/say", {"text": text}))

    async def _hear(self, rest: str) -> None:
        """Play a WAV file to the microphone, or a text in the machine's voice."""
        if rest.endswith(".wav"):
            await self._wear(do="hear", path=rest)  # the mock runs in the same folder
            return
        try:
            pcm = await synthesise(rest)
        except NoSpeech as why:
            await self._problem(f"{why}; {why.fix}".rstrip("; "))
            return
        await self._wear(do="hear", name=rest, data=base64.b64encode(pcm).decode())

    async def _wear(self, **command: Any) -> bool:
        """Have the mock's wearer do something, and report what the mock refuses. Return False if
        the glasses did not notice it.
        """
        answer = await self._mock.do(**command)
        if not answer.get("ok"):
            await self._problem(str(answer.get("error")))
        return bool(answer.get("noticed", answer.get("ok")))

    async def _call(self, rest: str) -> None:
        tool, args = split_call(rest)
        self._later(self._daemon.post("/v1/call", {"tool": tool, "args": args, "wait": "answer"}))

    async def _invoke(self, rest: str) -> None:
        self._later(self._invoke_now(*split_call(rest)))

    async def _invoke_now(self, tool: str, args: Mapping[str, Any]) -> None:
        body = {"edge_id": self._edge_id, "tool": tool, "args": dict(args)}
        envelope = await self._cloud.post("/devcloud/invoke", body)
        await self.note(
            {"event": "cloud.invoked", "tool": tool, "ok": envelope.get("ok"), "response": envelope}
        )

    def _later(self, work: Any) -> None:
        """Let a call run while the demo goes on; its events tell how it ended."""
        assert self._background is not None
        self._background.create_task(self._report(work), name="demo call")

    async def _report(self, work: Any) -> None:
        try:
            answer = await work
        except (httpx.HTTPError, OSError) as away:
            await self._problem(str(away) or type(away).__name__)
            return
        if isinstance(answer, dict) and answer.get("ok") is False:
            tool = answer.get("meta", {}).get("tool", "")
            await self.note({"event": "refused", **answer["error"], "tool": tool})
        elif isinstance(answer, dict) and "ok" not in answer and "error" in answer:
            await self._problem(str(answer["error"].get("message")))

    async def _gesture(self, gesture: str, _rest: str) -> None:
        await self._wear(do=gesture)

    async def _broker(self, *, running: bool) -> None:
        await self._cloud.post("/devcloud/broker", {"running": running})

    async def _show(self, what: str, _rest: str) -> None:
        if what == "tools":
            pages = ToolPages({"all": "1"})
            while not pages.take(await self._daemon.get(pages.path)):
                pass
            shown = pages.document
        elif what == "status":
            shown = await self._daemon.get("/v1/status")
        else:
            shown = await self._mock.do(do="lens")
        await self.note({"event": f"shown.{what}", "document": shown})
