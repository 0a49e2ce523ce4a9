"""The simulator's side of a connection: a codec in its peripheral role, one session per central."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, Protocol

from firmware_bridge.codec import NEED_DATA, Codec, Incoming, Role
from firmware_bridge.codecs.reference.frames import LAST, Frame, FrameType
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason, RemoteViolation
from firmware_bridge.messages import (
    Answer,
    AudioChunk,
    AudioFormat,
    ClearPage,
    Command,
    Done,
    EndAudio,
    EndPrompt,
    Event,
    Failed,
    Gesture,
    Gestured,
    Hello,
    MicrophoneChunk,
    PhotoSize,
    PhotoTaken,
    Ping,
    Prompt,
    PromptAnswered,
    Reply,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    UpdatePage,
)
from firmware_bridge.sides import Side
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.lens import Drawn, SimLens
from firmware_bridge.sim.microphone import CHUNK_MS, CHUNK_SAMPLES
from firmware_bridge.sim.sound import HeardSound, SpeakerError
from firmware_bridge.sim.time import Pace

log = logging.getLogger(__name__)

MAX_VOICE_BACKLOG: Final = 32 * 1024
"""Bytes of microphone sound (one second) for a slow central; more is dropped, as on hardware."""

PHOTO_SIZES: Final = {
    PhotoSize.SMALL: (320, 240),
    PhotoSize.MEDIUM: (640, 480),
    PhotoSize.LARGE: (1280, 960),
}
"""Pixels of the simulated camera's photos."""
TOO_SOON_S: Final = 0.7
"""Seconds after a question is drawn in which gestures are ignored: they were meant for what was
there before (PROFILE.md).
"""
_NEEDS: Final = {
    **dict.fromkeys((ShowPage, UpdatePage, ClearPage, Prompt, EndPrompt), "display"),
    StartAudio: "speaker",
    StartMicrophone: "microphone",
    TakePhoto: "camera",
}
"""Commands that need a capability."""
_ALLOWS: Final = frozenset({Gesture.TAP, Gesture.BUTTON, Gesture.NOD})
_DENIES: Final = frozenset({Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG, Gesture.SHAKE})


class PeripheralLink(Protocol):
    """One subscription of one central."""

    @property
    def peer(self) -> str: ...
    @property
    def max_packet(self) -> int: ...
    def packets(self) -> AsyncIterator[bytes]:
        """Packets of the central until it disconnects."""

    async def notify(self, packet: bytes) -> None:
        """Send one packet. Raises `LinkLost`."""

    def hang_up(self) -> object:
        """Drop the link on purpose."""

    @property
    def encrypted(self) -> bool: ...
    def ask_for_bond(self) -> None:
        """Ask the central to pair."""


def more_follow(packet: bytes) -> bool:
    """Return whether more packets of the reference profile's message follow."""
    try:
        frame = Frame.parse(packet)
    except RemoteViolation:
        return False
    return frame.type is FrameType.DATA and not frame.flags & LAST


async def serve(glasses: MockGlasses, link: PeripheralLink) -> None:
    """Serve one central until it disconnects. Never raises for its or the radio's errors."""
    codec = glasses.model.codec(link.max_packet, role=Role.PERIPHERAL)
    session = PeripheralSession(glasses, link, codec)
    glasses.begin(session)
    try:
        await session.run()
    finally:
        glasses.end()


