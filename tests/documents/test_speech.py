"""The blocks of docs/speech.md."""

from edge.config.load import load
from edge.runtime.wyoming import Address
from tests.documents.blocks import block, shows

SPEECH, AUDIO = "docs/speech.md", "[audio]\nserver = "


@shows(SPEECH, AUDIO)
def test_the_address_of_a_server_is_read_as_it_is_written_down(tmp_path):
    file = tmp_path / "glassd.toml"
    text = block(SPEECH, AUDIO).text
    file.write_text(f"version = 1\n{text}", encoding="utf-8")
    assert Address.parse(load(file, {}).audio.server, 0) == Address("192.168.1.20", 10200)
    other = text.partition("or ")[2].strip()
    assert Address.parse(other, 0) == Address(path="/run/piper.sock")
