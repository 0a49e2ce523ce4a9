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
from edge.doctor.machine import ExaminedMachine, Who
from edge.doctor.models import Check, Finding, Fix, fail, ok, quoted, run, skip
from edge.doctor.subprocesses import in_thread

MAX_FILES: Final = 20_000
"""Entries of the state directory that are looked at; it has some dozens."""
SECRETS: Final = (
    ("uplink", "password_file", "glassd-mqtt-password"),
    ("uplink", "key_file", "glassd-mqtt-key.pem"),
    ("cloud", "token_file", "glassd-cloud-token"),
)
"""(section, key, systemd credential) of every secret there may be."""


class AccessChecks:
    """The checks of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(
                id="state",
                layer="service",
                title="state directory",
                examine=self._state,
                needs=("config",),
            ),
            Check(
                id="secrets",
                layer="service",
                title="secrets",
                examine=self._secrets,
                needs=("config",),
            ),
        )

    # -------------------------------------------------------------- state

    async def _state(self) -> Finding:
        folder, who = self._patient.state_dir, self._patient.serves
        try:
            found = folder.stat()
        except FileNotFoundError:
            return ok(f"{folder} is not there yet; the daemon makes it")
        except PermissionError:
            return skip(f"you may not look at {folder}", self._machine.as_root("glassd doctor"))
        if not stat.S_ISDIR(found.st_mode):
            return fail(
                f"{folder} is no directory",
                self._by_root(f"mv {quoted(folder)} {quoted(str(folder) + '.was')}"),
            )
        try:
            strange = await in_thread(lambda: next(self._strange(folder, who), None))
        except PermissionError:
            return skip(f"you may not look into {folder}", self._machine.as_root("glassd doctor"))
        return self._judge(folder, found, strange)

    def _strange(self, folder: Path, who: Who) -> Iterator[str]:
        """Name what belongs to somebody else: a `sudo glassd run` leaves files the service
        cannot write.
        """
        for path in (folder, *islice(_below(folder), MAX_FILES)):
            if path.lstat().st_uid != who.uid:
                yield str(path)

    def _judge(self, folder: Path, found: os.stat_result, strange: str | None) -> Finding:
        who, mode, place = self._patient.serves, stat.S_IMODE(found.st_mode), quoted(folder)
        if strange is not None:
            return fail(
                f"{strange} does not belong to {who.name}, whom the daemon runs as",
                self._machine.as_root(f"chown -R {who.name}: {place}", f"chmod u+rwx,go= {place}"),
            )
        if mode & 0o077:
            return fail(
                f"{folder} has mode {mode:04o}: others could read what glassd knows",
                self._by_owner(f"chmod 700 {place}"),
            )
        if mode & 0o700 != 0o700:
            return fail(
                f"{folder} has mode {mode:04o}: its owner cannot write there",
                self._by_owner(f"chmod 700 {place}"),
            )
        return ok(f"{folder}, {who.name}, {mode:04o}")

    def _by_owner(self, command: str) -> Fix:
        return (
            run(command)
            if self._machine.me.uid == self._patient.serves.uid
            else self._machine.as_root(command)
        )

    def _by_root(self, command: str) -> Fix:
        return self._machine.as_root(command)

    # -------------------------------------------------------------- secrets

    async def _secrets(self) -> Finding:
        settings, env = self._patient.settings, self._patient.env
        assert settings is not None
        looked = []
        for section, key, name in SECRETS:
            try:
                path = credential(getattr(getattr(settings, section), key), name, env)
                found = path.stat() if path else None
            except PermissionError as e:
                return skip(
                    f"you may not look at {e.filename}", self._machine.as_root("glassd doctor")
                )
            if path is not None and found is not None:
                wrong = self._wrong(
                    path, found, handed=not getattr(getattr(settings, section), key)
                )
                if wrong is not None:
                    return wrong
                looked.append(path.name)
        for path in await in_thread(lambda: _kept(self._patient.state_dir / FOLDER)):
            if wrong := self._wrong(path, path.stat(), handed=False):
                return wrong
            looked.append(path.name)
        return ok(f"only the daemon may read {', '.join(looked)}" if looked else "there are none")

    def _wrong(self, path: Path, found: os.stat_result, *, handed: bool) -> Finding | None:
        """Judge one file. `handed` ones are systemd's credentials: it reads them as root, so
        only strangers matter.
        """
        who, mode = self._patient.serves, stat.S_IMODE(found.st_mode)
        if handed:
            return (
                fail(
                    f"{path} has mode {mode:04o}: others may read it",
                    self._machine.as_root(f"chmod 600 {quoted(path)}"),
                )
                if mode & 0o077
                else None
            )
        readable = _reads(who, found)
        if readable and not mode & 0o007 and not mode & 0o020:
            return None
        problem = (
            f"has mode {mode:04o}: others may read it"
            if readable
            else f"cannot be read by {who.name}, whom the daemon runs as"
        )
        if found.st_uid == who.uid:
            return fail(f"{path} {problem}", self._by_owner(f"chmod 600 {quoted(path)}"))
        return fail(
            f"{path} {problem}",
            self._machine.as_root(f"chown {who.name}: {quoted(path)}", f"chmod 600 {quoted(path)}"),
        )


def _kept(folder: Path) -> list[Path]:
    """What an enrolment brought; nothing where we may not look, which the check of the state
    directory says.
    """
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=_raise):
        yield from (Path(parent, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


def _reads(who: Who, found: os.stat_result) -> bool:
    """Tell whether a user may read a file, by its mode alone."""
    if who.is_root:
        return True
    shift = 6 if found.st_uid == who.uid else 3 if found.st_gid in who.groups else 0
    return bool(found.st_mode >> shift & 0o4)
