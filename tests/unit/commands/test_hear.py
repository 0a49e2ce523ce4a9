"""`glassd hear`: a file or a spoken text reaches the microphone of simulated glasses."""

import asyncio
import io
import json
import struct
import sys
import wave
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from edge import cli
from edge.demo.speech import NoSpeech, speak
from firmware_bridge.catalog import find
from firmware_bridge.sim.control import ControlChannel, MockFeed
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.wearer import ScriptedWearer

pytestmark = pytest.mark.enable_socket
SAMPLES = struct.pack("<1600h", *range(1, 1601))
WITHIN_S = 60.0


def wav_of(samples: bytes) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples)
    return out.getvalue()


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "a b.wav"
    path.write_bytes(wav_of(SAMPLES))
    return path


@asynccontextmanager
async def simulator(tmp_path, where=None):
    glasses = MockGlasses(find("mock:full"), out_dir=tmp_path, tell=lambda _: None)
    wearer = ScriptedWearer(glasses, inject=None, leave=lambda: None)
    control = ControlChannel(where or str(tmp_path / "m.sock"), glasses, wearer, MockFeed())
    try:
        yield glasses, await control.open()
    finally:
        await control.close()


async def run(*words) -> int:
    async with asyncio.timeout(WITHIN_S):
        return await asyncio.to_thread(cli.main, ["hear", *words])


def recorded(glasses, samples: int) -> bytes:
    with glasses.microphone.recording() as read:
        return read(samples)


@pytest.mark.requirement("I14-hear")
@pytest.mark.parametrize("where", [None, "tcp:127.0.0.1:0"])
async def test_a_file_is_played_to_the_microphone(tmp_path, capsys, sound, where):
    async with simulator(tmp_path, where) as (glasses, control):
        assert await run(str(sound), "--control", control) == 0
        assert capsys.readouterr().out == (
            "playing 0.1 s of sound; the microphone is off, and the sound waits 10 s\n"
        )
        assert recorded(glasses, 1600) == SAMPLES
        with glasses.microphone.recording() as read:
            assert await run(str(sound), "--control", control, "--json") == 0
            answer = json.loads(capsys.readouterr().out)
            assert (answer["noticed"], answer["seconds"]) == (True, 0.1)
            assert read(1600) == SAMPLES


async def test_a_large_file_is_read_by_the_simulator(tmp_path, monkeypatch, sound):
    monkeypatch.setattr("edge.commands.hear.MAX_SENT", 100)
    async with simulator(tmp_path) as (glasses, control):
        assert await run(str(sound), "--control", control) == 0
        assert recorded(glasses, 1600) == SAMPLES


async def test_standard_input_is_played(tmp_path, monkeypatch):
    piped = SimpleNamespace(buffer=io.BytesIO(wav_of(SAMPLES)), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", piped)
    async with simulator(tmp_path) as (glasses, control):
        assert await run("-", "--control", control) == 0
        assert recorded(glasses, 1600) == SAMPLES


@pytest.mark.requirement("I14-hear")
async def test_a_text_is_spoken_into_the_microphone(tmp_path, capsys):
    async with simulator(tmp_path) as (glasses, control):
        assert await run("--say", "set a timer for five minutes", "--control", control) == 0
        assert "playing 1." in capsys.readouterr().out
        heard = recorded(glasses, 16000)
        assert max(struct.unpack("<16000h", heard)) > 2000


async def test_the_simulator_of_a_demo_is_found_beside_its_daemon(tmp_path, sound):
    (tmp_path / "control.sock").touch()
    async with simulator(tmp_path, str(tmp_path / "mock.sock")) as (glasses, _):
        assert await run(str(sound), "--socket", str(tmp_path / "control.sock")) == 0
        assert recorded(glasses, 1600) == SAMPLES


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "name one: a WAV file, or --say TEXT"),
        (["a.wav", "--say", "b"], "name one: a WAV file, or --say TEXT"),
        (["none.wav"], "none.wav: no such file"),
        (["text.wav"], "text.wav is no WAV file"),
        (["broken.wav"], "it ends too early"),
        (["--say", "x" * 501], "a text has 1 to 500 characters; this one has 501"),
    ],
)
async def test_what_cannot_be_played_is_said(tmp_path, capsys, monkeypatch, words, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.wav").write_text("hello")
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    async with simulator(tmp_path) as (_, control):
        assert await run(*words, "--control", control) in (1, 2)
    said = capsys.readouterr().err
    assert problem in said
    assert "next:" in said


async def test_without_a_simulator_it_says_how_to_start_one(tmp_path, capsys, sound):
    assert await run(str(sound), "--socket", str(tmp_path / "none.sock")) == 1
    assert "glassd sim MODEL --control PATH" in capsys.readouterr().err
    assert await run(str(sound), "--control", str(tmp_path / "none.sock")) == 1
    assert "does not answer: No such file" in capsys.readouterr().err


def test_without_a_voice_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("edge.display.voice.tts.find_spec", lambda _name: None)
    monkeypatch.setattr("edge.display.voice.tts._has_espeak", lambda: False)
    with pytest.raises(NoSpeech, match="no voice on this machine") as why:
        speak("hello")
    assert why.value.fix == "install glassd[voice] or espeak-ng"
