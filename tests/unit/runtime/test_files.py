"""Writing a file whole, in the daemon and in the two packages that may not import it."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

import edge.runtime.files
import firmware_bridge.files
import tools_cache.files

PACKAGES = {
    "edge.runtime.files": edge.runtime.files.write_atomic,
    "firmware_bridge.files": firmware_bridge.files.write_atomic,
    "tools_cache.files": tools_cache.files.write_atomic,
}
DEADLINE_S = 120
OLD, NEW = b"old\n" * 10, b"new!" * 100_000
KILLED = """
import importlib, json, os, signal, sys
from pathlib import Path

write = importlib.import_module(sys.argv[1]).write_atomic
path = Path(sys.argv[2])
old, new = b"old\\n" * 10, b"new!" * 100_000

def kill_before(number):
    left = number
    def count(_frame, event, _what):
        nonlocal left
        if event == "c_call":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    return count

seen, number, killed = [], 0, True
while killed and number < 1000:
    path.write_bytes(old)
    child = os.fork()
    if child == 0:
        sys.setprofile(kill_before(number))
        write(path, new)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    found = path.read_bytes()
    what = "old" if found == old else "new" if found == new else "mixed"
    others = [entry for entry in path.parent.iterdir() if entry != path]
    modes = sorted({oct(entry.stat().st_mode & 0o777) for entry in others})
    seen.append((what, len(others), modes))
    number += 1
print(json.dumps(seen))
"""
"""Writes in children, each killed one call of the system's or of Python's C code later than the one
before, until one comes through."""


@pytest.fixture(params=sorted(PACKAGES))
def write(request):
    return PACKAGES[request.param]


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def _content(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


@pytest.mark.requirement("I12-atomic-files")
@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_killed_writer_leaves_the_old_or_the_new_content(package, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, package, str(tmp_path / "file")],
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    seen = json.loads(ran.stdout)
    kinds = [what for what, _, _ in seen]
    assert len(kinds) > 8
    assert (kinds[0], kinds[-1]) == ("old", "new")
    assert kinds == sorted(kinds, reverse=True), "never a mixture, and never old again"
    assert max(others for _, others, _ in seen) == 1, "a leftover of a kill is used up by the next"
    assert {mode for _, _, modes in seen for mode in modes} == {"0o600"}
    assert seen[-1][1] == 0


@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_file_has_its_mode_from_the_beginning(write, tmp_path, monkeypatch, mode):
    modes, real = [], os.fsync

    def look(handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", look)
    write(tmp_path / "file", NEW, mode)
    assert [*modes, stat.S_IMODE((tmp_path / "file").stat().st_mode)] == [mode, mode]
    assert _content(tmp_path) == {"file": NEW}


@pytest.mark.usefixtures("no_umask")
def test_a_file_is_private_unless_a_mode_is_given(write, tmp_path):
    (tmp_path / "file").touch(0o666)
    write(tmp_path / "file", NEW)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def _watch_steps(monkeypatch):
    """Record each fsync and rename, in order; a file's with the bytes it has then."""
    steps, sync, rename = [], os.fsync, os.replace

    def fsync(handle):
        found = os.fstat(handle)
        steps.append("sync folder" if stat.S_ISDIR(found.st_mode) else f"sync {found.st_size}")
        sync(handle)

    def replace(*args, **options):
        steps.append("rename")
        rename(*args, **options)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return steps


def test_content_is_on_disk_before_the_name_and_both_on_return(write, tmp_path, monkeypatch):
    steps = _watch_steps(monkeypatch)
    write(tmp_path / "file", NEW)
    assert steps == [f"sync {len(NEW)}", "rename", "sync folder"]


def test_a_copy_that_may_be_lost_waits_for_no_disk(tmp_path, monkeypatch):
    steps = _watch_steps(monkeypatch)
    edge.runtime.files.write_atomic(tmp_path / "file", NEW, durable=False)
    assert steps == ["rename"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_is_passed_on_and_leaves_nothing_behind(
    write, tmp_path, monkeypatch, number, step
):
    def fail(*_args, **_options):
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").write_bytes(OLD)
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        write(tmp_path / "file", NEW)
    assert raised.value.errno == number
    assert _content(tmp_path) == {"file": OLD}


def _temporary(folder):
    """Name the temporary file that a write of `folder / "file"` by this thread has."""
    return folder / f".file.{threading.get_native_id()}.new"


def test_a_link_at_the_temporary_name_is_not_followed(write, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(OLD)
    _temporary(tmp_path).symlink_to(victim)
    write(tmp_path / "file", NEW)
    assert not (tmp_path / "file").is_symlink()
    assert _content(tmp_path) == {"file": NEW, "victim": OLD}


def test_a_link_that_appears_at_the_last_moment_is_not_followed(write, tmp_path, monkeypatch):
    victim, unlink = tmp_path / "victim", os.unlink
    victim.write_bytes(OLD)

    def plant(path, **options):
        with suppress(FileNotFoundError):
            unlink(path, **options)
        monkeypatch.undo()
        _temporary(tmp_path).symlink_to(victim)

    monkeypatch.setattr(os, "unlink", plant)
    with pytest.raises(FileExistsError):
        write(tmp_path / "file", NEW)
    assert victim.read_bytes() == OLD
    assert not (tmp_path / "file").exists()


SECOND = """
import importlib, sys
from pathlib import Path
importlib.import_module(sys.argv[1]).write_atomic(Path(sys.argv[2]), b"second")
"""


@pytest.mark.requirement("I12-atomic-files-two-writers")
@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_two_processes_write_one_file_at_once(package, tmp_path, monkeypatch):
    path, sync = tmp_path / "file", os.fsync

    def meet(handle):
        monkeypatch.setattr(os, "fsync", sync)
        command = [sys.executable, "-c", SECOND, package, str(path)]
        subprocess.run(command, check=True, timeout=DEADLINE_S)
        assert path.read_bytes() == b"second"
        sync(handle)

    monkeypatch.setattr(os, "fsync", meet)
    PACKAGES[package](path, NEW)
    assert _content(tmp_path) == {"file": NEW}


def test_two_threads_write_one_file_at_once(write, tmp_path, monkeypatch):
    path, sync = tmp_path / "file", os.fsync

    def meet(handle):
        monkeypatch.setattr(os, "fsync", sync)
        second = threading.Thread(target=write, args=(path, b"second"))
        second.start()
        second.join(DEADLINE_S)
        assert path.read_bytes() == b"second"
        sync(handle)

    monkeypatch.setattr(os, "fsync", meet)
    write(path, NEW)
    assert _content(tmp_path) == {"file": NEW}


def test_leftovers_of_killed_writers_are_deleted(write, tmp_path):
    dead = (
        subprocess.run(
            [sys.executable, "-c", "import os; print(os.getpid())"],
            check=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
        .stdout.decode()
        .strip()
    )
    others = {".other.1.new": OLD, f".file.{os.getppid()}.new": OLD, ".file.old.new": OLD}
    for name in (*others, f".file.{dead}.new", ".file.new"):
        (tmp_path / name).write_bytes(OLD)
    write(tmp_path / "file", NEW)
    assert _content(tmp_path) == {"file": NEW, **others}


def test_a_folder_that_is_not_there_is_an_error(write, tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "none" / "file", NEW)
