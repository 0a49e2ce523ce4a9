"""Rules for every test: a skip is a failure in CI unless it stands on the printed allow-list;
logs must format.
"""

import gc
import logging
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from edge.display import page_life
from tests.registry_reading import read_here
from tests.system import counted
from tools_cache.registry import reader

ALLOWED_SKIPS: dict[str, str] = {
    "tests/unit/storage/test_database.py::test_on_a_full_disk": (
        "needs the right to mount a small file system (root, or user namespaces)"
    ),
    "tests/unit/doctor/test_tools_and_disk.py::test_on_small_disks": (
        "needs the right to mount a small file system"
    ),
    "tests/unit/storage/test_migrations.py::test_an_upgrade_on_a_full_disk": (
        "needs the right to mount a small file system"
    ),
    "tests/unit/daemon/test_storage_watch.py::test_on_a": (
        "needs the right to mount a small file system; an ext4 image needs root"
    ),
    "tests/chaos/test_power_cut.py::": "needs root and loop devices",
    "tests/unit/control/test_roles.py::test_another_user": "only root can become somebody else",
    "tests/link/test_unit.py::": "needs systemd as PID 1: runs in `make vm-test`",
    "tests/link/test_link.py::test_a_switched_off_adapter": (
        "needs a kernel's adapter: runs in `make vm-test`"
    ),
    "tests/link/test_link.py::test_a_restart_of_bluetoothd": (
        "needs bluetoothd: runs in `make vm-test`"
    ),
    "tests/link/test_link.py::test_a_bluetoothd_that_dies": (
        "needs bluetoothd: runs in `make vm-test`"
    ),
    "tests/link/test_pairing.py::test_a_bond_outlives_bluetoothd": (
        "needs bluetoothd: runs in `make vm-test`"
    ),
    "tests/link/test_pairing.py::test_glasses_that_forgot_us_are_noticed": (
        "on bookworm's kernel alone, which has a bug there"
    ),
    "tests/link/test_pairing.py::test_glasses_that_forgot_us_cost_no_more": (
        "needs bluetoothd: runs in `make vm-test`"
    ),
    "tests/unit/daemon/test_systemd.py::": (
        "needs systemd-analyze, which a container without systemd does not have"
    ),
    "tests/unit/packaging/test_units.py::": "needs systemd-analyze",
    "tests/unit/packaging/test_deb.py::": "needs dpkg-deb, which only Debian's family has",
    "tests/unit/display/test_second_renderer.py::": "needs Pango for the system's Python",
    "tests/unit/packaging/test_man.py::test_the_formatter": "needs groff",
    "tests/unit/tools/mail/test_mail_servers.py::": "needs dovecot, a mail server",
    "tests/unit/tools/mail/test_email_tools.py::": "needs dovecot, a mail server",
    "tests/chaos/test_mail_kills.py::test_a_mail": "needs dovecot, a mail server",
    "tests/scenarios/everyday/test_three_ways.py::test_a_tool_is_used[email": (
        "needs dovecot, a mail server"
    ),
    "tests/scenarios/everyday/test_three_ways.py::test_nothing_is_done_after_a_no[email": (
        "needs dovecot, a mail server"
    ),
}
"""Test id (prefix) → why it may be skipped in CI. Nothing else may."""

