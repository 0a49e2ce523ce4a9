"""What the wearer hears: measured as the glasses decoded it, over the air.

Languages beyond the built-in ones need `espeak-ng`, which is also asked without us in between.
"""

import asyncio
import shutil
import subprocess
import wave
from contextlib import asynccontextmanager
from io import BytesIO

import pytest

from edge.core.config_changes import plan
from edge.display.voice.tts import TextToSpeech
from edge.ports import NobodyToAsk, Question
from firmware_bridge.messages import Answer, Gesture
from tests.scenarios.world import until, world
from tests.sounds import measure, strength, wyoming_server
from tests.system import needs

BUILT_IN = {
    "en-GB": "The train for the airport leaves from platform nine at noon.",
    "de-DE": "Der Zug zum Flughafen fährt heute um zwölf von Gleis neun ab.",
    "es-ES": "El tren para el aeropuerto sale hoy a las doce de la vía nueve.",
    "fr-FR": "Le train pour l'aéroport part à midi de la voie neuf, dans une heure.",
    "it-IT": "Il treno per l'aeroporto parte oggi alle dodici dal binario nove.",
}
BY_ESPEAK = {
    "ru": "Поезд в аэропорт отправляется сегодня в полдень.",
    "uk": "Сьогодні потяг до аеропорту відправляється опівдні, і він їде недовго.",
    "el": "Το τρένο για το αεροδρόμιο φεύγει σήμερα το μεσημέρι.",
    "pl": "Pociąg na lotnisko odjeżdża dziś w południe z peronu dziewiątego.",
    "tr": "Havaalanı treni bugün öğlen dokuzuncu perondan kalkıyor, çok hızlı.",
    "hi": "हवाई अड्डे की ट्रेन आज दोपहर बारह बजे चलेगी।",
    "ar": "يغادر قطار المطار اليوم عند الظهر.",
    "ko": "공항으로 가는 기차는 오늘 정오에 출발합니다.",
    "ta": "விமான நிலையத்திற்கான ரயில் இன்று நண்பகலில் புறப்படும்.",
    "ka": "აეროპორტის მატარებელი დღეს შუადღისას გადის.",
}
PREROLL_S = 0.3


@asynccontextmanager
async def wearing(folder, model="mock:audio", **audio):
    """A daemon without a cloud, and these glasses."""
    async with world(folder, model, audio=audio) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        yield place


async def say(place, text):
    """The report of a `glasses:say`, and the measures of what was played."""
    before = len(place.spoken())
    answer = await place.call("glasses:say", {"text": text})
    assert answer.ok, answer.error
    report = answer.meta["delivery"]
    heard = place.spoken()[before:]
    return report if isinstance(report, dict) else {"state": report}, [
        measure(stream["wav"]) for stream in heard
    ]


def without_espeak(monkeypatch, folder):
    """Leave no program in the PATH; the voice's child inherits it."""
    (folder / "no-programs").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(folder / "no-programs"))


