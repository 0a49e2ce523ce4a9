"""The audit log: every key on every line, bounded files, whole lines whatever ends the process
or fills the disk.
"""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from edge.observability import audit
from edge.observability.audit import KEYS, MAX_ARGS, MAX_TEXT, AuditBounds, AuditLog, filtered_line
from edge.runtime.clock import Clock

DEADLINE_S = 40.0
WALL = 1_795_000_000.25
CLOCK = Clock(wall=lambda: WALL)
RECORD = {
    "callId": "c1",
    "toolId": "notes:add",
    "version": "1.2.0",
    "registryVersion": "r7",
    "category": "productivity",
    "mode": "voice",
    "turnId": "t9",
    "idempotencyKey": "k9",
    "argsHash": "0123456789abcdef",
    "origin": "glasses",
    "confidence": 0.9,
    "route": "local",
    "duration": 12,
    "outcome": "answered",
    "ok": True,
    "errorType": None,
    "errorCode": None,
    "reason": "lives on this edge",
    "delivery": "shown",
    "attempts": 1,
    "overBudget": False,
    "turnOverBudget": False,
    "defaultsApplied": "/limit",
    "stages": "configured built executed posted",
}


def log_at(path, *, with_args=False, **bounds):
    bounds = AuditBounds(**{"max_bytes": 10**7, "keep": 2, **bounds})
    return AuditLog(path, clock=CLOCK, bounds=bounds, with_args=with_args)


def written(path, *records, **more):
    """What stands in the file after these records: parsed lines."""
    log = log_at(path, **more)
    log.open()
    for record in records:
        log(record)
    log.close()
    return lines(path)


def lines(path):
    data = path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def until(condition):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        threading.Event().wait(0.002)


# ------------------------------------------------------------------ lines


@pytest.mark.requirement("S2-101")
@pytest.mark.requirement("S0-60")
def test_a_line_has_every_key_and_the_values_of_the_record(tmp_path):
    (line,) = written(tmp_path / "audit.jsonl", RECORD)
    assert line == {"ts": "2026-11-18T11:06:40.250Z", **RECORD}
    assert tuple(line) == KEYS


def test_what_a_record_does_not_say_is_null(tmp_path):
    (line,) = written(tmp_path / "audit.jsonl", {"callId": "c1"})
    assert tuple(line) == KEYS
    assert {k for k, v in line.items() if v is not None} == {"ts", "callId"}


@pytest.mark.requirement("S2-101")
def test_arguments_are_written_only_when_asked_for(tmp_path):
    record = {**RECORD, "args": {"text": "my secret"}, "password": "hunter2"}
    assert written(tmp_path / "without", record) == written(tmp_path / "plain", RECORD)
    (line,) = written(tmp_path / "with", record, with_args=True)
    assert line["args"] == {"text": "my secret"}
    assert "password" not in line


def test_of_long_arguments_only_the_length_is_written(tmp_path):
    fits, too_long = {"args": {"a": "x" * (MAX_ARGS - 8)}}, {"args": {"a": "x" * (MAX_ARGS - 7)}}
    first, second = written(tmp_path / "a", fits, too_long, with_args=True)
    assert first["args"] == fits["args"]
    assert second["args"] == {"omittedCharacters": MAX_ARGS + 1}


@pytest.mark.requirement("S0-60")
def test_the_duration_is_whole_milliseconds(tmp_path):
    shown = [
        line["duration"]
        for line in written(tmp_path / "a", *({"duration": ms} for ms in (12, 12.6, 0.2)))
    ]
    assert shown == [12, 13, 0]
    assert all(type(ms) is int for ms in shown)


def test_text_from_elsewhere_is_bounded_and_cannot_break_a_line(tmp_path):
    evil = 'a\nb\r\x00\x1b[2J\u2028\x85\ud800"\\'
    path = tmp_path / "a"
    bounded, delivered = written(
        path, {"reason": evil * 100}, {"delivery": {"state": "dropped", "reason": evil * 100}}
    )
    assert bounded["reason"] == (evil * 100)[:MAX_TEXT]
    assert delivered["delivery"] == {"state": "dropped", "reason": (evil * 100)[:MAX_TEXT]}
    assert re.fullmatch(rb"[ -~\n]+", path.read_bytes())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reason", object()),
        ("attempts", 2**63),
        ("duration", float("nan")),
        ("mode", b"voice"),
        ("delivery", {"a": {"b": 1}}),
        ("delivery", {str(n): n for n in range(9)}),
        ("toolId", ["x"]),
        ("args", {"x": object()}),
        ("args", float("inf")),
    ],
)
def test_what_cannot_be_written_is_named_and_the_rest_is_written(tmp_path, key, value):
    (line,) = written(tmp_path / "a", {**RECORD, key: value}, with_args=True)
    assert line["unserialisable"] == [key]
    assert line.get(key) is None
    assert line["callId"] == "c1"


