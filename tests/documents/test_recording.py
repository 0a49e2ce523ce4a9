"""The blocks of docs/recording.md: a session of simulated glasses is recorded and replayed, as
printed.
"""

import signal
from contextlib import closing

import pytest

from firmware_bridge.recording.files import read
from firmware_bridge.recording.lines import Header, Line
from tests.documents.blocks import ROOT, block, commands, compare, shows
from tests.documents.place import Place

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
RECORDING = "docs/recording.md"
RECORD, REPLAY = "$ glassd record session.jsonl", "$ glassd sim --replay session.jsonl"


@shows(RECORDING, RECORD, REPLAY)
def test_a_session_is_recorded_and_its_recording_drives_glassd():
    with closing(Place()) as place:
        config = place.write(
            "glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\n'
        )
        place.env["GLASSD_CONFIG"] = str(config)
        simulator = place.start("glassd sim mock:full --radio tcp:127.0.0.1:6402")
        place.start("glassd run")
        place.until(place.is_ready, "the glasses are ready")
        [(command, printed)] = commands(block(RECORDING, RECORD).text)
        compare(printed, place.run(command))
        simulator.close()
        place.until(lambda: not place.is_ready(), "the simulated glasses are gone")
        [(command, printed)] = commands(block(RECORDING, REPLAY).text)
        replaying = place.start(command)
        place.until(place.is_ready, "the recording drives glassd")
        replaying.close()
        said = replaying.said
    compare(printed, said.splitlines()[0] + "\n")
    assert "packets were known to the recording" in said


def test_whatever_ends_a_recording_it_is_written():
    """Ctrl-C, a closed terminal, the end of the system."""
    with closing(Place()) as place:
        config = place.write(
            "glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\n'
        )
        place.env["GLASSD_CONFIG"] = str(config)
        place.start("glassd sim mock:display --radio tcp:127.0.0.1:6402")
        place.start("glassd run")
        for ended in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            place.until(place.is_ready, "the glasses are ready")
            recording = place.start(f"glassd record {ended.name}.jsonl --yes")
            recording.wait_for("recording; Ctrl-C")
            recording.process.send_signal(ended)
            recording.end(0)
            assert read(place.folder / f"{ended.name}.jsonl").header.model == "mock:display"


@shows(RECORDING, '{"glassd_recording": 1')
def test_the_lines_that_are_shown_are_lines_of_a_recording(tmp_path):
    path = tmp_path / "shown.jsonl"
    path.write_text(block(RECORDING, '{"glassd_recording": 1').text, encoding="utf-8")
    recording = read(path)
    assert recording.header.model == "even_g1"
    assert [line.message for line in recording.lines if line.message]


def test_every_field_of_a_line_is_in_the_table():
    text = (ROOT / RECORDING).read_text(encoding="utf-8").partition("## The format")[2]
    fields = {*Header.__struct_fields__, *Line.__struct_fields__} - {"at"}
    assert {field for field in fields if f"`{field}`" not in text} == set()
