"""Work in a forked child: its result or its error comes over, what it imported and changed does
not.
"""

import os
import sys
import threading

import pytest

from edge.config.validators import BadSettings
from edge.runtime.worker_process import WorkerProcess

SEEN = []


def test_the_result_comes_over_and_nothing_else():
    def work():
        SEEN.append("changed")
        sys.modules["only_there"] = sys
        return {"pid": os.getpid()}

    assert WorkerProcess(work).result()["pid"] != os.getpid()
    assert SEEN == []
    assert "only_there" not in sys.modules


def test_an_error_comes_over_as_it_was_raised():
    def work():
        raise BadSettings("line one\nline two")

    with pytest.raises(BadSettings, match="line one\nline two"):
        WorkerProcess(work).result()


def test_a_large_result_does_not_wait_for_itself():
    assert len(WorkerProcess(lambda: b"x" * 5_000_000).result()) == 5_000_000


def test_the_work_of_a_child_that_died_is_done_here(caplog):
    parent = os.getpid()

    def work():
        if os.getpid() != parent:
            os._exit(7)
        return "here"

    assert WorkerProcess(work).result() == "here"
    assert "a child process died" in caplog.text


def test_the_child_runs_none_of_our_cleanups(tmp_path):
    mark = tmp_path / "mark"
    try:
        WorkerProcess(lambda: None).result()
    finally:
        with mark.open("a") as file:
            file.write("x")
    assert mark.read_text() == "x"


def test_the_work_of_a_child_that_hangs_is_done_here(caplog):
    parent, never = os.getpid(), threading.Event()

    def work():
        if os.getpid() != parent:
            never.wait()
        return "here"

    apart = WorkerProcess(work)
    assert apart.result(limit_s=0.05) == "here"
    assert "did not answer within 0.05 s" in caplog.text
    with pytest.raises(ChildProcessError):
        os.waitpid(apart._child, os.WNOHANG)


def test_half_an_answer_of_a_child_that_hangs_counts_for_nothing():
    parent, never = os.getpid(), threading.Event()

    class Slow:
        def __reduce__(self):
            never.wait()

    assert (
        WorkerProcess(lambda: Slow() if os.getpid() != parent else "whole").result(limit_s=0.05)
        == "whole"
    )