@pytest.mark.parametrize("record", [None, 5, "text", ["callId"]])
def test_what_is_no_record_at_all_leaves_a_line_that_says_so(tmp_path, record):
    (line,) = written(tmp_path / "a", record)
    assert line["unserialisable"] == ["record"]
    assert line.keys() > set(KEYS)


def test_arguments_nested_without_end_cost_the_arguments_only(tmp_path):
    args = []
    args.append(args)
    (line,) = written(tmp_path / "a", {**RECORD, "args": {"x": args}}, with_args=True)
    assert (line["unserialisable"], line["callId"]) == (["args"], "c1")


def test_a_clock_out_of_its_mind_costs_the_time_only(tmp_path):
    log = AuditLog(tmp_path / "a", clock=Clock(wall=lambda: float("inf")))
    log.open()
    log(RECORD)
    log.close()
    assert lines(tmp_path / "a") == [{"ts": None, **RECORD}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from([*KEYS, "args", "other"]), JSON, max_size=8), max_size=5
    )
)
def test_every_record_is_exactly_one_line_with_every_key(tmp_path_factory, records):
    found = written(tmp_path_factory.mktemp("audit") / "a", *records, with_args=True)
    assert len(found) == len(records)
    assert all(tuple(line)[: len(KEYS)] == KEYS for line in found)


# ------------------------------------------------------------------ the file


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_and_group_read_it_whatever_the_umask(tmp_path, umask):
    path, was = tmp_path / "var" / "log" / "audit.jsonl", os.umask(umask)
    try:
        written(path, RECORD)
    finally:
        os.umask(was)
    modes = [p.stat().st_mode & 0o777 for p in (path, path.parent, path.parent.parent)]
    assert modes == [0o640, 0o700, 0o700]


def test_a_mode_somebody_chose_stays(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o600)
    written(path, RECORD)
    assert path.stat().st_mode & 0o777 == 0o600


def test_files_are_rotated_by_size_and_no_line_falls_between_them(tmp_path):
    path = tmp_path / "a"
    written(path, *({"callId": f"c{n}"} for n in range(40)), max_bytes=4000, keep=3)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["a", "a.1", "a.2", "a.3"]
    assert all(p.stat().st_size <= 4000 for p in tmp_path.iterdir())
    reported = [
        line["callId"] for name in ("a.3", "a.2", "a.1", "a") for line in lines(tmp_path / name)
    ]
    assert reported == [f"c{n}" for n in range(40 - len(reported), 40)]
    assert len(reported) > 20


def test_older_files_beyond_the_number_are_deleted(tmp_path):
    path, many = tmp_path / "a", [{"callId": f"c{n}"} for n in range(60)]
    written(path, *many, max_bytes=2000, keep=5)
    assert len(list(tmp_path.iterdir())) == 6
    written(path, *many, max_bytes=2000, keep=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.1"]
    written(path, *many, max_bytes=2000, keep=0)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.stat().st_size <= 2000


def test_a_line_longer_than_a_file_is_written(tmp_path):
    written(tmp_path / "a", RECORD, {"callId": "c2"}, max_bytes=10, keep=5)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.1"]
    assert [line["callId"] for name in ("a.1", "a") for line in lines(tmp_path / name)] == [
        "c1",
        "c2",
    ]


def test_a_file_that_was_moved_away_or_emptied_is_noticed(tmp_path):
    path, log = tmp_path / "logs" / "a", log_at(tmp_path / "logs" / "a")
    log.open()
    log({"callId": "c1"})
    until(lambda: path.exists() and lines(path))
    path.rename(tmp_path / "moved")
    path.touch()  # logrotate's "create"
    log({"callId": "c2"})
    until(lambda: lines(path))
    os.truncate(path, 0)
    log({"callId": "c3"})
    until(lambda: lines(path))
    path.unlink()
    path.parent.rmdir()
    log({"callId": "c4"})
    log.close()
    assert [line["callId"] for line in lines(tmp_path / "moved")] == ["c1"]
    assert [line["callId"] for line in lines(path)] == ["c4"]
    assert log.lost == 0


# ------------------------------------------------------------------ what tears lines


@pytest.mark.requirement("S2-101")
def test_a_line_torn_anywhere_leaves_a_file_in_which_every_line_parses(tmp_path):
    path = tmp_path / "a"
    written(path, RECORD, {**RECORD, "callId": "c2"})
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first + 1, len(whole)):
        path.write_bytes(whole[:cut])
        found = written(path, {"callId": "c3"})
        assert [line["callId"] for line in (found[0], found[-1])] == ["c1", "c3"]
        if cut == len(whole) - 1:  # all there but its end
            assert found[1]["callId"] == "c2"
        else:
            assert found[1]["torn"] == whole[first:cut].decode()[:MAX_TEXT]
            assert found[1].keys() > set(KEYS)
        assert len(found) == 3


