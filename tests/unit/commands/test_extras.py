"""Importing what only some commands need."""

import signal
import sys

import pytest

from edge.commands.shared import extras

MODULE = """
import signal, threading
try:
    # to this thread: the command has no other then, but a test runner has
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    for _ in range(1000):
        pass
except KeyboardInterrupt as e:
    raise ValueError("as a library with parts in C would say it") from e
whole = True
"""


@pytest.mark.requirement("CLI-interrupt")
def test_ctrl_c_during_an_import_is_taken_after_it(tmp_path, monkeypatch):
    (tmp_path / "interrupted_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            extras.load("interrupted_import", "demo")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert sys.modules.pop("interrupted_import").whole
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
