"""Runs the daemon for `glassd run`, and explains why it cannot start."""

import os
from pathlib import Path

from edge.commands.shared.extras import sample
from edge.commands.shared.run_loop import run_until_signal
from edge.config.validators import BadSettings
from edge.control.sockets import SocketTaken
from edge.core.disk_faults import is_disk_fault
from edge.daemon import app
from edge.daemon.startup import Startup
from edge.daemon.supervisor import TooManyCrashes
from edge.runtime import logs
from edge.runtime.errors import UserError
from edge.runtime.worker_process import WorkerProcess
from edge.storage.sqlite import disk_space
from edge.storage.sqlite.database import StoreError, StoreMisplaced
from edge.storage.sqlite.errors import StorageUnavailable


def serve(reading: WorkerProcess[Startup], config: Path | None) -> int:
    """Serve until stopped and return the exit code. Raise `UserError` for what an operator can
    cause. `config`: the named file, if any.
    """
    try:
        read = reading.result()
    except BadSettings as e:
        raise UserError("BAD_SETTINGS", str(e), f"every key is explained in {sample()}") from None
    found = read.settings
    redact = logs.set_up(found.log.level, os.environ)
    try:
        return run_until_signal(
            lambda: app.serve(
                found, hide=redact.hide, registries=read.registries, own=read.own, config=config
            ),
            fast=True,
        )
    except SocketTaken as e:
        raise UserError("SOCKET_TAKEN", str(e)) from None
    except BadSettings as e:  # a secret's file that went away meanwhile
        raise UserError("BAD_SETTINGS", str(e)) from None
    except (FileExistsError, NotADirectoryError) as e:
        problem = f"glassd cannot start: {_no_directory(e)} is a file and must be a directory"
        fix = "move it away, or name another directory as edge.state_dir"
        raise UserError("BAD_SETTINGS", problem, fix) from None
    except StoreMisplaced as e:
        import shlex  # noqa: PLC0415 - only for this error

        database = shlex.quote(str(found.state_dir(os.environ) / "glassd.db"))
        fix = f"move it away: mv {database} {database}.directory"
        raise UserError("CANNOT_START", f"glassd cannot start: {e}", fix, exit_code=2) from None
    except (StoreError, OSError) as e:
        raise _not_stored(e, found.state_dir(os.environ)) from None
    except ExceptionGroup as group:
        raise _crashed(group) from None


def _no_directory(error: OSError) -> str:
    """Return the first part of the path that exists and is not a directory."""
    path = Path(error.filename or "edge.state_dir").absolute()
    parts = (*reversed(path.parents), path)
    return str(next((part for part in parts if part.exists() and not part.is_dir()), path))


def _not_stored(e: Exception, state: Path) -> UserError:
    """Return the error of a state that cannot be read or written: the disk's fault or a file's."""
    problem = f"glassd cannot start: {e}"
    if isinstance(e, StorageUnavailable) or is_disk_fault(e):
        return UserError("STORAGE_UNAVAILABLE", problem, disk_space.explain(state, str(e)))
    where = getattr(e, "filename", None) or state
    fix = f"check that {where} can be written: glassd doctor"
    return UserError("CANNOT_START", problem, fix)


def _crashed(group: ExceptionGroup[Exception]) -> Exception:
    """Report a service that keeps failing; anything else is a bug and keeps its traceback."""
    found = group.subgroup(TooManyCrashes)
    while found is not None and isinstance(found.exceptions[0], ExceptionGroup):
        found = found.exceptions[0]
    if found is None:
        return group
    fix = "find the cause: glassd doctor; its log: journalctl -u glassd"
    return UserError("CRASHED", str(found.exceptions[0]), fix)
