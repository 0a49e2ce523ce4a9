"""Spoken notes of finished glasses: listed, fetched as words or as sound, deleted, and an honest
word when none comes.
"""

import asyncio
import base64

import pytest

from edge.listening_ports import CannotListen, RecognitionFailed
from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesLost
from edge.tools.glasses_questions import GlassesQuestions
from edge.tools.media import voice_notes
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import AudioFormat, Done, VoiceNote, VoiceNoteFetched
from firmware_bridge.own_commands import DeleteVoiceNote, FetchVoiceNote
from tests.unit.tools.media.test_photos import record
from tools_cache.api.tool import ErrorCode, ToolFailure

AT = 1_764_338_590  # 2025-11-28 14:03:10
KEPT = (VoiceNote(1, AT, 7), VoiceNote(2, 60))
LISTED = [{"note": 1, "at": "2025-11-28 14:03:10"}, {"note": 2, "at": "1970-01-01 00:01:00"}]
SOUND = VoiceNoteFetched(2, bytes(range(200)))


class Glasses:
    """Glasses that send `notes` once they are asked for one, or raise `fault`."""

    def __init__(self, *notes, kept=KEPT, model="even_g1", ready=True, fault=None, lost=False):
        self.notes, self.fault, self.lost = notes, fault, lost
        self.state = GlassesStatus(ready=ready, capabilities=record(model), voice_notes=kept)
        self.bus, self.told, self.heard = Bus(), [], []
        self.words = "buy milk"
        self.file = b"RIFF"
        self.questions = GlassesQuestions(self, self.bus, self.recognise, self.wave)

    def status(self):
        return self.state

    def receive_voice_notes(self, take):
        self.give = take

    async def request(self, command, *, timeout_s):
        assert 0 < timeout_s < 40
        self.told.append(command)
        if self.fault is not None:
            raise self.fault
        for each in self.notes:
            self.give(each)
        if self.lost:
            self.bus.publish(GlassesLost("gone"))
        return Done()

    async def recognise(self, form, frames):
        self.heard.append((form, frames))
        if isinstance(self.words, str):
            return self.words
        raise self.words

    async def wave(self, form, frames):
        if isinstance(self.file, bytes):
            return self.file + f" of {len(frames)} {form}".encode()
        raise self.file

    async def fails(self, question="voice_note", note=2):
        with pytest.raises(ToolFailure) as failed:
            async with asyncio.timeout(5):
                await self.questions(question, {"note": note})
        return failed.value.error


async def test_the_notes_are_listed_by_the_clock_of_the_glasses():
    glasses = Glasses()
    assert await glasses.questions("voice_notes", {}) == {"known": True, "notes": LISTED}
    assert glasses.told == []
    nothing = Glasses(kept=None)
    assert await nothing.questions("voice_notes", {}) == {"known": False, "notes": []}


async def test_the_words_of_a_note_are_those_that_were_recognised():
    glasses = Glasses(VoiceNoteFetched(1, b"another"), SOUND)
    found = await glasses.questions("voice_note", {"note": 2})
    assert found == {"note": 2, "seconds": 0.1, "words": "buy milk"}
    assert glasses.told == [FetchVoiceNote(2)]
    ((form, frames),) = glasses.heard
    assert (form, len(frames), b"".join(frames)) == (AudioFormat.LC3, 10, SOUND.sound)


async def test_without_a_recogniser_the_sound_is_returned_as_a_file():
    glasses = Glasses(SOUND)
    glasses.words = RecognitionFailed("no recogniser is installed")
    found = await glasses.questions("voice_note", {"note": 2})
    assert (found["seconds"], found["why_no_words"]) == (0.1, "no recogniser is installed")
    assert base64.b64decode(found["wave"]) == b"RIFF of 10 lc3"
    glasses.file = CannotListen("the sound codec LC3 is not installed")
    assert (await glasses.fails()).code is ErrorCode.TOOL_UNAVAILABLE


async def test_a_note_is_deleted_and_the_others_are_returned():
    glasses = Glasses()
    assert (await glasses.questions("remove_voice_note", {"note": 2}))["notes"] == LISTED
    assert glasses.told == [DeleteVoiceNote(2)]


@pytest.mark.parametrize("question", ["voice_note", "remove_voice_note"])
async def test_a_note_that_is_not_in_their_list_is_not_asked_for(question):
    glasses = Glasses()
    error = await glasses.fails(question, 3)
    assert (error.code, glasses.told) == (ErrorCode.INVALID_ARGUMENTS, [])
    unknown = Glasses(kept=None, fault=CommandRefused("busy", "the right side refused"))
    assert (await unknown.fails(question, 3)).code is ErrorCode.NOT_ACCEPTED
    assert len(unknown.told) == 1, "without a list they are asked"


@pytest.mark.parametrize(
    ("glasses", "code"),
    [
        (Glasses(fault=GlassesAway("gone")), ErrorCode.SESSION_INACTIVE),
        (Glasses(fault=CommandTimeout("silence")), ErrorCode.TIMEOUT),
        (Glasses(fault=CommandRefused("busy", "no")), ErrorCode.NOT_ACCEPTED),
        (Glasses(ready=False), ErrorCode.SESSION_INACTIVE),
        (Glasses(model="even_g2"), ErrorCode.UNSUPPORTED),
        (Glasses(lost=True), ErrorCode.SESSION_INACTIVE),
        (Glasses(VoiceNoteFetched(1, b"")), ErrorCode.TIMEOUT),
    ],
    ids=["away", "silent", "refused", "not-ready", "none-kept", "lost", "another-note"],
)
async def test_what_went_wrong_is_said(monkeypatch, glasses, code):
    monkeypatch.setattr(voice_notes, "ARRIVE_S", 0.05)
    assert (await glasses.fails()).code is code
    glasses.give(SOUND) if glasses.told else None
    assert glasses.heard == []