def seconds_of_espeak(text, voice):
    """How long espeak-ng takes with the voice of a language, asked without us in between."""
    program = shutil.which("espeak-ng")
    done = subprocess.run(
        [program, "-b", "1", "-v", voice, "--stdin", "--stdout"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    with wave.open(BytesIO(done.stdout)) as file:
        rate = file.getframerate()
    return (len(done.stdout) - 44) / 2 / rate


@pytest.fixture
def voices(monkeypatch):
    """The engine and voice of each part that was spoken."""
    chosen, make = [], TextToSpeech._make

    async def record(self, *args, **more):
        utterance = await make(self, *args, **more)
        chosen.append(utterance.voice)
        return utterance

    monkeypatch.setattr(TextToSpeech, "_make", record)
    return chosen


def judge(heard, language):
    """Energy, and the silence before; not one sample above -1 dBFS."""
    assert PREROLL_S - 0.03 <= heard.lead_s <= PREROLL_S + 0.35, language
    assert heard.peak_db <= -1.0, language
    assert -32 <= heard.speech_db <= -18, f"{language}: {heard.speech_db}"


# ------------------------------------------------------------------ languages


@pytest.mark.requirement("I13-sound-languages", "I13-sound-preroll", "I13-sound-volume")
async def test_each_sentence_is_heard_in_the_built_in_voice_of_its_language(tmp_path, voices):
    async with wearing(tmp_path, volume=100) as place:
        for voice, text in BUILT_IN.items():
            report, (heard,) = await say(place, text)
            assert report == {"state": "spoken"}
            assert voices[-1] == f"built-in {voice}"
            assert 3 < heard.seconds - PREROLL_S < 7, voice
            judge(heard, voice)


@needs("espeak-ng")
@pytest.mark.requirement("I13-sound-languages", "I13-sound-volume")
async def test_ten_more_languages_are_heard_where_espeak_is_installed(tmp_path, voices):
    async with wearing(tmp_path, volume=100) as place:
        for language, text in BY_ESPEAK.items():
            report, (heard,) = await say(place, text)
            assert report == {"state": "spoken"}, language
            assert voices[-1] == f"espeak-ng {language}"
            expected_s = PREROLL_S + seconds_of_espeak(text, language)
            assert heard.seconds == pytest.approx(expected_s, abs=0.05), language
            judge(heard, language)


@needs("espeak-ng")
@pytest.mark.requirement("I13-sound-languages")
async def test_a_name_in_other_letters_is_spoken_by_a_voice_that_knows_them(tmp_path):
    async with wearing(tmp_path) as place:
        report, (both,) = await say(place, "You meet Александра Петровна there.")
        assert report == {"state": "spoken"}
        _, (less,) = await say(place, "You meet there.")
        assert both.seconds - less.seconds > 0.8


@pytest.mark.requirement("I13-sound-energy")
async def test_without_a_voice_for_it_a_text_is_dropped_and_the_help_named(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    unknown = [text for name, text in BY_ESPEAK.items() if name not in {"pl", "tr"}]
    async with wearing(tmp_path) as place:
        for text in (*unknown, "今日は天気がいいです。", "你好，世界"):
            report, heard = await say(place, text)
            assert (report["state"], heard) == ("dropped", []), text
            assert "install espeak-ng" in report["reason"], text


@pytest.mark.requirement("I13-sound-energy")
async def test_words_without_a_voice_are_shown_with_the_help_named(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    async with wearing(tmp_path, "mock:full") as place:
        report, heard = await say(place, "Привет, мир!")
        assert (report["state"], report["downgrade"]) == ("shown", "speech→display")
        assert "no voice for ru: install espeak-ng" in report["reason"]
        assert heard == []


@pytest.mark.requirement("I13-sound-energy")
async def test_a_part_without_sound_is_named_while_the_rest_is_spoken(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    async with wearing(tmp_path) as place:
        report, (heard,) = await say(place, "You meet Александра Петровна at the station.")
        assert report["state"] == "spoken"
        assert "1 of 3 parts have no sound: no voice for ru" in report["reason"]
        assert heard.peak_db > -30


@pytest.mark.requirement("I13-sound-energy")
async def test_words_of_which_a_part_has_no_sound_are_shown_as_well(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    async with wearing(tmp_path, "mock:full") as place:
        report, (heard,) = await say(place, "You meet Александра there.")
        assert heard.peak_db > -30
        assert (report["state"], report["downgrade"]) == ("shown", "speech→display")
        assert "1 of 3 parts have no sound: no voice for ru" in report["reason"]
        assert place.lens() == ["You meet Александра there."]


# ------------------------------------------------------------------ volume


@pytest.mark.requirement("I13-sound-volume")
async def test_the_volume_that_the_wearer_sets_is_heard_and_outlives_the_daemon(tmp_path):
    async with wearing(tmp_path, volume=100) as place:
        _, (full,) = await say(place, BUILT_IN["en-GB"])
        assert (await place.call("glasses:set", {"volume": 50})).ok
        _, (half,) = await say(place, BUILT_IN["en-GB"])
        assert full.peak_db - half.peak_db == pytest.approx(10, abs=1.5)
        await place.stop_daemon()
        await place.start_daemon(audio={"volume": 90})
        await place.ready()
        assert place.daemon.status()["audio"]["volume"] == 50
        _, (again,) = await say(place, BUILT_IN["en-GB"])
        assert again.peak_db == pytest.approx(half.peak_db, abs=1.5)


@pytest.mark.requirement("I13-sound-volume", "I13-sound-preroll")
async def test_a_reload_changes_volume_and_silence_from_the_next_sentence_on(tmp_path):
    async with wearing(tmp_path, volume=100) as place:
        _, (before,) = await say(place, BUILT_IN["en-GB"])
        new = {"audio": {"volume": 50, "preroll_ms": 1000, "server": "tcp://127.0.0.1:1"}}
        changes = plan(place.daemon.settings, place._settings(new))
        assert set(changes.live) == {"audio.volume", "audio.preroll_ms", "audio.server"}
        place.daemon.reload.applier.prepared(changes.effective)()
        _, (after,) = await say(place, BUILT_IN["en-GB"])
        assert before.peak_db - after.peak_db == pytest.approx(10, abs=1.5)
        assert after.lead_s - before.lead_s == pytest.approx(0.7, abs=0.05)
        assert place.daemon.voice.server == "tcp://127.0.0.1:1"


@pytest.mark.requirement("I13-sound-volume")
@pytest.mark.parametrize("model", ["mock:audio", "mock:full"])
async def test_with_volume_0_nothing_is_spoken_and_the_reason_names_it(tmp_path, model):
    async with wearing(tmp_path, model, volume=0) as place:
        report, heard = await say(place, "The train leaves at noon.")
        assert heard == []
        assert "the volume is 0" in report["reason"]
        if model == "mock:audio":
            assert report["state"] == "dropped"
        else:
            assert (report["state"], report["downgrade"]) == ("shown", "speech→display")
            assert place.lens() == ["The train leaves at noon."]
        assert (await place.call("glasses:set", {"volume": 1})).ok
        report, (quiet,) = await say(place, "The train leaves at noon.")
        assert report == {"state": "spoken"}
        assert -45 < quiet.speech_db < -35


# ------------------------------------------------------------------ what is read


@pytest.mark.requirement("I13-sound-plain")
async def test_markdown_and_addresses_are_not_read_out(tmp_path):
    marked = (
        "# Your **train** leaves\n\n- from `platform` nine\n- see https://rail.example/a/b?c=d&e"
    )
    async with wearing(tmp_path) as place:
        _, (plain,) = await say(place, "Your train leaves\nfrom platform nine\nsee rail.example")
        _, (said,) = await say(place, marked)
        assert (await place.call("glasses:show_text", {"text": marked})).ok
        shown = measure(place.spoken()[-1]["wav"])
        for read in said, shown:
            assert read.seconds == pytest.approx(plain.seconds, abs=0.2)


# ------------------------------------------------------------------ a server


@pytest.mark.requirement("I13-sound-engines")
async def test_a_server_speaks_and_one_that_dies_in_a_sentence_leaves_the_next_voice(tmp_path):
    pytest.importorskip("wyoming")
    with wyoming_server() as address:
        async with wearing(tmp_path, server=address, voice="de-DE") as place:
            await place.daemon.looks.look()
            engines = place.daemon.status()["audio"]["engines"]
            assert engines[0] == {"name": address, "languages": ("de", "th"), "reason": ""}
            report, (tone,) = await say(place, "Hallo du da.")
            assert report == {"state": "spoken"}
            assert tone.seconds == pytest.approx(PREROLL_S + 1.2, abs=0.05), "0.1 s a letter"
            spoken = tone.samples[int(0.4 * 16000) :]
            assert strength(spoken, 300) > 10 * strength(spoken, 600)
            assert tone.peak_db <= -1

            report, (voice,) = await say(place, "^ Guten Morgen, wie geht es dir heute?")
            assert report == {"state": "spoken"}
            assert strength(voice.samples, 300) < strength(spoken, 300) / 5, "no tone: a voice"
            report, (voice,) = await say(place, "Guten Morgen, wie geht es dir heute?")
            assert strength(voice.samples, 300) < strength(spoken, 300) / 5, "it is left alone"


@pytest.mark.requirement("I13-sound-engines")
async def test_a_server_that_is_not_there_is_named_in_the_status(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    async with wearing(tmp_path, server=f"unix://{tmp_path}/nobody") as place:
        report, (heard,) = await say(place, "The train leaves at noon.")
        assert report == {"state": "spoken"}
        assert heard.peak_db > -30
        await place.daemon.looks.look()
        server, built_in, espeak = place.daemon.status()["audio"]["engines"]
        assert "cannot connect" in server["reason"]
        assert built_in["languages"] == ("de", "en", "es", "fr", "it")
        assert espeak["reason"] == "not installed: install espeak-ng"


# ------------------------------------------------------------------ questions


RUSSIAN = Question("pay/ask", "Title: Жук\nSend it to Мария?", 60.0, exact=True)


def ask(place, question):
    return asyncio.ensure_future(place.daemon.stage.ask(question))


@needs("espeak-ng")
@pytest.mark.requirement("I13-sound-question")
async def test_a_question_in_two_scripts_is_spoken_whole_and_can_be_answered(tmp_path):
    async with wearing(tmp_path) as place:
        asking = ask(place, RUSSIAN)
        await until(place.spoken, "the question is spoken")
        await place.answer_question(Gesture.BUTTON)
        assert await asking is Answer.ALLOW
        assert measure(place.spoken()[0]["wav"]).seconds > 3


@pytest.mark.requirement("I13-sound-question")
async def test_a_question_of_which_a_part_cannot_be_spoken_is_not_begun(tmp_path, monkeypatch):
    without_espeak(monkeypatch, tmp_path)
    async with wearing(tmp_path) as place:
        with pytest.raises(NobodyToAsk, match="a part of it cannot be spoken: no voice for ru"):
            await ask(place, RUSSIAN)
        assert place.spoken() == []