def test_the_daemons_start_mends_the_file_before_any_call_comes(tmp_path, caplog):
    path = tmp_path / "a"
    path.write_bytes(b'{"callId": "c')
    assert [line["torn"] for line in written(path)] == ['{"callId": "c']
    assert "was cut short" in caplog.text


@pytest.mark.parametrize(
    "rest",
    [
        b"\x00" * 5000,
        b"\xff\xfe\x00",
        b"5",
        b"x" * 300_000,
        b"[" * 70_000,
        b'{"a": "' + b"x" * 70_000 + b'"}',
        b'{"a":"' + b"x" * (65_536 - 8) + b'"}}',
    ],
    ids=[
        "zeros",
        "binary",
        "a number",
        "endless",
        "deep",
        "a record of somebody else",
        "as long as we look",
    ],
)
def test_whatever_stands_behind_the_last_line_the_file_becomes_lines_again(tmp_path, rest):
    path = tmp_path / "a"
    path.write_bytes(b'{"callId":"c1"}\n' + rest)
    first, torn, last = written(path, {"callId": "c2"})
    assert (first["callId"], last["callId"]) == ("c1", "c2")
    assert torn["torn"] == rest[:MAX_TEXT].decode("utf-8", "replace")


CHILD = """
import itertools, sys, time
from pathlib import Path
from edge.observability.audit import AuditBounds, AuditLog
from edge.runtime.clock import Clock
log = AuditLog(Path(sys.argv[1]), clock=Clock(wall=lambda: 0.0), bounds=AuditBounds(100_000, 3))
log.open()
for n in itertools.count():
    log({"callId": f"c{n}", "reason": "x" * (n % 255)})
    if not n % 50:
        print(n, flush=True)
        time.sleep(0.001)  # the writer is a thread: one that never rests would only make it lose lines
"""  # noqa: E501


@pytest.mark.requirement("S2-101")
@pytest.mark.parametrize("after", [2, 5, 11])
def test_a_kill_at_any_instant_leaves_files_of_whole_lines(tmp_path, after):
    path = tmp_path / "a"
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        for _ in range(after):
            child.stdout.readline()
        until(lambda: any(b'"callId":"c' in file.read_bytes() for file in tmp_path.iterdir()))
        child.kill()
    written(path, {"callId": "after"})
    files = sorted(tmp_path.iterdir(), reverse=True)
    reported = [
        line["callId"]
        for p in files
        for line in lines(p)
        if "torn" not in line and "lost" not in line
    ]
    numbers = [int(name[1:]) for name in reported[:-1]]
    assert reported[-1] == "after"
    assert numbers == sorted(set(numbers))
    assert numbers


# ------------------------------------------------------------------ what loses lines


def test_the_oldest_waiting_lines_go_first_and_are_counted(tmp_path, caplog):
    log = log_at(tmp_path / "a", waiting_bytes=5000)
    for n in range(100):
        log({"callId": f"c{n}"})
    log.open()
    log.close()
    lost, *kept = lines(tmp_path / "a")
    assert lost["lost"] == log.lost == 100 - len(kept)
    assert lost.keys() > set(KEYS)
    assert [line["callId"] for line in kept] == [f"c{n}" for n in range(100 - len(kept), 100)]
    assert 5 < len(kept) < 20
    assert [r.levelno for r in caplog.records].count(logging.WARNING) == 1


