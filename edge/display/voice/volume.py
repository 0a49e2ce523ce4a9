"""The volume of the voice: what the wearer set, kept over restarts, else what is configured."""

from typing import Final

from edge.display.voice.tts import TextToSpeech
from edge.storage.notes import Notes

_NOTE: Final = "audio.volume"


class VoiceVolume:
    """Sets the volume of a voice, in percent; 0 is silent."""

    def __init__(self, voice: TextToSpeech, notes: Notes) -> None:
        self._voice = voice
        self._notes = notes
        self._by_wearer = False

    async def restore(self) -> None:
        """Take what the wearer set before this daemon started."""
        percent = await self._notes.get(_NOTE)
        if isinstance(percent, int) and not isinstance(percent, bool) and 0 <= percent <= 100:
            self._by_wearer, self._voice.volume = True, percent

    async def set(self, percent: int) -> None:
        """Take the wearer's volume, from the next sentence on."""
        await self._notes.put(_NOTE, percent)
        self._by_wearer, self._voice.volume = True, percent

    def configure(self, percent: int) -> None:
        """Take the configured volume, unless the wearer has set another."""
        if not self._by_wearer:
            self._voice.volume = percent
