"""Log lines: one event a line, extras beside it, journald's priorities, no secrets, no control
characters.
"""

import io
import logging
import os
import tempfile

import pytest

from edge.runtime import logs


@pytest.fixture
def logger():
    """Logging set up as the daemon does, put back afterwards: (logger, text so far, redactor)."""
    root = logging.getLogger()
    kept, level = list(root.handlers), root.level
    quiet = {name: logging.getLogger(name).level for name in logs._NOISY}
    stream = io.StringIO()
    redact = logs.set_up("info", {}, stream=stream)
    yield logging.getLogger("edge.test"), stream.getvalue, redact
    root.handlers[:] = kept
    root.setLevel(level)
    for name, was in quiet.items():
        logging.getLogger(name).setLevel(was)


def broken(text):
    raise ValueError(text)


def line(*, journal=False, **record):
    made = logging.makeLogRecord(
        {"name": "edge.x", "levelno": 20, "levelname": "INFO", "msg": "m", **record}
    )
    return logs.LineFormatter(logs.Redactor(), journal=journal).format(made)


def test_extras_stand_behind_the_message_as_key_value(logger):
    log, text, _ = logger
    log.info("call %s", "done", extra={"call_id": "c1", "why": "two words", "empty": ""})
    assert text().endswith('INFO    edge.test: call done call_id=c1 why="two words" empty=""\n')


def test_below_the_level_nothing_is_written_and_libraries_speak_from_warning_on(logger):
    log, text, _ = logger
    log.debug("quiet")
    logging.getLogger("bleak.backends").info("packet")
    assert text() == ""
    logging.getLogger("httpx").warning("odd")
    assert "odd" in text()


def test_of_a_secret_that_begins_like_another_one_no_end_is_left():
    for number in range(12):
        redact = logs.Redactor()
        for secret in (f"hush-{number}", f"hush-{number}-and-more"):
            redact.hide(secret)
        assert redact(f"said hush-{number}-and-more, and hush-{number}") == "said ***, and ***"


def test_for_the_journal_every_line_has_its_priority():
    levels = {"CRITICAL": 2, "ERROR": 3, "WARNING": 4, "INFO": 6, "DEBUG": 7}
    for name, number in levels.items():
        assert (
            line(journal=True, levelno=getattr(logging, name), levelname=name)
            == f"<{number}>edge.x: m"
        )


def test_a_traceback_keeps_its_lines_each_with_the_priority():
    try:
        broken("x")
    except ValueError as e:
        text = line(journal=True, levelno=40, exc_info=(type(e), e, e.__traceback__))
    assert len(text.splitlines()) > 3
    assert all(part.startswith("<3>") for part in text.splitlines())


def test_text_from_elsewhere_cannot_start_a_line_or_move_the_cursor():
    text = line(msg="said %s", args=("a\nb\x1b[2J\r\u2028c",))
    assert "\n" not in text
    assert r"a\nb\x1b[2J\r\u2028c" in text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("password=hunter2 ok", "password=*** ok"),
        ('{"token": "abc123"}', '{"token": "***"}'),
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer ***"),
        ("sent Bearer abcdefgh123", "sent Bearer ***"),
        ("https://ann:hunter2@host/x", "https://***@host/x"),
        ("api_key=zzz", "api_key=***"),
        ("the token bucket is empty", "the token bucket is empty"),
        ("token_file=/etc/x", "token_file=/etc/x"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(raw, shown):
    assert logs.Redactor()(raw) == shown


def test_a_known_secret_is_hidden_anywhere_in_a_line(logger):
    log, text, redact = logger
    redact.hide("hunter2")
    redact.hide("")
    redact.hide(None)
    try:
        broken("tried hunter2")
    except ValueError:
        log.exception("login of %s", "hunter2", extra={"as": "hunter2"})
    assert "hunter2" not in text()
    assert text().count("***") == 4  # message, extra, the error, the line of source it came from


def test_clean_cuts_and_keeps_ordinary_text():
    assert logs.clean("Grüße, 你好") == "Grüße, 你好"
    assert logs.clean("x" * 300) == "x" * 199 + "…"
    assert logs.clean("x" * 200) == "x" * 200


def test_the_journal_is_recognised_by_its_own_stream_only():
    with tempfile.TemporaryFile("w+") as stream:
        found = os.fstat(stream.fileno())
        assert logs.is_journal(stream, {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"})
        assert not logs.is_journal(stream, {"JOURNAL_STREAM": "8:1"})
        assert not logs.is_journal(stream, {})
    assert not logs.is_journal(io.StringIO(), {"JOURNAL_STREAM": "8:1"})
