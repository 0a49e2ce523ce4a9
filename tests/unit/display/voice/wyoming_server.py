"""A text-to-speech server made of the `wyoming` package, as a process: a tone for each letter.

Its argument may be the path of a socket. A text that begins with `!` is
answered with an error, one with `?` never; at one with `^` it dies in the middle.
"""

import asyncio
import math
import os
import struct
import sys

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.server import AsyncEventHandler
from wyoming.tts import Synthesize

from tests.wyoming_process import serve

RATE = 22050
WHO = Attribution("nobody", "")
VOICES = [
    TtsVoice("anna", WHO, True, None, None, languages=["de_DE"]),
    TtsVoice("somchai", WHO, True, None, None, languages=["th"]),
    TtsVoice("absent", WHO, False, None, None, languages=["fr_FR"]),
]


class Server(AsyncEventHandler):
    async def handle_event(self, event: Event) -> bool:
        if Describe.is_type(event.type):
            program = TtsProgram("tones", WHO, True, None, None, voices=VOICES)
            await self.write_event(Info(tts=[program]).event())
        elif Synthesize.is_type(event.type):
            await self.say(Synthesize.from_event(event))
        return True

    async def say(self, asked: Synthesize) -> None:
        if asked.text.startswith("?"):
            await asyncio.sleep(600)
        if asked.text.startswith("!"):
            await self.write_event(Error("no model for this").event())
            return
        assert asked.voice is not None
        hertz = 300 if asked.voice.name == "anna" else 600
        count = RATE // 10 * len(asked.text)
        pcm = b"".join(
            struct.pack("<h", round(9000 * math.sin(2 * math.pi * hertz * n / RATE)))
            for n in range(count)
        )
        await self.write_event(AudioStart(RATE, 2, 1).event())
        for at in range(0, len(pcm), 2048):
            if asked.text.startswith("^") and at > len(pcm) / 2:
                os._exit(1)
            await self.write_event(AudioChunk(RATE, 2, 1, pcm[at : at + 2048]).event())
        await self.write_event(AudioStop().event())


if __name__ == "__main__":
    asyncio.run(serve(Server, *sys.argv[1:]))
