"""A model of the owner's in sherpa-onnx: from the gesture to the answer, and a damaged one."""

import pytest

from tests.scenarios.voice.test_speech_server import (
    hears,
    microphone,
    on_lens,
    push_to_talk,
    speech,
)
from tests.scenarios.world import until
from tests.unit.hearing.models import moonshine_for_sherpa

pytest.importorskip("sherpa_onnx")


@pytest.mark.requirement("I14-sherpa")
async def test_words_of_a_model_in_a_folder_call_a_tool(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    async with hears(tmp_path, "sherpa", model=str(moonshine_for_sherpa(folder))) as place:
        await push_to_talk(place)
        place.mock.glasses.microphone.hear(speech("What time is it?", "en-US"))
        await place.heard("call.answered", tool="clock:now", ok=True)


@pytest.mark.requirement("I14-sherpa", "I14-one-plain-line")
async def test_a_damaged_model_is_one_line_on_the_lens(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in "encoder_model.ort", "decoder_model_merged.ort", "tokens.txt":
        (folder / name).write_bytes(b"junk 0\n")
    async with hears(tmp_path, "sherpa", model=str(folder)) as place:
        await push_to_talk(place)
        await until(lambda: "Speech recognition has stopped" in on_lens(place), "the line")
        await microphone(place, open=False)
