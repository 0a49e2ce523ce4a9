"""Reads the owner's Python tools: directories of `[tools] packages`, in the form of docs/tools.md.

Their code runs in the daemon, with all its rights: a directory counts only if nobody but root and
the daemon's user can change it. Runs in a child of the daemon, because the linter is large.
"""

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tools_cache.api.tool import ToolDefinition
from tools_cache.builder.lint_findings import DOC, HANDLER, SCHEMA, SUMMARY
from tools_cache.registry.models import Dropped

FILES: Final = (SCHEMA, SUMMARY, DOC, HANDLER, "config.py")
MAX_FOLDERS: Final = 200
MAX_FILE: Final = 256 * 1024


class NotTrusted(Exception):
    """Why nothing of this place is read: the problem and its fix."""


def folders(
    packages: Sequence[str], problems: list[Dropped], users: Collection[int] = ()
) -> Iterator[Path]:
    """Yield the trusted tool folders; `problems` gets the reason for each other one. `users`: who
    may own them beside root; by default the user of this process.
    """
    users = {0, *(users or (os.geteuid(),))}
    for package in map(Path, packages):
        try:
            place = _resolved(package, users)
            _check(place, users, directory=True)
            found = sorted(
                p for p in place.iterdir() if p.is_dir() and not p.name.startswith((".", "_"))
            )
        except (NotTrusted, OSError) as e:
            problems.append(Dropped(str(package), _words(e)))
            continue
        if len(found) > MAX_FOLDERS:
            problems.append(
                Dropped(str(package), f"{len(found)} folders; the first {MAX_FOLDERS} are read")
            )
        for folder in found[:MAX_FOLDERS]:
            try:
                _check_folder(folder, users)
            except (NotTrusted, OSError) as e:
                problems.append(Dropped(str(folder), _words(e)))
            else:
                yield folder


def read(
    packages: Sequence[str], problems: list[Dropped], users: Collection[int] = ()
) -> list[tuple[ToolDefinition, str]]:
    """Lint and compile every folder; return each valid tool with its folder."""
    if not packages:
        return []
    from tools_cache.builder import compiler, lint  # noqa: PLC0415 - the linter and the providers' forms, only for who has such tools

    there = list(folders(packages, problems, users))
    known = compiler.names((*lint.folders(compiler.TOOLS), *there))
    tools = []
    for folder in there:
        try:
            tool, failures = compiler.compile_folder(folder, known)
        except Exception as e:  # noqa: BLE001 - whatever a folder holds, it costs that folder only
            problems.append(
                Dropped(str(folder), f"cannot be compiled: {type(e).__name__}: {e}"[:300])
            )
            continue
        if tool is None:
            text, more = failures[0].text, len(failures) - 1
            if more:
                every = f"glassd registry build --tools {folder.parent}"
                text += f" (and {more} more; all of them: {every})"
            problems.append(Dropped(f"{folder}/{failures[0].file}", text))
        else:
            tools.append((replace(tool, own=True), str(folder)))
    return tools


def _check_folder(folder: Path, users: Collection[int]) -> None:
    """Check all that is read of a tool, and its bytecode. Raises as `_check`."""
    _check(folder, users, directory=True)
    for path in filter(os.path.lexists, (folder / file for file in FILES)):
        _check(path, users, directory=False)
    compiled = folder / "__pycache__"
    if os.path.lexists(compiled):
        _check(compiled, users, directory=True)
        for path in compiled.iterdir():
            _check(path, users, directory=False)


def _check(path: Path, users: Collection[int], *, directory: bool) -> None:
    """Raise `NotTrusted` if somebody else can change this place, OSError if it cannot be read."""
    found = path.lstat()  # not what a link leads to: that may be anywhere
    kind = stat.S_ISDIR if directory else stat.S_ISREG
    if not kind(found.st_mode):
        raise NotTrusted(f"{path.name}: is no {'folder' if directory else 'file'}")
    if found.st_uid not in users:
        raise NotTrusted(
            f"{path.name}: belongs to another user, "
            f"and its code would run in the daemon: chown root {path}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotTrusted(
            f"{path.name}: others may write it, and its code would run "
            f"in the daemon: chmod go-w {path}"
        )
    if not directory and found.st_size > MAX_FILE:
        raise NotTrusted(f"{path.name}: is larger than {MAX_FILE // 1024} KiB")


def _resolved(package: Path, users: Collection[int]) -> Path:
    """Return the real path. Raises `NotTrusted` if others could replace it."""
    if not package.is_absolute():
        raise NotTrusted("must be an absolute path")
    place = package.resolve()
    for above in place.parents:
        found = above.stat()
        if found.st_uid not in users or (
            found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        ):
            raise NotTrusted(
                f"somebody else may change what is in {above}: "
                "move the directory, for example to /etc/glassd/packages"
            )
    return place


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return (
            f"cannot be read: {error.strerror}; "
            "write directories that are there into [tools] packages"
        )
    return str(error)