LONGEST_TMPDIR = 16
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""A run leaves at most a tenth of it behind; the rest is for everything else on this machine."""

OTHERS_LAST = 30
"""A test with processes counts as so many that only compute (measured: 10 to 30 times as long)."""

EXAMPLES = 60
"""Of each property, new ones in each run. `make test-all` takes more."""

_skipped: list[tuple[str, str]] = []
_failed: dict[str, None] = {}
_not_tests: list[str] = []
"""Files that could not be read, and the like: nothing that another try could cure."""


class _StrictHandler(logging.Handler):
    """Formats every record, so that a log call with wrong arguments fails the test that reaches
    it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        raise AssertionError(f"badly formatted log call at {record.pathname}:{record.lineno}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Make every run alike, however it is started."""
    # Where Python may not write what it compiled, every child of every test compiles all of it
    # again, and each worker rewrites every test file.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Dates on the lens are in the language and the time zone of the machine.
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC")
    time.tzset()
    # A database waits for the disk at each commit; a file of storage tests waits ten times as long
    # as it computes.
    if "TMPDIR" not in os.environ and _has_room(IN_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)
    # The path of a Unix socket has at most 107 characters, and the folders of a test take some 80
    # of them.
    if len(tempfile.gettempdir()) > LONGEST_TMPDIR:
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
    # A shell that starts us in the background has SIGINT ignored, and our children would inherit
    # that: they must not.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (
        signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    ):  # nohup ignores it; a daemon that inherits that does not reload
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # An example that took longer than usual tells of a busy machine, not of the code
    # (pytest-timeout guards the test).
    examples = int(os.environ.get("GLASSD_EXAMPLES", EXAMPLES))
    hypothesis.settings.register_profile("glassd", deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("glassd")
    # All that is collected stays: to look for garbage in it takes a third of a second each time,
    # and some seconds on a busy machine, while the daemon under test stands still.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return two workers a core: the tests wait as long as they compute."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 2 * len(os.sched_getaffinity(0))


def _has_room(folder: Path) -> bool:
    """Return whether files of tests may live in `folder`: big enough, and programs run from it."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    there = os.statvfs(folder)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    runs_programs = not there.f_flag & os.ST_NOEXEC
    return runs_programs and min(there.f_bavail * there.f_frsize, free) >= ROOM_BYTES


@pytest.fixture(autouse=True)
def _log_guard():
    handler = _StrictHandler(logging.DEBUG)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    yield
    root.removeHandler(handler)
    root.setLevel(level)  # a daemon that runs in a test sets it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unit and codec tests get no network: a socket is the sign of a missing seam (AF_UNIX is
    ours).
    """
    for item in items:
        if _computes(item) and not item.get_closest_marker("enable_socket"):
            item.add_marker(pytest.mark.disable_socket)
    if hasattr(config, "workerinput"):
        _longest_files_first(items)


def _computes(item: pytest.Item) -> bool:
    parts = item.path.parts
    return "unit" in parts or "codecs" in parts


def _longest_files_first(items: list[pytest.Item]) -> None:
    """Keep all workers of a parallel run busy to its end. It needs `--no-loadscope-reorder`."""
    lasts: Counter[Path] = Counter()
    for item in items:
        lasts[item.path] += 1 if _computes(item) else OTHERS_LAST
    items.sort(key=lambda item: -lasts[item.path])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _not_tests.append(report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped.append((report.nodeid, reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """At the very end, below pytest's own list of what was skipped and what failed."""
    yield
    if listed := counted(reason for _, reason in _skipped):
        terminalreporter.write_line(
            f"SKIPPED, because programs are missing here: {listed}", yellow=True
        )
    if _in_ci():
        terminalreporter.write_line(f"skips allowed in CI: {', '.join(ALLOWED_SKIPS) or 'none'}")
        for test, reason in _refused():
            terminalreporter.write_line(f"SKIPPED BUT NOT ALLOWED: {test}: {reason}", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    skipped_too_much = _in_ci() and bool(_refused())
    if skipped_too_much and session.exitstatus == 0:
        session.exitstatus = 1
    listed = os.environ.get("GLASSD_FAILED_LIST")
    if (
        listed
        and not skipped_too_much
        and not _not_tests
        and not hasattr(session.config, "workerinput")
    ):
        Path(listed).write_text("".join(f"{name}\n" for name in _failed), encoding="utf-8")


def _in_ci() -> bool:
    return os.environ.get("CI") == "true"


def _refused() -> list[tuple[str, str]]:
    return [
        (test, why)
        for test, why in _skipped
        if not any(test.startswith(prefix) for prefix in ALLOWED_SKIPS)
    ]


@pytest.fixture
def reading_time() -> float:
    """Pages stay for as long as people need to see what they are (`LEAST_S`)."""
    return page_life.LEAST_S


@pytest.fixture(autouse=True)
def _no_reading_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all other tests an equal result replaces a page at once, so that none waits for it."""
    if "reading_time" not in request.fixturenames:
        monkeypatch.setattr(page_life, "LEAST_S", 0.0)


@pytest.fixture
def child_reads_registries() -> None:
    """As in a daemon of its own; in all other tests this process reads them."""


@pytest.fixture(autouse=True)
def _registries_are_read_here(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "child_reads_registries" not in request.fixturenames:
        monkeypatch.setattr(reader, "read", read_here)
