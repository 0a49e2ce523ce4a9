"""The two socket files of the control API, and what a client may do on each.

A socket is taken by one daemon at a time; its mode and group are set before anyone can connect.
"""

import errno
import fcntl
import grp
import logging
import os
import socket
import stat
from enum import Enum
from pathlib import Path
from typing import Final

from edge.control.http import RequestRefused

log = logging.getLogger(__name__)

MODE: Final = 0o660
ALONE: Final = 0o600
MAX_PATH: Final = 107
"""Bytes of a unix socket's path (sun_path without its final null byte)."""
BACKLOG: Final = 64
UNMAPPED: Final = 65534
"""How the kernel shows a group that this process's user namespace does not know (the unit has
`PrivateUsers=`).
"""
PROBE_S: Final = 1.0


class SocketTaken(Exception):
    """The socket cannot be created. The text says why and what to do."""


class SocketFile:
    """`key` is the setting of its path. With `group_only`, only the daemon's own user may connect
    unless the file is known to belong to `group`: the process's own group must not get in by
    chance.
    """

    def __init__(self, path: Path, group: str, *, key: str, group_only: bool = False) -> None:
        self.path = path
        self._group = group
        self._key = key
        self._group_only = group_only
        self._lock = -1
        self.socket: socket.socket | None = None
        self.open_to = ""
        """The group that may connect; "" if only this process's user may."""

    def open(self) -> None:
        """Listen, so that clients may queue up. Raise `SocketTaken`."""
        if self.socket is not None:
            return
        self._lock = self._take_lock()
        try:
            self.socket = self._bind()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None
            self.path.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _take_lock(self) -> int:
        """Hold the lock beside the socket: of two daemons starting at once, one gets it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(
            self.path.with_name(self.path.name + ".lock"),
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise self._in_use() from None
        return lock

    def _bind(self) -> socket.socket:
        """Make the socket file. Raise `SocketTaken`."""
        fresh = self._fresh()
        if max(len(os.fsencode(fresh)), len(os.fsencode(self.path))) > MAX_PATH:
            raise SocketTaken(
                f"{self.path}: a socket's path may have {MAX_PATH} bytes; "
                f"set {self._key} to a shorter one"
            )
        self._remove_stale()
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            bound.setblocking(False)
            fresh.unlink(missing_ok=True)  # left by a daemon that was killed
            bound.bind(str(fresh))  # nobody can connect before `listen`
            shared = _give_to(fresh, self._group, inherited=fresh != self.path)
            fresh.chmod(MODE if shared or not self._group_only else ALONE)
            self.open_to = self._group if shared else ""
            bound.listen(BACKLOG)
            fresh.replace(self.path)
        except OSError as e:
            bound.close()
            raise SocketTaken(
                f"{self.path}: cannot be created: {e.strerror}; "
                f"check the directory, or set {self._key}"
            ) from e
        return bound

    def _fresh(self) -> Path:
        """Return where the file is created: at its path, or in a folder that gives it its group.

        The sandbox of the systemd unit allows no chgrp, so the unit creates a folder of the
        socket's name with that group and the setgid bit: what is created in it inherits the group,
        and keeps it when it is moved out. A folder of another user is not used: its owner could
        replace the file.
        """
        folder = self.path.with_suffix("")
        try:
            found = folder.lstat()
        except OSError:
            return self.path
        trusted = found.st_uid in {0, os.geteuid()} and not found.st_mode & stat.S_IWOTH
        return (
            folder / self.path.name
            if trusted and stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISGID
            else self.path
        )

    def _remove_stale(self) -> None:
        """Remove a socket file on which no daemon answers; anything else is left alone."""
        try:
            mode = self.path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(mode):
            raise SocketTaken(
                f"{self.path}: is in the way and is no socket; move it, or set {self._key}"
            )
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBE_S)
            answer = probe.connect_ex(str(self.path))
        if answer != errno.ECONNREFUSED:
            raise self._in_use()
        self.path.unlink(missing_ok=True)

    def _in_use(self) -> SocketTaken:
        return SocketTaken(
            f"{self.path}: another glassd is running here; "
            f"stop it (systemctl stop glassd), or set {self._key}"
        )


def _give_to(path: Path, group: str, *, inherited: bool) -> bool:
    """Give the file to the group; return False if it does not belong to it afterwards. Under
    systemd it has `Group=` already, or the group that it `inherited` from its folder.
    """
    try:
        wanted = grp.getgrnam(group).gr_gid if group else -1
    except KeyError:
        log.debug("there is no group %s; only this user can reach %s", group, path.name)
        return False
    if wanted == -1:
        return False
    if path.stat().st_gid in ({wanted, UNMAPPED} if inherited else {wanted}):
        return True
    try:
        os.chown(path, -1, wanted)
    except OSError as e:
        log.warning("cannot give %s to group %s: %s", path.name, group, e.strerror)
        return False
    return True


class ClientRole(Enum):
    """The file system decides who has which: a socket's group is who may open it."""

    CALLER = "control"
    """`control.sock`: calls tools, cancels calls from this socket, and reads."""
    OWNER = "owner"
    """`owner.sock`: all of that, and decides for the wearer: confirms, grants, pairs, enrols,
    configures.
    """

    def may(self, needed: "ClientRole") -> bool:
        return self is ClientRole.OWNER or needed is ClientRole.CALLER


def for_the_owner(what: str, owners: SocketFile) -> RequestRefused:
    """The refusal of what a caller may not do. It names the owner's socket, its group when it
    has one, and how to join that.
    """
    group = owners.open_to
    who = f"for the group {group}" if group else "for the daemon's own user alone"
    join = (
        f"join the group: sudo usermod -aG {group} $USER, then log in again; then " if group else ""
    )
    fix = f"{join}ask on the owner's socket: {owners.path}"
    return RequestRefused("PERMISSION", f"{what} is {who}: this socket calls tools and reads", fix)
