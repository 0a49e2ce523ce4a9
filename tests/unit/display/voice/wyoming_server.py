"""A text-to-speech server made of the `wyoming` package, as a process: a tone for each letter.

Run: wyoming_server.py [PATH OF A SOCKET]. Prints its address. A text that begins with `!` is
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


async def main() -> None:
    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(Server(reader, writer).run()))

    tasks: set[asyncio.Future[None]] = set()
    if len(sys.argv) > 1:
        listener = await asyncio.start_unix_server(handler, sys.argv[1])
        address = f"unix://{sys.argv[1]}"
    else:
        listener = await asyncio.start_server(handler, "127.0.0.1", 0)
        address = f"tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
