"""The play: performs steps on the cast, remembers everything that happened, and waits for what a
script expects.

Refuses to know how it looks (`view.py`) and how the cast is started (`main.py`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from edge.demo.clients import CloudWire, DaemonWire, MockWire
from edge.demo.script import BadScript, Expectation, ScriptStep, seconds, split_call, split_caps
from firmware_bridge.deadlines import timeout

EXPECT_S: Final = 30.0
"""An app may take 10 s to start; nothing in a demo takes longer, and a busy machine is slower."""
MAX_EVENTS: Final = 10_000
Emit = Callable[[dict[str, Any]], None]

_FROM_MOCK: Final = frozenset({"lens", "speaker", "prompt", "fault"})
"""What is taken from the mock alone: decoded from the bytes that came over the air, never from
the daemon.
"""


class Unmet(Exception):
    """A script's expectation was not met in time."""


class Player:
    """One performance. Every event goes through `emit` once, in the order it arrived."""

    def __init__(
        self,
        daemon: DaemonWire,
        mock: MockWire,
        cloud: CloudWire,
        *,
        emit: Emit,
        edge_id: str,
        out: Path,
        forgiving: bool = False,
    ) -> None:
        """`forgiving`: what a person mistypes is said and the play goes on; a script ends there."""
        self._forgiving = forgiving
        self._daemon = daemon
        self._mock = mock
        self._cloud = cloud
        self._emit = emit
        self._edge_id = edge_id
        self._out = out
        self._events: list[dict[str, Any]] = []
        self._news = asyncio.Condition()
        self._mark = 0
        self._background: asyncio.TaskGroup | None = None

    # -------------------------------------------------------------- what happens

    async def run(self, steps: AsyncIterator[ScriptStep]) -> None:
        """Play every step; ends when the steps do. Raises `Unmet` or `BadScript`."""
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
            ears = [
                listeners.create_task(
                    self._listen(self._daemon.events(), from_mock=False), name="hear daemon"
                ),
                listeners.create_task(
                    self._listen(self._mock.events(), from_mock=True), name="hear mock"
                ),
            ]
            try:
                async with asyncio.TaskGroup() as self._background:
                    async for step in steps:
                        await self._try(step)
            finally:
                for ear in ears:
                    ear.cancel()

    async def _listen(self, events: AsyncIterator[dict[str, Any]], *, from_mock: bool) -> None:
        async for event in events:
            if (event.get("event") in _FROM_MOCK) == from_mock:
                await self.note(event)

    async def note(self, event: dict[str, Any]) -> None:
        """Remember and show one event."""
        async with self._news:
            if len(self._events) < MAX_EVENTS:
                self._events.append(event)
            self._emit(event)
            self._news.notify_all()

    async def expect(self, wanted: Expectation, *, timeout_s: float = EXPECT_S) -> dict[str, Any]:
        """Wait for an event that came after the last act began. Raises `Unmet`."""

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

    # -------------------------------------------------------------- what is done

    async def _try(self, step: ScriptStep) -> None:
        try:
            await self.perform(step)
        except (BadScript, Unmet) as wrong:
            if not self._forgiving:
                raise (
                    BadScript(f"line {step.line}: {wrong}")
                    if isinstance(wrong, BadScript)
                    else wrong
                ) from None
            await self.note({"event": "problem", "text": str(wrong)})

    async def perform(self, step: ScriptStep) -> None:
        """Do one step. Raises `BadScript` and, for `expect`, `Unmet`."""
        if step.verb == "expect":
            await self.expect(Expectation.parse(step.rest))
            return
        self._mark = len(self._events)
        if step.verb == "title":
            await self.note({"event": "step", "title": step.rest})
            return
        act = _ACTS.get(step.verb)
        if act is None:
            raise BadScript(f"{step.verb} is only for a person at the terminal")
        try:
            await act(self, step.rest)
        except (httpx.HTTPError, OSError) as away:
            await self.note(
                {"event": "problem", "text": f"{step.verb}: {str(away) or type(away).__name__}"}
            )

    async def _say(self, text: str) -> None:
        """Speak; where the glasses recognise no speech, another recogniser hears it and tells
        the daemon.
        """
        if not await self._wear(do="say", text=text):
            self._later(self._daemon.post("/v1/say", {"text": text}))

    async def _wear(self, **order: Any) -> bool:
        """Have the mock's wearer do something; what the mock refuses is said. False when nobody
        noticed.
        """
        answer = await self._mock.do(**order)
        if not answer.get("ok"):
            await self.note({"event": "problem", "text": str(answer.get("error"))})
        return bool(answer.get("noticed", answer.get("ok")))

    async def _fault(self, word: str) -> None:
        await self._wear(do=word)

    async def _call(self, rest: str) -> None:
        tool, args = split_call(rest)
        self._later(self._daemon.post("/v1/call", {"tool": tool, "args": args, "wait": "answer"}))

    async def _invoke(self, rest: str) -> None:
        tool, args = split_call(rest)
        self._later(self._invoked(tool, args))

    async def _invoked(self, tool: str, args: Mapping[str, Any]) -> None:
        order = {"edge_id": self._edge_id, "tool": tool, "args": dict(args)}
        envelope = await self._cloud.post("/devcloud/invoke", order)
        await self.note(
            {"event": "cloud.invoked", "tool": tool, "ok": envelope.get("ok"), "response": envelope}
        )

    def _later(self, work: Any) -> None:
        """Let a call run while the play goes on; its events tell how it went."""
        assert self._background is not None
        self._background.create_task(self._guarded(work), name="demo call")

    async def _guarded(self, work: Any) -> None:
        try:
            answer = await work
        except (httpx.HTTPError, OSError) as away:
            await self.note({"event": "problem", "text": str(away) or type(away).__name__})
            return
        if isinstance(answer, dict) and answer.get("ok") is False:
            await self.note(
                {
                    "event": "refused",
                    **answer["error"],
                    "tool": answer.get("meta", {}).get("tool", ""),
                }
            )
        elif isinstance(answer, dict) and "ok" not in answer and "error" in answer:
            await self.note({"event": "problem", "text": str(answer["error"].get("message"))})

    async def _gesture(self, gesture: str) -> None:
        await self._wear(do=gesture)

    async def _caps(self, rest: str) -> None:
        await self._wear(do="caps", set=split_caps(rest))

    async def _broker(self, *, running: bool) -> None:
        await self._cloud.post("/devcloud/broker", {"running": running})

    async def _show(self, what: str) -> None:
        path = {"tools": "/v1/tools?all=1", "status": "/v1/status"}.get(what)
        shown = await self._daemon.get(path) if path else await self._mock.do(do="lens")
        await self.note({"event": f"shown.{what}", "document": shown})


_ACTS: Final[Mapping[str, Callable[[Player, str], Any]]] = {
    "say": Player._say,  # noqa: SLF001 - the table of this class's own verbs
    "call": Player._call,  # noqa: SLF001
    "invoke": Player._invoke,  # noqa: SLF001
    "tap": lambda play, _: play._gesture("tap"),  # noqa: SLF001
    "double_tap": lambda play, _: play._gesture("double_tap"),  # noqa: SLF001
    "button": lambda play, _: play._gesture("button"),  # noqa: SLF001
    "drop": lambda play, _: play._gesture("drop"),  # noqa: SLF001
    "caps": Player._caps,  # noqa: SLF001
    "fault": Player._fault,  # noqa: SLF001
    "wait": lambda _play, rest: asyncio.sleep(seconds(rest)),
    "offline": lambda play, _: play._broker(running=False),  # noqa: SLF001
    "online": lambda play, _: play._broker(running=True),  # noqa: SLF001
    "tools": lambda play, _: play._show("tools"),  # noqa: SLF001
    "lens": lambda play, _: play._show("lens"),  # noqa: SLF001
    "status": lambda play, _: play._show("status"),  # noqa: SLF001
}
