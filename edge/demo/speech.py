"""Text as sound in the machine's own voice, for the microphone of simulated glasses."""

import asyncio
from typing import Final

from edge.display.voice.tts import MAX_SENTENCE, TextToSpeech, Unspeakable, VoiceUnavailable
from firmware_bridge.messages import AudioFormat

LANGUAGE: Final = "en-US"


class NoSpeech(Exception):
    """A text that cannot be spoken; `fix` is what would help, or ""."""

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.fix = fix


def speak(text: str, language: str = LANGUAGE) -> bytes:
    """Return samples: 16 kHz, mono, 16 bits. Not for a running event loop. Raises `NoSpeech`."""
    return asyncio.run(synthesise(text, language))


async def synthesise(text: str, language: str = LANGUAGE) -> bytes:
    """Return samples: 16 kHz, mono, 16 bits. Raises `NoSpeech`."""
    if not 0 < len(text.strip()) <= MAX_SENTENCE:
        raise NoSpeech(f"a text has 1 to {MAX_SENTENCE} characters; this one has {len(text)}")
    voice = TextToSpeech(language=language)
    try:
        said = await voice.say(text, AudioFormat.PCM16)
    except VoiceUnavailable as why:
        problem, _, fix = str(why).partition(": ")
        raise NoSpeech(problem, fix) from None
    except Unspeakable as why:
        raise NoSpeech(f"{text!r} cannot be spoken: {why}") from None
    finally:
        await voice.close()
    return b"".join(said.frames)[: 2 * said.samples]
