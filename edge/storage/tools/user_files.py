"""One user's own files within one package: `tools_cache.api.handed.Files`.

No name and no link leads out of the folder: every step of a path is opened below the one before it
(openat, O_NOFOLLOW), never looked up twice.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Final, TypeVar

from edge.core.disk_faults import is_disk_fault
from edge.runtime.files import replace_in
from edge.storage.sqlite.database import MIB, DiskUnavailable, StoreFull
from edge.storage.tools.users import Owner, Users
from tools_cache.api.tool import ErrorCode, ToolError, ToolFailure

T = TypeVar("T")

MAX_FILE: Final = 4 * MIB
MAX_BYTES: Final = 16 * MIB
"""Of all files of one user in one package."""
MAX_FILES: Final = 1000
"""Folders count as well."""
MAX_DEPTH: Final = 5
MAX_STEP: Final = 100
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HALF: Final = ".half"


class BadName(ToolFailure):
    """A name that no file of this folder can have."""

    def __init__(self, name: str, why: str) -> None:
        message, fix = f"File name {name[:80]!r} {why}", "Name it like notes/today.txt"
        super().__init__(ToolError.of(ErrorCode.INVALID_ARGUMENTS, message, suggestion=fix))


class UserFiles:
    """Made for each call; makes nothing on disk before something is written."""

    _changing = threading.Lock()
    """Two writers must not both look at the quota; a walk must not meet deleted files."""

    def __init__(self, users: Users, owner: Owner) -> None:
        self._users = users
        self._owner = owner

    async def make_folder(self, name: str) -> None:
        steps = _steps(name)
        await self._change(lambda root: _make_folders(root, steps))

    async def write(self, name: str, data: bytes | str) -> None:
        """Raise BadName, StoreFull, OSError."""
        steps, body = _steps(name), data.encode() if isinstance(data, str) else data
        if len(body) > MAX_FILE:
            most = f"a file has at most {MAX_FILE // MIB} MiB"
            raise StoreFull(f"{name[:80]} has {len(body)} bytes; {most}")
        await self._change(lambda root: _write(root, steps, body))

    async def read(self, name: str) -> bytes:
        """Raise BadName, FileNotFoundError."""
        steps = _steps(name)
        return await self._look(lambda root: _read(root, steps))

    async def exists(self, name: str) -> bool:
        steps = _steps(name)
        with suppress(FileNotFoundError):
            return await self._look(lambda root: _is_there(root, steps))
        return False

    async def delete(self, name: str) -> bool:
        """Raise BadName; OSError when it is a folder with something in it."""
        steps = _steps(name)
        with suppress(FileNotFoundError):
            await self._look(lambda root: _delete(root, steps), alone=True)
            return True
        return False

    async def names(self, folder: str = "") -> list[str]:
        steps = _steps(folder) if folder else ()
        with suppress(FileNotFoundError):
            return await self._look(lambda root: _names(root, steps), alone=True)
        return []

    async def _change(self, work: Callable[[int], T]) -> T:
        def run() -> T:
            folder = self._users.make_folder(self._owner) / "files"
            folder.mkdir(mode=0o700, exist_ok=True)
            with self._changing, _opened(folder) as root:
                return work(root)

        try:
            return await asyncio.to_thread(run)
        except OSError as error:
            if is_disk_fault(error):
                raise DiskUnavailable(f"the disk cannot be written ({error.strerror})") from error
            raise

    async def _look(self, work: Callable[[int], T], *, alone: bool = False) -> T:
        def run() -> T:
            folder = self._users.folder(self._owner) / "files"
            with self._changing if alone else nullcontext(), _opened(folder) as root:
                return work(root)

        return await asyncio.to_thread(run)


def _steps(name: str) -> tuple[str, ...]:
    """Split a name into steps down. Raise BadName."""
    steps = tuple(name.split("/"))
    if name.startswith("/"):
        raise BadName(name, "is an absolute path")
    if len(steps) > MAX_DEPTH:
        raise BadName(name, f"is more than {MAX_DEPTH} folders deep")
    for step in steps:
        too_long = len(step.encode("utf-8", "replace")) > MAX_STEP
        if not step or step.startswith(".") or too_long or not step.isprintable():
            why = "is empty, hidden, too long, unprintable or leads out of its folder"
            raise BadName(name, f"has a part that {why}")
    return steps


# ------------------------------------------------------------------ in a thread


@contextmanager
def _opened(path: "os.PathLike[str] | str", *, below: int | None = None) -> Iterator[int]:
    handle = os.open(path, _FOLDER, dir_fd=below)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _parent(root: int, steps: tuple[str, ...]) -> Iterator[int]:
    """Open the folder the last step is in. A link on the way is an error, wherever it leads."""
    with _opened(".", below=root) as start:
        handle = os.dup(start)
    try:
        for step in steps[:-1]:
            try:
                below = os.open(step, _FOLDER, dir_fd=handle)
            except NotADirectoryError:  # a file, or a link
                raise BadName("/".join(steps), f"goes through {step}, which is no folder") from None
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _make_folders(root: int, steps: tuple[str, ...]) -> None:
    for depth in range(1, len(steps) + 1):
        with _parent(root, steps[:depth]) as parent, suppress(FileExistsError):
            _check_room(root, 0)
            os.mkdir(steps[depth - 1], 0o700, dir_fd=parent)


def _write(root: int, steps: tuple[str, ...], body: bytes) -> None:
    _make_folders(root, steps[:-1])
    _check_room(root, len(body))
    with _parent(root, steps) as parent:
        replace_in(parent, steps[-1], body, temporary=_HALF)


def _read(root: int, steps: tuple[str, ...]) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _parent(root, steps) as parent:
        try:
            handle = os.open(steps[-1], flags, dir_fd=parent)
        except FileNotFoundError:
            raise
        except OSError:
            raise BadName("/".join(steps), "is a link") from None
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadName("/".join(steps), "is no file")
            return file.read(MAX_FILE)


def _is_there(root: int, steps: tuple[str, ...]) -> bool:
    with _parent(root, steps) as parent:
        mode = os.stat(steps[-1], dir_fd=parent, follow_symlinks=False).st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _delete(root: int, steps: tuple[str, ...]) -> None:
    with _parent(root, steps) as parent:
        if stat.S_ISDIR(os.stat(steps[-1], dir_fd=parent, follow_symlinks=False).st_mode):
            os.rmdir(steps[-1], dir_fd=parent)
        else:
            os.unlink(steps[-1], dir_fd=parent)


def _names(root: int, steps: tuple[str, ...]) -> list[str]:
    with _parent(root, (*steps, "")) as folder:
        return sorted(
            "/".join((*steps, *inner))
            for inner, entry in _walk(folder)
            if entry.is_file(follow_symlinks=False)
        )


def _walk(
    folder: int, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], "os.DirEntry[str]"]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name == _HALF:
                continue
            yield (*above, entry.name), entry
            if entry.is_dir(follow_symlinks=False) and len(above) < MAX_DEPTH:
                with _opened(entry.name, below=folder) as below:
                    yield from _walk(below, (*above, entry.name))


def _check_room(root: int, more: int) -> None:
    """Raise StoreFull. A replaced file counts too: both are on disk for a moment."""
    there = [entry.stat(follow_symlinks=False).st_size for _, entry in _walk(root)]
    if len(there) >= MAX_FILES:
        raise StoreFull(f"there are {MAX_FILES} files already; delete some")
    if sum(there) + more > MAX_BYTES:
        raise StoreFull(f"the files have {MAX_BYTES // MIB} MiB together; delete some")
