"""How much room the disk of the state folder has, and whether it can be written.

`status`, the log and `glassd doctor` all ask here, so that they say the same thing.
"""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

MIB: Final = 1024 * 1024
ENOUGH: Final = 4 * MIB
"""Below this nothing new is stored.

1 MiB of reserve, 1 MiB of WAL, and 2 MiB so that the end of one emergency is not the beginning of
the next.
"""
FEW_INODES: Final = 100


class DiskSpace(Struct, frozen=True):
    """One look at the disk of `folder`. `inodes` is None where they are not counted."""

    folder: Path
    mount: Path
    bytes: int
    total: int
    inodes: int | None = None
    read_only: bool = False

    @property
    def problem(self) -> str:
        """What is wrong, in a few words; empty when nothing is."""
        if self.read_only:
            return f"{self.mount} is mounted read-only (a dying SD card does that: dmesg)"
        if self.inodes is not None and self.inodes < FEW_INODES:
            return f"{self.mount} has no room for new files ({self.inodes} inodes free)"
        if self.bytes < ENOUGH:
            return (
                f"{self.mount} is full: {self.bytes / MIB:,.1f} MiB free, "
                f"glassd needs {ENOUGH // MIB} MiB"
            )
        return ""

    @property
    def fix(self) -> str:
        """What to do about the problem, in one sentence."""
        import shlex  # noqa: PLC0415 - only when there is a problem

        mount = shlex.quote(str(self.mount))
        if self.read_only:
            return (
                "look for the cause with dmesg, check the disk with fsck, "
                f"then: mount -o remount,rw {mount}"
            )
        if self.inodes is not None and self.inodes < FEW_INODES:
            return f"delete files you do not need on {mount}"
        if self.bytes < ENOUGH:
            return f"make at least {(ENOUGH - self.bytes) / MIB:,.1f} MiB of room on {mount}"
        return ""


def look(folder: Path) -> DiskSpace:
    """Ask the disk of `folder`, or of the nearest folder above it. Blocking. Raise OSError."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return DiskSpace(
        folder,
        _mount_of(folder),
        bytes=found.f_bavail * found.f_frsize,
        total=found.f_blocks * found.f_frsize,
        inodes=found.f_favail if found.f_files else None,
        read_only=bool(found.f_flag & os.ST_RDONLY),
    )


def explain(folder: Path, why: str = "") -> str:
    """Return why `folder` cannot be written and what to do; "" if it can.

    `why` is the error of a write that failed. Blocking; never raises.
    """
    try:
        room = look(folder)
    except OSError as e:
        return (
            f"Nothing new can be stored: {folder} cannot be examined "
            f"({e.strerror}). Next: glassd doctor"
        )
    if room.problem:
        return f"Nothing new can be stored: {room.problem}. Next: {room.fix}"
    if why:
        return (
            f"Nothing new can be stored in {folder}: {why}. Next: "
            "look for disk errors with dmesg, check the disk with fsck"
        )
    return ""


def _mount_of(folder: Path) -> Path:
    folder = folder.resolve()
    while not folder.is_mount():
        folder = folder.parent
    return folder
