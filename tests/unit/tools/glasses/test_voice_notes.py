"""Spoken notes of finished glasses: listed, fetched as words or as sound, deleted, and an honest
word when none comes.
"""

import asyncio
import base64
import io
import math
import struct
from itertools import pairwise

import pytest

from edge.listening_ports import RecognitionFailed
from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesLost
from edge.tools import voice_notes
from edge.tools.glasses_questions import GlassesQuestions
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.lc3 import FRAME_BYTES, Encoder
from firmware_bridge.messages import AudioFormat, Done, VoiceNote, VoiceNoteFetched
from firmware_bridge.own_commands import DeleteVoiceNote, FetchVoiceNote
from tests.system import needs
from tests.unit.tools.test_photos import record
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
        self.questions = GlassesQuestions(self, self.bus, self.recognise)

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


@needs("liblc3")
async def test_without_a_recogniser_the_sound_is_returned_as_a_file():
    encoder = Encoder(20)
    tone = [round(12_000 * math.sin(at * math.tau / 40)) for at in range(16_000)]  # 400 Hz, 1 s
    pcm = struct.pack(f"<{len(tone)}h", *tone)
    starts = range(0, len(pcm), FRAME_BYTES)
    sound = b"".join(encoder.encode(pcm[at : at + FRAME_BYTES]) for at in starts)
    glasses = Glasses(VoiceNoteFetched(1, sound))
    glasses.words = RecognitionFailed("no recogniser is installed")
    found = await glasses.questions("voice_note", {"note": 1})
    assert (found["seconds"], found["why_no_words"]) == (1.0, "no recogniser is installed")
    file = io.BytesIO(base64.b64decode(found["wave"]))
    assert file.read(20)[8:16] == b"WAVEfmt "
    form, channels, rate = struct.unpack("<HHI", file.read(8))
    assert (form, channels, rate) == (7, 1, 8000), "µ-law, as G.711 has it"
    data = file.getvalue()[46:][:8000]
    heard = [_linear(code) for code in data]
    crossings = sum(a < 0 <= b for a, b in pairwise(heard))
    assert (len(data), crossings) == (8000, pytest.approx(400, abs=5))
    assert max(heard) == pytest.approx(12_000, rel=0.15)


def _linear(code):
    """What a player makes of a byte of µ-law."""
    code = ~code & 0xFF
    size = ((code & 0x0F) << 3 | 0x84) << (code >> 4 & 7)
    return 0x84 - size if code & 0x80 else size - 0x84


async def test_a_long_note_without_a_recogniser_says_what_would_help():
    glasses = Glasses(VoiceNoteFetched(2, bytes(20 * 100 * 17)))
    glasses.words = RecognitionFailed("install one")
    error = await glasses.fails()
    assert error.code is ErrorCode.NOT_ACCEPTED
    assert "17 s" in error.message
    assert "install one" in error.message


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
