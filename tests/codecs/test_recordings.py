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
from firmware_bridge.sides import Side

FOLDER = Path(__file__).parents[1] / "recordings"
FILES = sorted(FOLDER.glob("*.jsonl"))
OURS = ("mock_full.jsonl", "even_g1.jsonl")
"""Of these it is known what is in them."""
recordings = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_there_are_recordings_and_nothing_else():
    assert set(OURS) <= {path.name for path in FILES}
    assert sorted(FOLDER.iterdir()) == FILES


@recordings
def test_the_central_understands_what_was_understood(path):
    played = play_to_central(read(path))
    assert not played.problems
    assert played.messages


@recordings
def test_the_glasses_read_what_was_written(path):
    assert not play_to_glasses(read(path)).problems


def test_the_pages_that_were_written_are_read():
    for name in OURS:
        messages = play_to_glasses(read(FOLDER / name)).messages
        assert [each for each in messages if isinstance(each, ShowPage)]


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


def test_a_write_that_is_torn_is_noticed():
    for name in OURS:
        recording = read(FOLDER / name)
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


@recordings
def test_a_recording_may_be_ended_after_any_line(path):
    recording = read(path)
    lines = recording.lines[: 1 + recording.lines.index(next(filter(is_message, recording.lines)))]
    for end in range(1, min(len(recording.lines), len(lines) + 60)):
        begun = Recording(recording.header, recording.lines[:end])
        assert not play_to_central(begun).problems, end


@recordings
def test_times_need_not_be_exact(path):
    """A busy machine writes a little later than the codec wanted, and the next packet in time."""
    recording = read(path)
    lines, at = [], 0.0
    for number, line in enumerate(recording.lines):
        at = max(at, line.at + (0.006 if number % 3 == 0 else 0.0))
        lines.append(replace(line, at=at))
    assert not play_to_central(Recording(recording.header, tuple(lines))).problems


@recordings
def test_a_message_that_is_left_out_is_noticed(path):
    recording = read(path)
    at = next(n for n, line in enumerate(recording.lines) if is_message(line))
    missing = Recording(recording.header, recording.lines[:at] + recording.lines[at + 1 :])
    assert play_to_central(missing).problems
    *none, last = (line for line in recording.lines if not is_message(line))
    later = (*none, replace(last, at=last.at + 10))
    problems = play_to_central(Recording(recording.header, later)).problems
    assert [each for each in problems if "understood, but not recorded" in each]


def is_message(line):
    return line.message is not None


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
        ("", "is no recording of glassd"),
        ("{", "is no recording of glassd"),
        ('{"some": "JSON"}', "is no recording of glassd"),
        ("[1]", "is no recording of glassd"),
        ('{"glassd_recording": 1, "model": 1}', "line 1: Expected `str`"),
        ('{"glassd_recording": 1, "model": "x", "mtu": 22, "glassd": ""}', "line 1: mtu: 22; 23 "),
        ('{"glassd_recording": 1, "model": "x", "mtu": 518, "glassd": ""}', "line 1: mtu: 518"),
        ("HEAD", "no connection begins in line 2"),
        ('HEAD\n{"at": 1, "to": "glasses", "data": "00"}', "no connection begins in line 2"),
        ('HEAD\n{"at": 1, "session": 19}', "line 2: session: 19; 20 to 514"),
        ('HEAD\n{"at": 1, "packet_size": -4}', "line 2: packet_size: -4; 20 to 514"),
        ('HEAD\n{"at": 1, "to": "glasses", "data": "GG"}', "line 2: data: two digits"),
        ('HEAD\n{"at": 1, "to": "glasses", "data": "%s"}' % ("00" * 515), "at most 514 bytes"),
        ('HEAD\n{"at": 0, "session": 20}\n{"at": 1, "to": "gla', "line 3: Input data was trunc"),
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


@pytest.mark.parametrize("version", ["2", '"new"', "1.5"])
def test_a_recording_of_another_version_says_so(tmp_path, version):
    path = tmp_path / "other.jsonl"
    path.write_text(f'{{"glassd_recording": {version}, "models": []}}\n', encoding="utf-8")
    with pytest.raises(BadRecording, match=re.escape("this glassd reads 1: use the glassd that")):
        read(path)


def test_a_file_that_an_editor_wrote_is_read(tmp_path):
    """With a mark at its beginning, lines that end as on Windows, and empty ones."""
    text = (FOLDER / "even_g1.jsonl").read_text(encoding="utf-8")
    path = tmp_path / "edited.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\r\n").encode())
    assert read(path) == read(FOLDER / "even_g1.jsonl")


def edited(name: str, change):
    """Return the problems of a recording of which lines were changed by hand."""
    recording = read(FOLDER / name)
    lines = tuple(change(line) for line in recording.lines)
    changed = Recording(recording.header, lines)
    play_to_glasses(changed)
    return play_to_central(changed).problems


def test_a_packet_without_its_side_is_a_problem_and_no_error():
    problems = edited("even_g1.jsonl", lambda line: replace(line, side=None))
    assert any("side: left or right is needed" in problem for problem in problems)


def test_a_packet_with_a_side_that_there_is_not_is_a_problem_and_no_error():
    one_more = lambda line: replace(line, side=Side.LEFT) if line.is_packet else line  # noqa: E731
    problems = edited("mock_full.jsonl", one_more)
    assert any("side: left or right is needed" in problem for problem in problems)


@pytest.mark.parametrize("zeros", [-1, 1 << 40, "8", 1.5, True])
def test_zeros_that_no_message_has_are_a_problem_and_no_memory(zeros):
    frames = [{"hex": "", "zeros": 1 << 22}] * 2 if zeros is True else [{"hex": "", "zeros": zeros}]
    message = {"type": "MicrophoneChunk", "stream": 1, "index": 0, "frames": frames}
    problems = edited(
        "mock_full.jsonl", lambda line: replace(line, message=message) if line.message else line
    )
    assert any("zeros" in problem for problem in problems)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"\n" * (MAX_BYTES + 1))
    with pytest.raises(BadRecording, match="more than"):
        read(path)
