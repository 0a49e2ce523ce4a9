"""The volume: the wearer's comes first and outlives the daemon; else the configured one counts."""

import pytest

from edge.display.voice.tts import TextToSpeech
from edge.display.voice.volume import VoiceVolume
from edge.storage.notes import Notes
from tests.unit.storage.support import open_db


@pytest.fixture
async def notes(tmp_path):
    db = await open_db(tmp_path)
    yield Notes(db)
    await db.close()


async def test_what_the_wearer_sets_wins_over_the_configuration_and_outlives_the_daemon(notes):
    voice = TextToSpeech(volume=80)
    volume = VoiceVolume(voice, notes)
    await volume.restore()
    assert voice.volume == 80
    volume.configure(60)
    assert voice.volume == 60
    await volume.set(0)
    volume.configure(90)
    assert voice.volume == 0

    later = TextToSpeech(volume=90)
    again = VoiceVolume(later, notes)
    await again.restore()
    again.configure(70)
    assert later.volume == 0


@pytest.mark.parametrize("note", ["loud", True, 101, -1, 40.5, {}])
async def test_a_note_that_is_no_volume_does_not_count(notes, note):
    await notes.put("audio.volume", note)
    voice = TextToSpeech(volume=80)
    await VoiceVolume(voice, notes).restore()
    assert voice.volume == 80
