"""Glasses as a port: they answer commands like glasses, and write down what they were told."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesLost, GlassesReady, GlassesSaid
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Answer,
    AudioChunk,
    AudioFormat,
    ClearPage,
    Command,
    Done,
    EndAudio,
    EndPrompt,
    Gesture,
    Gestured,
    Prompt,
    PromptAnswered,
    ShowPage,
    StartAudio,
    UpdatePage,
)

DISPLAY = {
    "display": True,
    "display.width": 576,
    "display.height": 136,
    "display.bpp": 1,
    "display.lines": 5,
    "display.font": "lens-22",
    "display.line_height": 27,
    "display.page_bytes": 390,
    "display.bitmap": True,
    "microphone": True,
    "gestures": "tap,double_tap",
}
AUDIO = {
    "speaker": True,
    "speaker.codecs": "opus,pcm16",
    "speaker.rate": 16000,
    "microphone": True,
    "button": True,
}
FULL = {**DISPLAY, **AUDIO}


class FakeGlasses:
    """`GlassesPort` at the level below the stage. `refuse` may raise for a command; `drawn`
    overrides the count.
    """

    def __init__(self, bus: Bus, facts: dict[str, Any], *, speed: float = 50.0) -> None:
        self.bus = bus
        self.facts = facts
        self.ready = True
        self.link = 1
        self.address = "AA"
        self.known = True
        self.worn: bool | None = True
        self.unseen = ""
        self.covered = ""
        self.told: list[Command] = []
        self.drawn: int | None = -1
        self.samples: int | None = -1
        self.refuse: Callable[[Command], None] = lambda _: None
        self.speed = speed
        self.prompts = True
        self.open_prompt: int | None = None
        self.streams: dict[int, tuple[AudioFormat, list[bytes]]] = {}
        self.open_stream: int | None = None
        self.flushed: list[int] = []
        self._changed = asyncio.Event()
        self._hold: asyncio.Event | None = None
        self._flush = asyncio.Event()

    # ---------------------------------------------------------- the port

    def status(self) -> GlassesStatus:
        facts = {"speaker.speed": self.speed, **self.facts}
        record = (
            Capabilities.of("mock", facts, origin=Origin.FIRMWARE, now=0.0) if self.known else None
        )
        return GlassesStatus(
            state="READY" if self.ready else "SEEKING",
            ready=self.ready,
            capabilities=record,
            stale=not self.ready,
            worn=self.worn,
            unseen=self.unseen,
            covered=self.covered,
            link=self.link,
            address=self.address,
        )

    async def request(self, command: Command, *, timeout_s: float = 5.0) -> Done:
        self._take(command)
        if self._hold is not None:
            await self._hold.wait()
        self._alive()
        if isinstance(command, ShowPage):
            lit = sum(len(line.text.strip()) for line in command.lines) + sum(
                any(t.pixels) for t in command.tiles
            )
            return Done(drawn=lit if self.drawn == -1 else self.drawn)
        if isinstance(command, UpdatePage):
            return Done(drawn=1 if self.drawn == -1 else self.drawn)
        if isinstance(command, Prompt):
            return self._asked(command)
        if isinstance(command, EndPrompt) and command.prompt in (None, self.open_prompt):
            self.open_prompt = None
        if isinstance(command, StartAudio):
            self.streams[command.stream] = (command.format, [])
            self.open_stream = command.stream
            self._flush.clear()
        if isinstance(command, EndAudio):
            return await self._ended(command)
        return Done()

    async def post(self, command: Command) -> None:
        self._take(command)
        assert isinstance(command, AudioChunk)
        if command.stream == self.open_stream:
            self.streams[command.stream][1].extend(command.frames)

    # ---------------------------------------------------------- the test's hands

    async def say(self, gesture: Gesture) -> None:
        self.bus.publish(GlassesSaid(Gestured(gesture)))
        await asyncio.sleep(0)

    def answer(self, answer: Answer, *, prompt: int | None = None) -> None:
        """The glasses tell what the wearer did about a prompt (the open one, unless said
        otherwise).
        """
        number = self.open_prompt if prompt is None else prompt
        assert number is not None, "no question is open"
        self.open_prompt = None if number == self.open_prompt else self.open_prompt
        self.bus.publish(GlassesSaid(PromptAnswered(number, answer)))

    def leave(self, *, unnoticed: bool = False) -> None:
        """Lose the link, and the open stream with it; glasses that did not notice hold their
        question open.
        """
        self.ready, self.open_stream = False, None
        self.open_prompt = self.open_prompt if unnoticed else None
        self.bus.publish(GlassesLost("disconnected"))

    def come_back(self) -> None:
        self.return_unheard()
        self.tell_return()

    def return_unheard(self) -> None:
        """Be there again, over a new connection, before anybody heard of it."""
        self.ready, self.link = True, self.link + 1

    def tell_return(self) -> None:
        self.bus.publish(GlassesReady("mock", "1", "AA", 247, "fake"))

    def hold(self) -> asyncio.Event:
        """Answer nothing until the event is set."""
        self._hold = asyncio.Event()
        return self._hold

    def pages(self) -> list[ShowPage]:
        return [c for c in self.told if isinstance(c, ShowPage)]

    def updates(self) -> list[UpdatePage]:
        return [c for c in self.told if isinstance(c, UpdatePage)]

    def asked(self) -> list[Prompt]:
        return [c for c in self.told if isinstance(c, Prompt)]

    def texts(self) -> list[str]:
        return [" ".join(line.text for line in page.lines) for page in self.pages()]

    def clears(self) -> int:
        return sum(isinstance(c, ClearPage) for c in self.told)

    def frames(self) -> int:
        return sum(len(frames) for _, frames in self.streams.values())

    async def until(self, condition: Callable[[], bool], *, within_s: float = 40.0) -> None:
        async with asyncio.timeout(within_s):
            while not condition():
                self._changed.clear()
                with suppress(
                    TimeoutError
                ):  # not all that is waited for is a command: look again soon
                    async with asyncio.timeout(0.01):
                        await self._changed.wait()

    def _take(self, command: Command) -> None:
        self._alive()
        self.refuse(command)
        if isinstance(command, Prompt) and not self.prompts:
            raise CommandRefused("unsupported", "prompt")
        self.told.append(command)
        self._changed.set()

    def _alive(self) -> None:
        if not self.ready:
            raise GlassesAway

    def _asked(self, command: Prompt) -> Done:
        if self.open_prompt is not None:
            raise CommandRefused("busy", f"prompt {self.open_prompt} is open")
        self.open_prompt = command.prompt
        return Done(
            drawn=sum(len(line.text) for line in command.lines) if self.drawn == -1 else self.drawn
        )

    async def _ended(self, command: EndAudio) -> Done:
        if command.stream != self.open_stream:
            raise CommandRefused("no_stream")
        played = len(self.streams[command.stream][1]) * 320
        if command.flush:
            self.flushed.append(command.stream)
            self._flush.set()
            return Done(samples=played // 2 if self.samples == -1 else self.samples)
        try:
            async with asyncio.timeout(played / 16000 / self.speed):
                await self._flush.wait()
        except TimeoutError:
            pass
        return Done(samples=played if self.samples == -1 else self.samples)


class Notebook:
    """`Notes` in memory; what it holds outlives a stage, as a disk would."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    async def get(self, name: str) -> Any:
        return self.kept.get(name)

    async def put(self, name: str, value: Any) -> None:
        self.kept[name] = value

    async def put_soon(self, name: str, value: Any, **_failed: Any) -> None:
        await self.put(name, value)
