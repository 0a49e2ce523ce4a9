"""From the end of the wearer's sentence to its answer on the lens, beside the recogniser alone and
the tool's call alone; and how far captions lag behind.
"""

import json
import socket
import statistics
import threading
import time
import wave
from array import array
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from edge.core.hearing import expected_of_tools
from edge.core.hearing.grammar import Grammar
from edge.core.tools.snapshot import Entry
from edge.hearing.voice_activity import END_S
from edge.testing import WornGlasses, wear
from tools_cache.api.tool import Source
from tools_cache.registry import manifest

REGISTRY = Path(manifest.__file__).parents[1] / "tool_registry.json"
BAR = 1.5
"""Of the recogniser's own time for the sentence and the tool's call."""
LAG_BAR_MS = 1500.0
RATE = 16000
SENTENCE = "what time is it"
CAPTIONS = [
    f"after the meeting we walked along the river to the {place}"
    for place in "station garden village hotel museum market hospital school library".split()
]
"""The last word of each is the one waited for."""
SOON_S = 30.0
PAUSE_S = 1.5
"""After a page was closed by a gesture, for the next gesture to count."""
_AUDIBLE = 300
"""Of 32768: Pico's own silence at the end of a sentence is quieter."""


def why_not() -> str:
    """Return what is missing to measure it; "" if nothing is."""
    needed = {"moonshine_voice": "ears", "onnxruntime": "ears", "py_nanotts": "voice"}
    return next(
        (f"pip install 'glassd[{extra}]'" for name, extra in needed.items() if not find_spec(name)),
        "",
    )


def measure(sentences: int = 9) -> list[tuple[str, float, str, float]]:
    """[(what, median ms, baseline, its median ms)]."""
    with wear("mock:display") as worn, Watcher(worn.mock.path) as watcher:
        sound = spoken(worn.folder, SENTENCE)
        whole = [_answered_ms(worn, watcher, sound) for _ in range(sentences)]
        calls = [_called_ms(worn, watcher) for _ in range(sentences)]
        lags = _caption_lags_ms(worn, watcher, sentences)
        alone = statistics.median(recognised_ms(sound, sentences)) + statistics.median(calls)
    after = statistics.median(whole)
    pause = END_S * 1e3
    both = "the recogniser and the call alone"
    return [
        ("end of a sentence to its answer on the lens", after, both, alone),
        ("the same, without the pause that ends it", after - pause, both, alone),
        ("captions: end of a sentence to its last word", statistics.median(lags), both, alone),
    ]


class Watcher:
    """What the mock tells, with the time at which it was read here."""

    def __init__(self, path: Path) -> None:
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.connect(str(path))
        self._wire.sendall(b'{"do": "watch"}\n')
        self._seen: list[tuple[float, dict[str, Any]]] = []
        self._more = threading.Condition()
        self._from = 0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._wire.close()

    def mark(self) -> None:
        """What was before is of no interest."""
        self._from = len(self._seen)

    def wait(self, condition: Callable[[dict[str, Any]], bool]) -> float:
        """Return when it was first true of an event since the mark."""
        with self._more:
            found = self._more.wait_for(lambda: self._first(condition), SOON_S)
        if found is None:
            reported = [event for _, event in self._seen[self._from :]]
            raise SystemExit(f"not within {SOON_S:.0f} s; the glasses reported {reported[-5:]}")
        return found

    def _first(self, condition: Callable[[dict[str, Any]], bool]) -> float | None:
        seen = self._seen[self._from :]
        return next((at for at, event in seen if condition(event)), None)

    def _read(self) -> None:
        with self._wire.makefile("rb") as lines:
            for line in lines:
                with self._more:
                    self._seen.append((time.perf_counter(), {"event": "", **json.loads(line)}))
                    self._more.notify_all()


def _answered_ms(worn: WornGlasses, watcher: Watcher, sound: Path) -> float:
    _darken(worn)
    watcher.mark()
    worn.mock.do("double_tap")
    watcher.wait(lambda event: event["event"] == "microphone" and event["open"])
    worn.mock.do("hear", path=str(sound))
    ended = watcher.wait(lambda event: event["event"] == "heard")
    return (watcher.wait(_is_time) - ended) * 1e3


def _called_ms(worn: WornGlasses, watcher: Watcher) -> float:
    _darken(worn)
    watcher.mark()
    began = time.perf_counter()
    worn.call("clock:now")
    return (watcher.wait(_is_time) - began) * 1e3


def _darken(worn: WornGlasses) -> None:
    if worn.lens:
        worn.mock.do("double_tap")
        worn.wait_for(lambda: not worn.lens, what="a dark lens")
    time.sleep(PAUSE_S)


def _is_time(event: dict[str, Any]) -> bool:
    return event["event"] == "lens" and any(":" in line for line in event["lines"])


def _shows(word: str, event: dict[str, Any]) -> bool:
    return event["event"] == "lens" and any(word in line for line in event["lines"])


def _caption_lags_ms(worn: WornGlasses, watcher: "Watcher", sentences: int) -> list[float]:
    worn.call("glasses:captions", {"on": True})
    lags = []
    for text in CAPTIONS[:sentences]:
        sound, last = spoken(worn.folder, text), text.split()[-1]
        watcher.mark()
        worn.mock.do("hear", path=str(sound))
        ended = watcher.wait(lambda event: event["event"] == "heard")
        lags.append((watcher.wait(partial(_shows, last)) - ended) * 1e3)
        time.sleep(PAUSE_S)
    worn.call("glasses:captions", {"on": False})
    return lags


def recognised_ms(sound: Path, times: int) -> list[float]:
    """How long the recogniser alone takes for the words, in this process, already loaded."""
    import numpy as np

    from edge.hearing.engines.moonshine import Moonshine

    with wave.open(str(sound)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    samples = (samples / 32768).astype(np.float32)
    registry = manifest.load(REGISTRY.read_bytes(), source=Source.LOCAL, per_tool_hardware=True)
    tools = [Entry(tool, "") for app in registry.apps for tool in app.tools]
    expected = expected_of_tools.of_tools(tools)
    engine, grammar = Moonshine(), Grammar(expected)
    engine.decode(samples, grammar, final=True)
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        engine.decode(samples, grammar, final=True)
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def spoken(folder: Path, text: str) -> Path:
    """Speak a sentence with Pico into a WAV file that ends with its last sound."""
    from py_nanotts import NanoTTS

    samples = array("h", NanoTTS().speak(text, voice="en-US", volume=0.5))
    loud = [at for at, sample in enumerate(samples) if abs(sample) > _AUDIBLE]
    file = folder / f"{text}.wav"
    with wave.open(str(file), "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        out.writeframes(samples[: loud[-1]].tobytes())
    return file
