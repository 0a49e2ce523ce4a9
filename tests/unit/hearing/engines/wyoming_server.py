"""A speech-to-text server made of the `wyoming` package, as a process.

Its arguments are HOW, and perhaps the path of a socket. HOW is how it answers sound:
`measures` with a text that describes the sound it got, `hears` with the words that the English
model of the extra `ears` finds in it, `dies`, `waits` or `fails` at the end of it; `speaks` is a
server of voices, `empty` one without a model. Any other HOW is the answer itself.
"""

import array
import asyncio
import os
import sys

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import (
    AsrModel,
    AsrProgram,
    Attribution,
    Describe,
    Info,
    TtsProgram,
    TtsVoice,
)
from wyoming.server import AsyncEventHandler

from tests.wyoming_process import serve

WHO = Attribution("nobody", "")
MODELS = [
    AsrModel("absent", WHO, False, None, None, languages=["fr"]),
    AsrModel("small", WHO, True, None, None, languages=["en", "de_DE", "de"]),
    AsrModel("other", WHO, True, None, None, languages=["pt_BR", "de"]),
]
HOW = sys.argv[1]
OFFERS = {
    "speaks": Info(
        tts=[
            TtsProgram(
                "tones", WHO, True, None, None, [TtsVoice("a", WHO, True, None, None, ["en"])]
            )
        ]
    ),
    "empty": Info(asr=[AsrProgram("ears", WHO, True, None, None, models=MODELS[:1])]),
}


class Server(AsyncEventHandler):
    language = ""
    form = (0, 0, 0)
    sound = b""

    async def handle_event(self, event: Event) -> bool:
        if Describe.is_type(event.type):
            every = Info(asr=[AsrProgram("ears", WHO, True, None, None, models=MODELS)])
            await self.write_event(OFFERS.get(HOW, every).event())
        elif Transcribe.is_type(event.type):
            self.language = Transcribe.from_event(event).language or ""
        elif AudioStart.is_type(event.type):
            start = AudioStart.from_event(event)
            self.form, self.sound = (start.rate, start.width, start.channels), b""
        elif AudioChunk.is_type(event.type):
            self.sound += AudioChunk.from_event(event).audio
        elif AudioStop.is_type(event.type):
            await self.answer()
        return True

    async def answer(self) -> None:
        if HOW == "dies":
            os._exit(1)
        if HOW == "waits":
            await asyncio.sleep(600)
        if HOW == "fails":
            await self.write_event(Error("no memory for this").event())
            return
        text = await asyncio.get_running_loop().run_in_executor(None, self.recognise)
        await self.write_event(TranscriptStart(language=self.language).event())
        await self.write_event(TranscriptChunk(text[:3]).event())
        await self.write_event(Transcript(text).event())
        await self.write_event(TranscriptStop().event())

    def recognise(self) -> str:
        samples = array.array("h", self.sound)
        if HOW == "measures":
            rate, width, channels = self.form
            return (
                f"{len(samples) / rate:g} s of {rate} Hz, {width} bytes, {channels} channel, from "
                f"{min(samples)} to {max(samples)}, in {self.language or 'any language'}"
            )
        return model(samples) if HOW == "hears" else HOW


def model(samples: "array.array[int]") -> str:
    import numpy as np

    from edge.hearing.engines.moonshine import Moonshine

    engine = Moonshine()
    engine.load()
    return engine.decode(np.array(samples, np.float32) / 32768, None, final=True).text


if __name__ == "__main__":
    asyncio.run(serve(Server, *sys.argv[2:]))