@pytest.mark.requirement("S2-101")
def test_a_blocked_disk_never_makes_a_caller_wait(tmp_path):
    """A pipe that nobody reads is the slowest disk there is."""
    path, got = tmp_path / "a", bytearray()
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = log_at(path, waiting_bytes=20_000)
    log.open()
    for n in range(1000):
        log({"callId": f"c{n}"})
    assert log.lost > 0
    closing = threading.Thread(target=log.close, args=(DEADLINE_S,))
    closing.start()
    until(lambda: not _drained(reader, got) and not closing.is_alive())
    os.close(reader)
    found = [json.loads(line) for line in got.decode().splitlines()]
    reported = [int(line["callId"][1:]) for line in found if line["callId"]]
    assert reported == sorted(set(reported))
    assert reported[-1] == 999
    assert sum(line.get("lost", 0) for line in found) == log.lost == 1000 - len(reported)


def _drained(fd, into):
    """True while there was something to read."""
    with suppress(BlockingIOError):
        piece = os.read(fd, 65536)
        into += piece
        return bool(piece)
    return False


FULL = """
import logging, resource, sys, threading
from pathlib import Path
from edge.observability.audit import AuditLog
from edge.runtime.clock import Clock

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
path = Path(sys.argv[1])
log = AuditLog(path, clock=Clock(wall=lambda: 0.0))

def room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def until(condition):
    for _ in range(10_000):
        if condition():
            return
        threading.Event().wait(0.002)
    raise SystemExit("it did not come to that")

log.open()
log({"callId": "c0"})
until(lambda: path.exists() and path.stat().st_size)
room(path.stat().st_size + 100)
for n in range(1, 51):
    log({"callId": f"c{n}"})
until(lambda: log.lost == 50)
print("WHOLE" if path.read_bytes().endswith(b"\\n") else "HALF")
room(resource.RLIM_INFINITY)
for n in range(51, 54):
    log({"callId": f"c{n}"})
log.close()
"""


def test_a_full_disk_loses_whole_lines_and_is_logged_once(tmp_path):
    """Past its limit a file takes part of a write and then none: what a full disk does, too."""
    path = tmp_path / "a"
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    found = lines(path)
    assert [line["callId"] for line in found] == ["c0", None, "c51", "c52", "c53"]
    assert found[1]["lost"] == 50
    said = ran.stdout.splitlines()
    assert [line.split()[0] for line in said] == ["WARNING", "WHOLE", "INFO", "INFO"]
    assert "cannot be written, lines are lost" in said[0]
    assert ran.stderr == ""


def test_an_impossible_path_is_logged_once_and_calls_go_on(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "file").touch()
    log = log_at(tmp_path / "file" / "a")
    log.open()
    for n in range(5):
        log({"callId": f"c{n}"})
    until(lambda: log.lost == 5)
    (tmp_path / "file").unlink()
    log({"callId": "c5"})
    log.close()
    assert [(line["callId"], line.get("lost")) for line in lines(tmp_path / "file" / "a")] == [
        (None, 5),
        ("c5", None),
    ]
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO", "INFO"]


def test_after_the_end_a_record_is_lost_and_counted_and_nothing_raises(tmp_path):
    log = log_at(tmp_path / "a")
    log.open()
    log({"callId": "c1"})
    log.close()
    log({"callId": "c2"})
    log.close()
    assert log.lost == 1
    assert [line["callId"] for line in lines(tmp_path / "a")] == ["c1"]


def test_a_log_that_was_never_opened_can_be_closed(tmp_path):
    log = log_at(tmp_path / "a")
    log({"callId": "c1"})
    log.close()
    assert not (tmp_path / "a").exists()


@pytest.mark.requirement("S0-13")
def test_what_glasses_leave_out_is_a_line_of_its_own(tmp_path):
    (line,) = written(
        tmp_path / "a", filtered_line({"photo": ("CAMERA", "LIGHT"), "music": ("SPEAKER",)}, 2)
    )
    assert (line["outcome"], line["errorCode"], line["callId"]) == (
        "tools_filtered",
        "HARDWARE_MISSING",
        None,
    )
    assert line["reason"] == "2 apps: photo lacks CAMERA, LIGHT; music lacks SPEAKER"


def test_the_end_does_not_wait_for_more_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "GATHER_S", 600.0)
    log = log_at(tmp_path / "calls.jsonl")
    log.open()
    until(lambda: log._idle)
    log({"callId": "1"})
    log({"callId": "2"})
    log.close()
    assert [line["callId"] for line in lines(tmp_path / "calls.jsonl")] == ["1", "2"]