class PeripheralSession:
    """One connection of a central: one codec, one reader, one writer. Used once."""

    def __init__(
        self,
        glasses: MockGlasses,
        link: PeripheralLink,
        codec: Codec[bytes],
        side: Side | None = None,
    ) -> None:
        self._glasses = glasses
        self._side = side
        self._link = link
        self._codec = codec
        self._work = asyncio.Event()
        self._over = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._children: set[asyncio.Task[None]] = set()
        self._listening: tuple[int, asyncio.Task[None]] | None = None
        self._asked: tuple[int, asyncio.Task[None]] | None = None
        self._asked_at = 0.0

    async def run(self) -> None:
        """Serve until the link is lost. No child task ends with an error: a task group that fails
        loses a cancellation that arrives meanwhile (Python < 3.13).
        """
        async with asyncio.TaskGroup() as self._tasks:
            self._spawn(self._read())
            self._spawn(self._write())
            await self._over.wait()
            for child in self._children:
                child.cancel()

    # -------------------------------------------------------------- packets

    async def _read(self) -> None:
        async for packet in self._link.packets():
            try:
                self._codec.receive_packet(packet, time.monotonic())
            except RemoteViolation as violation:
                log.warning("the central sent invalid data: %s", violation)
            self._take()
            self._work.set()
        self._over.set()

    def _take(self) -> None:
        while (incoming := self._codec.next_event()) is not NEED_DATA:
            self._handle(incoming)

    async def _write(self) -> None:
        while True:
            self._work.clear()
            self._codec.set_max_packet(self._link.max_packet)
            for packet in self._codec.packets_to_send(time.monotonic()):
                await self._link.notify(packet)
            due = self._codec.next_timer()
            try:
                async with timeout(None if due is None else max(0.0, due - time.monotonic())):
                    await self._work.wait()
            except TimeoutError:
                self._codec.handle_timer(time.monotonic())
                self._take()  # packets that it kept for a while

    def tell(self, event: Event) -> bool:
        """Queue an event. False if the central has stopped reading and there is no room."""
        try:
            self._codec.send(event, time.monotonic())
        except LocalMisuse as full:
            log.warning("event dropped: %s", full)
            return False
        self._work.set()
        return True

    def _reply(self, number: int | None, reply: Reply) -> None:
        if number is None:
            return
        try:
            self._codec.send(reply, time.monotonic(), re=number)
        except LocalMisuse as full:
            text = f"the central keeps asking without reading: {full}"
            raise LinkLost(LostReason.PROTOCOL, text) from full
        self._work.set()

    def _spawn(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._tasks is not None
        task = self._tasks.create_task(self._until_lost(what))
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        task.add_done_callback(lambda _: what.close())  # it may have been cancelled before it began
        return task

    async def _until_lost(self, what: Coroutine[Any, Any, None]) -> None:
        try:
            await what
        except LinkLost as lost:
            log.debug("session ended: %s", lost)
            self._over.set()

    # -------------------------------------------------------------- commands

    def _handle(self, incoming: Incoming) -> None:
        command, number = incoming.message, incoming.number
        if number is not None and self._glasses.faults[self._side].refuses():
            self._reply(number, Failed("busy", "refused by a fault"))
            return
        lacking = self._lacking(command)
        if lacking:
            self._reply(number, Failed("unsupported", f"no {lacking}"))
            return
        match command:
            case Hello():
                self._reply(number, self._glasses.info())
            case Ping():
                self._reply(number, Done())
            case ShowPage() | UpdatePage() | ClearPage():
                self._reply(number, self._drawn(command))
            case Prompt():
                self._ask(number, command)
            case EndPrompt():
                self._take_back(command.prompt)
                self._reply(number, Done())
            case StartAudio() | AudioChunk() | EndAudio():
                self._sound(number, command)
            case StartMicrophone() | StopMicrophone():
                self._listen(number, command)
            case TakePhoto():
                self._photograph(number, command)
            case _:
                self._reply(number, self._other(command))

    def _other(self, command: Command | Event | Reply) -> Reply:
        """Handle the commands that only some families have."""
        return Failed("unsupported", type(command).__name__)

    @property
    def _lens(self) -> SimLens:
        return self._glasses.lenses[self._side]

    def _lacking(self, command: Command | Event | Reply) -> str | None:
        known = self._glasses.capabilities
        if isinstance(command, Prompt | EndPrompt) and known.get("prompt") is False:
            # a script's `caps prompt=false`: glasses that only show pages
            return "question of its own"
        need = _NEEDS.get(type(command))
        return need if need and known.get(need) is not True else None

    def _drawn(self, command: ShowPage | UpdatePage | ClearPage) -> Reply:
        lens = self._lens
        drawn: Drawn | None
        match command:
            case ShowPage():
                drawn = lens.show(command)
            case UpdatePage():
                drawn = lens.update(command)
            case ClearPage():
                drawn = lens.clear()
        if drawn is None:
            return Failed("no_scene", f"{command.scene!r} page {command.page} is not on the lens")  # type: ignore[union-attr]
        self._glasses.tell(self._glasses.lens_report())
        return Done(drawn=drawn.lit, clipped=drawn.clipped)

    # -------------------------------------------------------------- prompt

    def _ask(self, number: int | None, prompt: Prompt) -> None:
        if self._asked is not None:
            self._reply(number, Failed("busy", f"prompt {self._asked[0]} is open"))
            return
        drawn = self._lens.ask(prompt.lines)
        self._reply(number, Done(drawn=drawn.lit, clipped=drawn.clipped))
        report = self._glasses.lens_report()
        self._glasses.tell({**report, "event": "prompt", "prompt": prompt.prompt})
        self._asked = prompt.prompt, self._spawn(self._give_up(prompt.timeout_s))
        self._asked_at = self._glasses.time.now()

    async def _give_up(self, timeout_s: float) -> None:
        await self._glasses.time.rest(timeout_s)
        self._answer(Answer.TIMEOUT)

    def _answer(self, answer: Answer) -> None:
        """Close the prompt with its first answer at once: a second gesture is a gesture again."""
        asked = self._close_prompt()
        if asked is not None:
            self.tell(PromptAnswered(asked, answer))
            told = {"event": "prompt.answered", "prompt": asked, "answer": answer.value}
            self._glasses.tell(told)
            self._glasses.tell(self._glasses.lens_report())

    def _take_back(self, wanted: int | None) -> None:
        if self._asked is not None and wanted in (None, self._asked[0]):
            asked = self._close_prompt()
            self._glasses.tell({"event": "prompt.ended", "prompt": asked})
            self._glasses.tell(self._glasses.lens_report())

    def _close_prompt(self) -> int | None:
        """Remove the open prompt from the lens and return its number."""
        if self._asked is None:
            return None
        (asked, waiting), self._asked = self._asked, None
        if waiting is not asyncio.current_task():
            waiting.cancel()
        self._lens.answered()
        return asked

    def gestured(self, gesture: Gesture, *, side: Side | None = None) -> bool:
        """Let a gesture answer the prompt on the lens (unless too early), else report it."""
        if self._asked is None or gesture not in _ALLOWS | _DENIES:
            return self.tell(Gestured(gesture, side))
        if self._glasses.time.now() - self._asked_at < TOO_SOON_S:
            return True
        self._answer(Answer.ALLOW if gesture in _ALLOWS else Answer.DENY)
        return True

    # -------------------------------------------------------------- camera

    def _photograph(self, number: int | None, order: TakePhoto) -> None:
        """Take a photo and send it after the answer to its order."""
        self._reply(number, Done())
        jpeg = self._glasses.camera.take(*PHOTO_SIZES[order.size])
        self._glasses.tell({"event": "photo", "size": order.size.value, "bytes": len(jpeg)})
        self.tell(PhotoTaken(order.photo, jpeg))

    # -------------------------------------------------------------- sound

    def _sound(self, number: int | None, command: StartAudio | AudioChunk | EndAudio) -> None:
        speaker = self._glasses.speaker
        try:
            match command:
                case StartAudio():
                    speaker.start(command.stream, command.format, command.rate)
                    self._reply(number, Done())
                case AudioChunk():
                    speaker.feed(command.stream, command.frames)
                case EndAudio(flush=True):
                    self._played(number, speaker.flush(command.stream))
                case EndAudio():
                    self._spawn(self._drain(number, command.stream))
        except SpeakerError as refused:
            self._reply(number, Failed(refused.code, str(refused)))

    async def _drain(self, number: int | None, stream: int) -> None:
        try:
            self._played(number, await self._glasses.speaker.drain(stream))
        except SpeakerError as refused:
            self._reply(number, Failed(refused.code, str(refused)))

    def _played(self, number: int | None, heard: HeardSound) -> None:
        self._reply(number, Done(samples=heard.samples))
        self._glasses.report_sound(heard)

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        name, opened = "microphone stream", self._listening
        failed: Failed | None = None
        if isinstance(command, StopMicrophone):
            if opened is None or opened[0] != command.stream:
                failed = Failed("no_stream", f"{name} {command.stream} is not open")
            else:
                opened[1].cancel()
                self._listening = None
        elif opened is not None:
            failed = Failed("busy", f"{name} {opened[0]} is open")
        elif command.format is not AudioFormat.PCM16:
            failed = Failed("unsupported", f"{command.format}; the microphone speaks pcm16")
        else:
            self._listening = (command.stream, self._spawn(self._hear(command.stream)))
        self._reply(number, failed or Done())
        if failed is None:
            self._glasses.tell({"event": "microphone", "open": self._listening is not None})

    async def _hear(self, stream: int) -> None:
        pace = Pace(self._glasses.time, CHUNK_MS / 1000)
        with self._glasses.microphone.recording() as read:
            for index in itertools.count():
                await pace.wait()
                await self._send_sound(MicrophoneChunk(stream, index, (read(CHUNK_SAMPLES),)))

    async def _send_sound(self, chunk: MicrophoneChunk) -> None:
        """Send a chunk, as the faults allow. A central that is too slow loses sound, as on
        hardware; one that gets it faster than in real time is waited for.
        """
        glasses = self._glasses
        faults = glasses.faults[self._side].sound
        if faults.cutting and glasses.microphone.half_heard:
            faults.cutting = False
            self._link.hang_up()
        while glasses.time.speed > 1 and self._codec.backlog() >= MAX_VOICE_BACKLOG:
            await glasses.time.rest(CHUNK_MS / 1000)
        if self._codec.backlog() < MAX_VOICE_BACKLOG:
            for passed in faults.pass_on(chunk, glasses.time.now()):
                self.tell(passed)
