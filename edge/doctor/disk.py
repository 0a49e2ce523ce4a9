"""Checks of the disk: free space for the state, and an undamaged database.

Nothing is repaired: the daemon puts a damaged database aside itself when it starts.
"""

from pathlib import Path
from typing import Final

from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, Fix, do, fail, ok, quoted, run, warn
from edge.doctor.subprocesses import in_thread
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite import disk_space, marker
from edge.storage.sqlite.probe import Looked, look

MIB: Final = 1024 * 1024
STORAGE_UNAVAILABLE: Final = "STORAGE_UNAVAILABLE"
TIGHT: Final = 128 * MIB
"""The database may grow to 64 MiB, the audit log to 40."""
SPARE: Final = (
    ("/var/log/journal", "journalctl", "--vacuum-size=50M"),
    ("/var/cache/apt/archives", "apt-get", "clean"),
)
"""What the system can do without: (where it is, the program and its options that delete it)."""
CHECK_S: Final = 2.0
"""64 MiB are checked in 0.2 s here, and in a second or two from an SD card."""


class DiskChecks(CheckGroup):
    """Whether the state can be stored."""

    # -------------------------------------------------------------- room

    async def space(self) -> Finding:
        try:
            found = await in_thread(lambda: disk_space.look(self._examined.state_dir))
        except PermissionError as e:
            return self._not_allowed(f"look at {e.filename}")
        if found.problem:
            return fail(
                f"{found.problem}: glassd takes no new calls",
                await self._room_fix(found),
                code=STORAGE_UNAVAILABLE,
            )
        if alarm := self._examined.layer("alarms").get("storage"):  # what only a write finds out
            return fail(
                str(alarm).partition(" Next: ")[0],
                do(f"look for errors of {found.mount} with dmesg, check it with fsck"),
                code=STORAGE_UNAVAILABLE,
            )
        free = f"{found.bytes / MIB:,.0f} MiB free on {found.mount}"
        if found.bytes < TIGHT:
            return warn(f"{free}; less than {TIGHT // MIB} MiB", await self._make_room(found))
        return ok(free)

    async def _room_fix(self, found: disk_space.DiskSpace) -> Fix:
        mount = quoted(found.mount)
        if found.read_only:
            return self._machine.as_root(f"mount -o remount,rw {mount}")
        if found.inodes is not None and found.inodes < disk_space.FEW_INODES:
            return _delete(found.mount, f"du --inodes -x {mount} | sort -n | tail -20")
        return await self._make_room(found)

    async def _make_room(self, found: disk_space.DiskSpace) -> Fix:
        """Return the fix that frees space: delete the databases that were put aside; else what the
        system can do without on this file system; else what its owner chooses. A file system that
        is too small is named as such.
        """
        aside = await in_thread(lambda: _put_aside(self._examined.state_dir))
        if aside:
            command = "rm -r " + " ".join(map(quoted, aside))
            return self._machine.by_writer(self._examined.state_dir, command)
        if spare := await in_thread(lambda: self._spare(found.folder)):
            return self._machine.as_root(*spare)
        mount = found.mount
        largest = f"du -xah {quoted(mount)} | sort -h | tail -20"
        if found.total < 2 * TIGHT:
            return do(
                f"give {mount} more room: it has {found.total // MIB} MiB in all, "
                f"glassd may need {TIGHT // MIB}; until then {_delete(mount, largest).text}"
            )
        return _delete(mount, largest)

    def _spare(self, folder: Path) -> list[str]:
        """Return the commands that free space on the file system of `folder`."""
        here = folder.stat().st_dev
        m = self._machine
        return [
            f"{program} {words}"
            for place, program, words in SPARE
            if m.which(program) and _device(m.path(place)) == here
        ]

    # -------------------------------------------------------------- database

    async def database(self) -> Finding:
        path = self._examined.state_dir / "glassd.db"
        had = await in_thread(lambda: marker.read(path)) is not None
        try:
            found = await in_thread(lambda: look(path, seconds=CHECK_S))
        except FileNotFoundError:
            if had:
                return fail(f"{path} is missing, though there was one", self._put_away(path))
            return ok("there is none yet; the daemon makes it")
        except IsADirectoryError:
            move = run(f"mv {quoted(path)} {quoted(path.with_name('glassd.db.directory'))}")
            return fail(f"{path} is a directory, where the database should be", move)
        except PermissionError:
            return self._not_allowed(f"read {path}")
        if had and not found.bytes:
            return fail(f"{path} is empty, though there was a database", self._put_away(path))
        return self._judge(path, found)

    def _judge(self, path: Path, found: Looked) -> Finding:
        facts = f"{path}, {found.bytes / MIB:.1f} MiB, schema {found.schema}"
        if found.damage:
            damage = " ".join(found.damage.split())[:160]
            return fail(f"{path} is damaged: {damage}", self._put_away(path))
        if found.busy:
            return fail(f"{path} cannot be opened: {found.busy}", self._put_away(path))
        if found.schema > len(MIGRATIONS):
            return fail(
                f"{facts}: made by a newer glassd than this one",
                do("install the newer glassd again"),
            )
        if found.unfinished:
            return warn(
                f"{facts}: not checked to the end in {CHECK_S:g} s",
                do("a slow disk; look again when it is idle"),
            )
        return ok(f"{facts}, whole")

    def _put_away(self, path: Path) -> Fix:
        """Return the fix that puts the database aside: a start of the daemon, or by hand."""
        if (unit := self._examined.unit) is not None:
            restart = f"{unit.manager} restart glassd"
            of_system = unit.manager == "systemctl"
            return self._machine.as_root(restart) if of_system else run(restart)
        if self._examined.status is not None:
            return do(
                "stop glassd run, and start it again: it puts the file aside and begins a fresh one"
            )
        folder = quoted(path.with_name("damaged"))
        return run(
            f"mkdir -p {folder}",
            f"find {quoted(path.parent)} -maxdepth 1 -name "
            f"'glassd.db*' -exec mv -t {folder} {{}} +",
        )


def _delete(mount: Path, largest: str) -> Fix:
    return do(f"delete what you do not need on {mount}; the most of it is in: {largest}")


def _device(place: Path) -> int | None:
    try:
        return place.stat().st_dev
    except OSError:
        return None


def _put_aside(state: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in state.iterdir()
            if path.name.startswith("glassd.db.bad-") or path.name == "damaged"
        )
    except OSError:
        return []
