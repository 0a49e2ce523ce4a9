"""A disk that takes nothing: what callers, `status`, events and the doctor say, and that it
ends by itself.
"""

import asyncio
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge.core.disk_faults import is_disk_fault
from edge.daemon.storage_watch import StorageWatch
from edge.runtime.bus import Bus
from edge.runtime.events import Alarmed
from edge.storage.sqlite import disk_space
from edge.storage.sqlite.database import DiskUnavailable
from edge.storage.sqlite.disk_space import MIB, DiskSpace
from tools_cache.api.tool import ErrorCode, ErrorType, ToolError

SCRIPT = "tests.unit.daemon.on_small_disk"


def ran(tmp_path, way, *flags):
    command = ["unshare", *flags, sys.executable, "-m", SCRIPT, str(tmp_path), way]
    env = dict(os.environ, PYTHONPATH=str(Path.cwd()))
    try:
        run = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=300, env=env
        )
    except FileNotFoundError:
        pytest.skip("this machine has no unshare")
    if (
        "Operation not permitted" in run.stderr
        or "'mount'" in run.stderr
        or "'mkfs.ext4'" in run.stderr
        or "failed: Permission" in run.stderr
    ):
        pytest.skip("this machine lets nobody mount a small file system")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.requirement("I11-disk-alarm", "I11-disk-code")
def test_on_a_full_disk_calls_may_be_retried_and_status_says_what_to_do(tmp_path):
    told = ran(tmp_path, "full", "-Urm")
    assert told["before"]["ok"]
    assert told["after"]["ok"]
    error = told["refused"]["error"]
    assert (error["code"], error["type"], error["retryable"]) == (
        "STORAGE_UNAVAILABLE",
        "TRANSIENT",
        True,
    )
    assert error["retryAfterMs"] == 5000
    assert list(told["alarms"]) == ["storage"]
    assert f"make at least 2.9 MiB of room on {tmp_path}/state" in told["next"]


@pytest.mark.requirement("I11-disk-alarm", "I11-disk-code")
def test_on_a_disk_that_fails_calls_may_be_retried_and_status_says_what_to_do(tmp_path):
    if os.geteuid():
        pytest.skip("only root may mount an ext4 image")
    told = ran(tmp_path, "abort", "-m")
    assert told["before"]["ok"]
    assert told["refused"]["error"]["code"] == "STORAGE_UNAVAILABLE"
    assert "dmesg" in told["next"]
    assert "fsck" in told["next"]


# ------------------------------------------------------------------ the watch itself


class Disk:
    """A database whose disk breaks and is mended by hand."""

    def __init__(self):
        self.trouble = ""
        self.mended = False
        self.marked = 0

    async def mark(self):
        self.marked += 1

    async def probe(self):
        if not self.mended:
            raise DiskUnavailable("still full")
        self.trouble = ""


@pytest.mark.requirement("I11-disk-alarm")
async def test_the_alarm_is_published_once_and_ends_when_a_write_succeeds(tmp_path):
    disk, bus = Disk(), Bus()
    watch = StorageWatch(disk, tmp_path, bus=bus)
    with bus.listen() as heard:
        disk.trouble = "the disk cannot be written (disk I/O error)"
        assert "disk I/O error" in watch.alarms()["storage"], "status knows it before the next look"
        for _ in range(3):
            await watch.look()
        disk.mended = True
        await watch.look()
        assert watch.alarms() == {}
        seen = [await anext(aiter(heard)) for _ in range(2)]
    assert [(event.alarm, event.over) for event in seen if isinstance(event, Alarmed)] == [
        ("storage", False),
        ("storage", True),
    ]


async def test_an_audit_log_that_cannot_be_written_is_the_same_alarm(tmp_path):
    watch = StorageWatch(
        Disk(),
        tmp_path,
        bus=Bus(),
        other_trouble=lambda: "the audit log a.jsonl: Input/output error",
    )
    assert "audit log a.jsonl" in watch.alarms()["storage"]


def test_each_problem_of_a_disk_has_its_own_advice():
    here = Path("/mnt/my disk")
    full, ro = (
        DiskSpace(here, here, bytes=MIB, total=64 * MIB),
        DiskSpace(here, here, bytes=900 * MIB, total=1024 * MIB, read_only=True),
    )
    assert ("1.0 MiB free" in full.problem, full.fix) == (
        True,
        "make at least 3.0 MiB of room on '/mnt/my disk'",
    )
    assert "read-only" in ro.problem
    assert ro.fix == (
        "look for the cause with dmesg, check the disk with fsck, "
        "then: mount -o remount,rw '/mnt/my disk'"
    )
    assert (
        "no room for new files"
        in DiskSpace(here, here, bytes=900 * MIB, total=1024 * MIB, inodes=3).problem
    )
    assert DiskSpace(here, here, bytes=900 * MIB, total=1024 * MIB, inodes=30_000).problem == ""


def test_a_read_only_disk_is_seen_before_anything_is_written(tmp_path, monkeypatch):
    found = os.statvfs(tmp_path)
    flags = os.statvfs_result((*found[:8], found.f_flag | os.ST_RDONLY, *found[9:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: flags)
    assert "read-only" in disk_space.explain(tmp_path)


def test_only_faults_of_the_disk_count_as_such():
    assert all(
        is_disk_fault(OSError(number, ""))
        for number in (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO)
    )
    assert not any(map(is_disk_fault, (OSError(errno.EACCES, ""), ValueError(), None)))


def test_the_code_is_transient_and_may_be_retried():
    error = ToolError.of(ErrorCode.STORAGE_UNAVAILABLE, "x")
    assert (error.type, error.retryable) == (ErrorType.TRANSIENT, True)


async def test_the_watch_goes_on_while_the_disk_stays_broken(tmp_path):
    disk = Disk()
    disk.trouble = "full"
    watch = StorageWatch(disk, tmp_path, bus=Bus(), look_s=0.001)
    running = asyncio.ensure_future(watch.run())
    async with asyncio.timeout(60):
        while "storage" not in watch._alarm and not watch._alarm:
            await asyncio.sleep(0)
        disk.mended = True
        while watch.alarms() or not disk.marked:
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
