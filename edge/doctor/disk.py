"""Checks of where the daemon keeps what must survive: room on the disk, and a database that is whole.

Refuses to repair: the daemon puts a damaged database aside by itself when it starts.
"""

import os
from pathlib import Path
from typing import Final

from edge.doctor.aside import in_thread
from edge.doctor.patient import Patient
from edge.doctor.words import Check, Finding, Fix, do, fail, ok, quoted, run, skip, warn
from edge.store.migrations import MIGRATIONS
from edge.store.probe import Looked, look

MIB: Final = 1024 * 1024
FULL: Final = 4 * MIB
"""Under this the daemon takes nothing new (its ballast, and room to end the emergency)."""
TIGHT: Final = 128 * MIB
"""The database may grow to 64 MiB, the audit log to 40."""
SPARE: Final = (
    ("/var/log/journal", "journalctl", "--vacuum-size=50M"), ("/var/cache/apt/archives", "apt-get", "clean"),
)  # fmt: skip
"""What the system can do without: where it is, and what frees it."""
CHECK_S: Final = 2.0
"""64 MiB are checked in 0.2 s here, and in a second or two from an SD card."""


class Disk:
    """The checks of this layer."""

    def __init__(self, patient: Patient) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(id="space", layer="disk", title="free space", examine=self._space, needs=("config",)),
            Check(id="database", layer="disk", title="database", examine=self._database, needs=("config",), after=("daemon",), deadline_s=4.0),
        )

    # -------------------------------------------------------------- room

    async def _space(self) -> Finding:
        try:
            folder = await in_thread(lambda: _existing(self._patient.state_dir))
            room = await in_thread(lambda: os.statvfs(folder))
        except PermissionError as e:
            return skip(f"you may not look at {e.filename}", self._machine.as_root("glassd doctor"))
        mount = await in_thread(lambda: _mount_of(folder))
        free, inodes = room.f_bavail * room.f_frsize, room.f_favail
        if room.f_flag & os.ST_RDONLY:
            return fail(f"{mount} is mounted read-only (a dying SD card does that: dmesg)", self._machine.as_root(f"mount -o remount,rw {quoted(mount)}"))
        if room.f_files and inodes < 100:
            return fail(f"{mount} has no room for new files ({inodes} inodes free)", _delete(mount, f"du --inodes -x {quoted(mount)} | sort -n | tail -20"))
        said = f"{free / MIB:,.0f} MiB free on {mount}"
        if free < FULL:
            return fail(f"{said}: glassd takes no new calls", await self._make_room(folder, mount, room))
        return warn(f"{said}; less than {TIGHT // MIB} MiB", await self._make_room(folder, mount, room)) if free < TIGHT else ok(said)

    async def _make_room(self, folder: Path, mount: Path, room: os.statvfs_result) -> Fix:
        """What is ours and not needed goes first: databases that were put aside; then what the system has to spare on this
        very file system. The rest is its owner's to choose; one that is too small by itself is told to be.
        """
        aside = await in_thread(lambda: _put_aside(self._patient.state_dir))
        if aside:
            command = "rm -r " + " ".join(quoted(path) for path in aside)
            return run(command) if os.access(self._patient.state_dir, os.W_OK) else self._machine.as_root(command)
        spare = await in_thread(lambda: self._spare(folder))
        if spare:
            return self._machine.as_root(*spare)
        largest, size = f"du -xah {quoted(mount)} | sort -h | tail -20", room.f_blocks * room.f_frsize
        if size < 2 * TIGHT:
            return do(f"give {mount} more room: it has {size // MIB} MiB in all, glassd may need {TIGHT // MIB}; until then {_delete(mount, largest).text}")
        return _delete(mount, largest)

    def _spare(self, folder: Path) -> list[str]:
        """The commands that free what the system keeps where `folder` is; elsewhere they would free nothing for us."""
        here = folder.stat().st_dev
        m = self._machine
        return [f"{program} {words}" for place, program, words in SPARE if m.which(program) and _device(m.path(place)) == here]

    # -------------------------------------------------------------- database

    async def _database(self) -> Finding:
        path = self._patient.state_dir / "glassd.db"
        try:
            found = await in_thread(lambda: look(path, seconds=CHECK_S))
        except FileNotFoundError:
            return ok("there is none yet; the daemon makes it")
        except PermissionError:
            return skip(f"you may not read {path}", self._machine.as_root("glassd doctor"))
        return self._judged(path, found)

    def _judged(self, path: Path, found: Looked) -> Finding:
        said = f"{path}, {found.bytes / MIB:.1f} MiB, schema {found.schema}"
        if found.damage:
            return fail(f"{path} is damaged: {' '.join(found.damage.split())[:160]}", self._put_away(path))
        if found.busy:
            return fail(f"{path} cannot be opened: {found.busy}", self._put_away(path))
        if found.schema > len(MIGRATIONS):
            return fail(f"{said}: made by a newer glassd than this one", do("install the newer glassd again"))
        if found.unfinished:
            return warn(f"{said}: not checked to the end in {CHECK_S:g} s", do("a slow disk; look again when it is idle"))
        return ok(f"{said}, whole")

    def _put_away(self, path: Path) -> Fix:
        """The daemon does it when it starts; without a service we say how to do the same by hand."""
        if self._patient.unit is not None:
            return self._machine.as_root("systemctl restart glassd") if self._patient.unit.manager == "systemctl" else run("systemctl --user restart glassd")
        if self._patient.status is not None:
            return do("stop glassd run, and start it again: it puts the file aside and begins a fresh one")
        folder = quoted(path.with_name("damaged"))
        return run(f"mkdir -p {folder}", f"find {quoted(path.parent)} -maxdepth 1 -name 'glassd.db*' -exec mv -t {folder} {{}} +")


def _delete(mount: Path, largest: str) -> Fix:
    return do(f"delete what you do not need on {mount}; the most of it is in: {largest}")


def _device(place: Path) -> int | None:
    try:
        return place.stat().st_dev
    except OSError:
        return None


def _existing(folder: Path) -> Path:
    """The folder, or what there is of the way to it."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _mount_of(folder: Path) -> Path:
    folder = folder.resolve()
    while not folder.is_mount():
        folder = folder.parent
    return folder


def _put_aside(state: Path) -> list[Path]:
    try:
        return sorted(path for path in state.iterdir() if path.name.startswith("glassd.db.bad-") or path.name == "damaged")
    except OSError:
        return []
