"""Checks of owners and modes: the state directory, and the files that contain secrets.

No secret is read: owner and mode are enough.
"""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from edge.cloud.enrolment.credentials import FOLDER
from edge.config.model import credential
from edge.doctor.machine import CheckGroup, Who
from edge.doctor.models import Finding, Fix, fail, ok, quoted, run
from edge.doctor.subprocesses import in_thread

MAX_FILES: Final = 20_000
"""Entries of the state directory that are looked at; it has some dozens."""
SECRETS: Final = (
    ("uplink", "password_file", "glassd-mqtt-password"),
    ("uplink", "key_file", "glassd-mqtt-key.pem"),
    ("cloud", "token_file", "glassd-cloud-token"),
    ("calendar", "password_file", "glassd-calendar-password"),
)
"""(section, key, systemd credential) of the secrets of the daemon's own settings."""
TOOL_KEYS: Final = frozenset({"password_file", "token_file", "key_file"})
"""Settings of tools, in `[tool.*]`, that name the file of a secret."""


class AccessChecks(CheckGroup):
    """Whether the daemon, and only the daemon, can use its files."""

    # -------------------------------------------------------------- state

    async def state(self) -> Finding:
        folder, who = self._examined.state_dir, self._examined.serves
        try:
            found = folder.stat()
        except FileNotFoundError:
            return ok(f"{folder} is not there yet; the daemon makes it")
        except PermissionError:
            return self._not_allowed(f"look at {folder}")
        if not stat.S_ISDIR(found.st_mode):
            move = f"mv {quoted(folder)} {quoted(str(folder) + '.was')}"
            return fail(f"{folder} is no directory", self._machine.as_root(move))
        try:
            strange = await in_thread(lambda: next(self._strange(folder, who), None))
        except PermissionError:
            return self._not_allowed(f"look into {folder}")
        return self._judge(folder, found, strange)

    def _strange(self, folder: Path, who: Who) -> Iterator[str]:
        """Yield what belongs to another user: a `sudo glassd run` leaves files the service cannot
        write.
        """
        for path in (folder, *islice(_below(folder), MAX_FILES)):
            if path.lstat().st_uid != who.uid:
                yield str(path)

    def _judge(self, folder: Path, found: os.stat_result, strange: str | None) -> Finding:
        who, mode, place = self._examined.serves, stat.S_IMODE(found.st_mode), quoted(folder)
        if strange is not None:
            return fail(
                f"{strange} does not belong to {who.name}, whom the daemon runs as",
                self._machine.as_root(f"chown -R {who.name}: {place}", f"chmod u+rwx,go= {place}"),
            )
        chmod, has = self._by_owner(f"chmod 700 {place}"), f"{folder} has mode {mode:04o}"
        if mode & 0o077:
            return fail(f"{has}: others could read what glassd knows", chmod)
        if mode & 0o700 != 0o700:
            return fail(f"{has}: its owner cannot write there", chmod)
        return ok(f"{folder}, {who.name}, {mode:04o}")

    def _by_owner(self, command: str) -> Fix:
        return (
            run(command)
            if self._machine.me.uid == self._examined.serves.uid
            else self._machine.as_root(command)
        )

    # -------------------------------------------------------------- secrets

    async def secrets(self) -> Finding:
        settings, env = self._settings, self._examined.env
        examined = []
        for section, key, name in SECRETS:
            configured = getattr(getattr(settings, section), key)
            try:
                path = credential(configured, name, env)
                found = path.stat() if path else None
            except PermissionError as e:
                return self._not_allowed(f"look at {e.filename}")
            if path is not None and found is not None:
                if wrong := self._wrong(path, found, by_systemd=not configured):
                    return wrong
                examined.append(path.name)
        try:
            more = await in_thread(lambda: [*self._of_enrolment(), *self._of_tools()])
        except PermissionError as e:
            return self._not_allowed(f"look at {e.filename}")
        for path in more:
            if wrong := self._wrong(path, path.stat(), by_systemd=False):
                return wrong
            examined.append(path.name)
        names = ", ".join(examined)
        return ok(f"only the daemon may read {names}" if names else "there are none")

    def _of_enrolment(self) -> list[Path]:
        """Return the files of an enrolment; none if the folder may not be read, which the check of
        the state directory reports.
        """
        try:
            return sorted((self._examined.state_dir / FOLDER).iterdir())
        except OSError:
            return []

    def _of_tools(self) -> list[Path]:
        """Return the files that settings of tools name, each once. One that is missing is left out:
        its tool says so. Raise PermissionError.
        """
        named = {
            str(value): None
            for values in self._settings.tool.values.values()
            for key, value in values.items()
            if key in TOOL_KEYS and value
        }
        return [path for path in map(Path, named) if path.exists()]

    def _wrong(self, path: Path, found: os.stat_result, *, by_systemd: bool) -> Finding | None:
        """Examine one file. Credentials are read by systemd, as root, so only that others may read
        them matters.
        """
        who, mode = self._examined.serves, stat.S_IMODE(found.st_mode)
        chmod, open_to_others = (
            f"chmod 600 {quoted(path)}",
            f"has mode {mode:04o}: others may read it",
        )
        if by_systemd:
            wrong = mode & 0o077
            return fail(f"{path} {open_to_others}", self._machine.as_root(chmod)) if wrong else None
        readable = _may_read(who, found)
        if readable and not mode & 0o007 and not mode & 0o020:
            return None
        unreadable = f"cannot be read by {who.name}, whom the daemon runs as"
        problem = f"{path} {open_to_others if readable else unreadable}"
        if found.st_uid == who.uid:
            return fail(problem, self._by_owner(chmod))
        return fail(problem, self._machine.as_root(f"chown {who.name}: {quoted(path)}", chmod))


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=_raise):
        yield from (Path(parent, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


def _may_read(who: Who, found: os.stat_result) -> bool:
    """Return whether a user may read a file, by its mode alone."""
    if who.is_root:
        return True
    shift = 6 if found.st_uid == who.uid else 3 if found.st_gid in who.groups else 0
    return bool(found.st_mode >> shift & 0o4)
