"""Every file in tests/recordings is a test: what glasses said must be understood as it was when
it was recorded, and what they were sent must be read by the codec in their role.

A new file needs nothing but its place; docs/recording.md says how it is made.
"""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from firmware_bridge.messages import ShowPage
from firmware_bridge.recording.files import MAX_BYTES, BadRecording, Recording, read
from firmware_bridge.recording.lines import GLASSD, GLASSES, from_tree
from firmware_bridge.recording.playback import play_to_central, play_to_glasses

FOLDER = Path(__file__).parents[1] / "recordings"
FILES = sorted(FOLDER.glob("*.jsonl"))
recordings = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_recordings_and_nothing_else():
    assert {"mock_full", "even_g1"} <= {path.stem for path in FILES}
    assert sorted(FOLDER.iterdir()) == FILES


@recordings
def test_the_central_understands_what_was_understood(path):
    played = play_to_central(read(path))
    assert not played.problems
    assert played.messages


@recordings
def test_the_glasses_read_what_was_written(path):
    played = play_to_glasses(read(path))
    assert not played.problems
    assert [each for each in played.messages if isinstance(each, ShowPage)]


@recordings
def test_no_address_serial_number_or_content_is_in_it(path):
    text, recording = path.read_text(encoding="utf-8"), read(path)
    assert not re.findall(r"(?i)\b[0-9a-f]{2}(?:[:_-][0-9a-f]{2}){5}\b|SIM-\w+", text)
    assert not re.findall(r"S1[A-Z0-9]{8,}", text)
    assert recording.header.sound is recording.header.photos is False
    frames = [frame for line in recording.lines for frame in (line.message or {}).get("frames", ())]
    assert not [frame for frame in frames if frame["hex"]]


@recordings
def test_a_notification_that_is_changed_is_noticed(path):
    recording = read(path)
    at = next(n for n, line in enumerate(recording.lines) if line.to == GLASSD and line.data)
    missing = Recording(recording.header, recording.lines[:at] + recording.lines[at + 1 :])
    assert play_to_central(missing).problems
    torn = [
        replace(line, data=line.data[:2]) if line.to == GLASSES and line.is_packet else line
        for line in recording.lines
    ]
    assert play_to_glasses(Recording(recording.header, tuple(torn))).problems


@recordings
def test_a_message_that_was_another_is_noticed(path):
    recording = read(path)
    at = next(n for n, line in enumerate(recording.lines) if line.message)
    other = replace(recording.lines[at], message={"type": "PhotoFailed", "photo": 1, "detail": ""})
    lines = (*recording.lines[:at], other, *recording.lines[at + 1 :])
    assert play_to_central(Recording(recording.header, lines)).problems


@recordings
def test_a_message_that_no_packet_has_is_noticed(path):
    recording = read(path)
    more = replace(recording.lines[-1], to="", data=None, side=None, zeros=0, command=None)
    more = replace(more, message={"type": "BatteryChanged", "level": 3, "charging": False}, re=None)
    [problem] = play_to_central(Recording(recording.header, (*recording.lines, more))).problems
    assert "not understood: BatteryChanged" in problem


def test_the_recorded_commands_are_those_that_mock_glasses_read():
    recording = read(FOLDER / "mock_full.jsonl")
    sent = [from_tree(line.command) for line in recording.lines if line.command]
    read_again = play_to_glasses(recording).messages
    assert [type(each) for each in read_again] == [type(each) for each in sent]


def test_glasses_may_be_acknowledged_before_they_have_said_all():
    recording = read(FOLDER / "mock_full.jsonl")
    lines = list(recording.lines)
    at = next(n for n, line in enumerate(lines) if line.message)
    assert lines[at + 1].to == GLASSES
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert not play_to_glasses(Recording(recording.header, tuple(lines))).problems


# ------------------------------------------------------------------ bad files


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ("{", "line 1"),
        ('{"glassd_recording": 2, "model": "x", "mtu": 1, "glassd": ""}', "line 1: Invalid enum"),
        ('HEAD\n{"at": -1}', "line 2: at: -1.0"),
        ('HEAD\n{"at": 1, "data": "00"}', "line 2: to: missing"),
        ('HEAD\n{"at": 1, "to": "glasses", "data": "0"}', "line 2: "),
        ('HEAD\n{"at": 1, "to": "glasses", "data": "", "zeros": 99999999}', "zeros: 99999999"),
        ('HEAD\n{"at": 1, "more": 1}', "line 2: Object contains unknown field `more`"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, says):
    head = '{"glassd_recording": 1, "model": "even_g1", "mtu": 251, "glassd": "0.1.0"}'
    path = tmp_path / "bad.jsonl"
    path.write_text(text.replace("HEAD", head), encoding="utf-8")
    with pytest.raises(BadRecording, match=re.escape(says)) as refused:
        read(path)
    assert "glassd record FILE" in str(refused.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"\n" * (MAX_BYTES + 1))
    with pytest.raises(BadRecording, match="more than"):
        read(path)
