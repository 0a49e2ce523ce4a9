"""Spoken notes that the glasses keep: which there are, what is said in one, and deleting one.
Imported at the first question.
"""

import asyncio
import base64
from collections.abc import AsyncIterable, Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from edge.listening_ports import CannotListen, RecognitionFailed
from edge.ports import GlassesPort
from edge.runtime.bus import Bus
from edge.runtime.events import DaemonEvent, GlassesLost
from edge.runtime.first_completed import run_unless
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, OwnCommand, VoiceNoteFetched
from firmware_bridge.own_commands import DeleteVoiceNote, FetchVoiceNote
from tools_cache.api.tool import ErrorCode, Json, ToolFailure

ARRIVE_S: Final = 40.0
"""Seconds until a note is here: one of 30 s has 300 packets."""
LC3_BYTES: Final = 20
"""Of a frame of 10 ms."""
Frames = tuple[bytes, ...]
Words = Callable[[AudioFormat, Frames], Awaitable[str]]
Wave = Callable[[AudioFormat, Frames], Awaitable[bytes]]
Request = Callable[[OwnCommand], Awaitable[None]]


class VoiceNotes:
    """`words` recognises sound, or raises `RecognitionFailed`; `wave` makes a WAV file of it, or
    raises `CannotListen`; `request` sends a command, or raises `ToolFailure`.
    """

    def __init__(
        self, glasses: GlassesPort, bus: Bus, words: Words, wave: Wave, request: Request
    ) -> None:
        self._glasses = glasses
        self._bus = bus
        self._words = words
        self._wave = wave
        self._request = request
        self._coming: asyncio.Future[VoiceNoteFetched] | None = None
        self._number = -1
        glasses.receive_voice_notes(self._receive)

    def list(self) -> dict[str, Json]:
        """Return the notes that the glasses reported, newest first. `known`: they reported some."""
        notes = self._glasses.status().voice_notes
        return {
            "known": notes is not None,
            "notes": [{"note": each.note, "at": _moment(each.at)} for each in notes or ()],
        }

    async def fetch(self, note: int) -> dict[str, Json]:
        """Return what is said in a note, else its sound. Raises `ToolFailure`."""
        self._check_there(note)
        fetched = await self._fetch(note)
        sound = fetched.sound
        frames = tuple(sound[at : at + LC3_BYTES] for at in range(0, len(sound), LC3_BYTES))
        found = {"note": note, "seconds": len(frames) / 100}
        try:
            return {**found, "words": await self._words(fetched.format, frames)}
        except RecognitionFailed as failed:
            why = str(failed)
        try:
            wave = await self._wave(fetched.format, frames)
        except CannotListen as failed:
            raise _failure(ErrorCode.TOOL_UNAVAILABLE, str(failed)) from None
        return {**found, "why_no_words": why, "wave": base64.b64encode(wave).decode()}

    async def remove(self, note: int) -> dict[str, Json]:
        """Delete a note. Raises `ToolFailure`."""
        self._check_there(note)
        await self._request(DeleteVoiceNote(note))
        return self.list()

    def _check_there(self, note: int) -> None:
        """Refuse a note that is not in their list; without a list they are asked."""
        notes = self._glasses.status().voice_notes
        if notes is not None and note not in [each.note for each in notes]:
            raise _failure(
                ErrorCode.INVALID_ARGUMENTS,
                f"The glasses keep no spoken note {note}",
                "glasses:voice_notes gives their numbers",
            )

    async def _fetch(self, note: int) -> VoiceNoteFetched:
        coming = self._coming = asyncio.get_running_loop().create_future()
        self._number = note
        try:
            with self._bus.listen(calls=False) as events:
                await self._request(FetchVoiceNote(note))
                async with timeout(ARRIVE_S):
                    done = await run_unless(_wait(coming), _lost(events))
        except TimeoutError:
            raise _failure(ErrorCode.TIMEOUT, "The note did not arrive") from None
        finally:
            self._coming = None
        if done is None:
            away = "The glasses went away before the note arrived"
            raise _failure(ErrorCode.SESSION_INACTIVE, away)
        return done.value

    def _receive(self, fetched: VoiceNoteFetched) -> None:
        """Pass on the note that is waited for; others are dropped."""
        coming = self._coming
        if coming is not None and fetched.note == self._number and not coming.done():
            coming.set_result(fetched)


async def _wait(coming: "asyncio.Future[VoiceNoteFetched]") -> VoiceNoteFetched:
    return await coming


async def _lost(events: AsyncIterable[DaemonEvent]) -> None:
    async for event in events:
        if isinstance(event, GlassesLost):
            return


def _moment(at: int) -> str:
    """Return a time of the glasses' clock, which shows local time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _failure(code: ErrorCode, message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure.of(code, message, suggestion=suggestion)
