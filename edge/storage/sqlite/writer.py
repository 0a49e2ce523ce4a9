"""The one thread that works on a database: it runs what is queued and commits it, together where it
can, and each commit is on disk before it is acknowledged.
"""

import asyncio
import logging
import math
import queue
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from edge.core.disk_faults import is_disk_fault
from edge.storage.sqlite.errors import (
    DiskUnavailable,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from edge.storage.sqlite.space_reserve import SpaceReserve

_log = logging.getLogger(__name__)

T = TypeVar("T")
Connection = sqlite3.Connection
Work = Callable[[Connection], T]
"""Runs in the writer thread, inside a transaction; raises to undo only its own changes. It may run
again if what it was to be committed with failed.
"""

PAGE: Final = 4096
MIB: Final = 1024 * 1024
RESERVE_BYTES: Final = MIB
"""Kept free under the cap for work that finishes or deletes what is already there."""
GROUP: Final = 64
"""Pieces of work in one commit: a tenth of the flash wear of single commits (measured)."""
MOST_OPEN: Final = 64
"""Pieces of work nobody waits for that are not committed at once."""
SOON_S: Final = 0.1
"""Longest that work nobody waits for stays uncommitted, so that the next commit takes it along."""
_GONE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
OF_THE_DISK: Final = _GONE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}
"""Results that are not one statement's fault: they undo the whole transaction."""
_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})
"""Results of a disk that takes nothing; it may do so again later."""


class Urgency(Enum):
    """When a piece of work is committed."""

    NOW = "now"
    """at once: its caller waits for the disk"""
    SOON = "soon"
    """with the next that is committed, or after SOON_S"""
    READ = "read"
    """never: it changes nothing, and sees what is not committed yet"""
    APART = "apart"
    """it runs outside of a transaction"""


class Job(Struct, Generic[T]):
    """One piece of work; `grows` if it stores something new."""

    work: Work[T]
    grows: bool
    done: "asyncio.Future[T]"
    urgency: Urgency = Urgency.NOW
    commit_by: float = math.inf
    """Until when it may stay uncommitted, on the monotonic clock."""


_Result = tuple[Job[Any], Any, BaseException | None]
"""A piece of work, and what it returned or why it failed."""


class _PieceFailed(Exception):
    """One piece of a batch failed by its own fault."""


class Writer:
    """`run` serves the queue until None is in it. `put` and `replace` are for the loop's thread.

    What queued during the last fsync is committed together; alone, work never waits. Work that
    nobody waits for wakes the thread with the next piece that somebody waits for, or in a moment:
    waking it costs as much as a short piece of work.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        reserve: SpaceReserve,
        *,
        max_bytes: int,
        shared: bool,
    ) -> None:
        """`shared`: other processes write, too; nothing is left uncommitted then."""
        self._loop = loop
        self._reserve = reserve
        self._max_bytes = max_bytes
        self._shared = shared
        self._begin = "BEGIN IMMEDIATE" if shared else "BEGIN"  # waits for the other writers
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._soon: list[Job[Any]] = []
        """What is to be committed soon, and is not queued for the thread yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._open: list[_Result] = []
        """What ran in the transaction that is not committed yet."""
        self._commit_at = 0.0
        self.failing = ""
        """Why the last commit failed; empty once one succeeds."""

    def put(self, job: Job[Any] | None) -> None:
        """Queue a job; None ends `run` after what is queued before it."""
        if job is None or job.urgency is not Urgency.SOON:
            self._queue_soon()
            self._jobs.put(job)
            return
        job.commit_by = time.monotonic() + SOON_S
        self._soon.append(job)
        if len(self._soon) >= MOST_OPEN:
            self._queue_soon()
        elif self._timer is None:
            self._timer = self._loop.call_later(SOON_S, self._queue_soon)

    def replace(self, job: Job[T], work: Work[T]) -> bool:
        """Let other work take the place of a job's; False if the thread has it already."""
        if all(one is not job for one in self._soon):
            return False
        job.work = work
        return True

    def _queue_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._soon = self._soon, []
        for job in waiting:
            self._jobs.put(job)

    # -------------------------------------------------------------- the thread

    def run(self, connection: Connection) -> None:
        """Serve until None was put; everything is committed then."""
        while (batch := self._next_batch()) is not None:
            self._serve(connection, batch)
        self._serve(connection, [])

    def _next_batch(self) -> list[Job[Any]] | None:
        """Wait for work; return an empty batch when it is time to commit what is open."""
        try:
            left_s = max(0.0, self._commit_at - time.monotonic()) if self._open else None
            first = self._jobs.get(timeout=left_s)
        except queue.Empty:
            return []
        if first is None:
            return None
        batch = [first]
        while len(batch) < GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)  # the end comes after this batch
                break
            batch.append(job)
        return batch

    def _serve(self, connection: Connection, batch: list[Job[Any]]) -> None:
        try:
            apart = [job for job in batch if job.urgency is Urgency.APART]
            together = [job for job in batch if job.urgency is not Urgency.APART]
            self._transact(connection, together, commit=not together or bool(apart))
            for job in apart:
                if not job.done.cancelled():
                    self._settle([_run_apart(connection, job)])
            if self._reserve.full_because:
                _give_back(connection)
        except Exception as error:  # noqa: BLE001 - every caller gets an answer
            _log.exception("unexpected error in the store's thread")
            with suppress(sqlite3.Error):
                _roll_back(connection)
            failed, self._open = [*(job for job, _, _ in self._open), *batch], []
            self._settle([(job, None, StoreError(str(error))) for job in failed])

    # -------------------------------------------------------------- transactions

    def _transact(self, connection: Connection, batch: list[Job[Any]], *, commit: bool) -> None:
        """Run a batch in the open transaction, and commit it if that is due; if that fails as a
        whole, each piece alone.
        """
        batch = [job for job in batch if not job.done.cancelled()]
        if not batch and not self._open:
            return
        changes = connection.total_changes
        try:
            results = self._together(connection, batch)
            if commit or self._due(connection, batch):
                if connection.in_transaction:
                    connection.execute("COMMIT")
                if connection.total_changes > changes or self._open:
                    self.failing = ""
                results, self._open = [*self._open, *results], []
            else:
                results = self._leave_open(results)
        except sqlite3.Error:
            _roll_back(connection)
            batch, self._open = [*(job for job, _, _ in self._open), *batch], []
            for job in batch:
                self._alone(connection, job)
            return
        self._settle(results)

    def _due(self, connection: Connection, batch: Sequence[Job[Any]]) -> bool:
        """Return whether the open transaction is to be committed now."""
        if self._shared or self._reserve.full_because or not connection.in_transaction:
            return True
        urgencies = [job.urgency for job in batch]
        waiting = len(self._open) + urgencies.count(Urgency.SOON)
        return Urgency.NOW in urgencies or waiting == 0 or waiting >= MOST_OPEN

    def _leave_open(self, results: Sequence[_Result]) -> list[_Result]:
        """Keep what is to be committed soon; return what was only read."""
        soon = [result for result in results if result[0].urgency is Urgency.SOON]
        if soon and not self._open:
            self._commit_at = soon[0][0].commit_by
        self._open += soon
        return [result for result in results if result[0].urgency is Urgency.READ]

    def _together(self, connection: Connection, batch: list[Job[Any]]) -> list[_Result]:
        """Run a batch in one transaction, again with a savepoint each when a piece fails.

        Savepoints cost as much as a short piece of work, and hardly any piece fails.
        """
        if not connection.in_transaction:
            connection.execute(self._begin)
        try:
            return [(job, *self._attempt(connection, job)) for job in batch]
        except _PieceFailed as failure:
            _roll_back(connection)
            if len(batch) == 1 and not self._open:
                return [(batch[0], None, failure.__cause__)]
        connection.execute(self._begin)
        jobs = [*(job for job, _, _ in self._open), *batch]
        results = [(job, *self._attempt(connection, job, savepoint=True)) for job in jobs]
        self._open, results = results[: -len(batch)], results[-len(batch) :]
        return results

    def _alone(self, connection: Connection, job: Job[Any]) -> None:
        outcome: tuple[Any, BaseException | None] = (None, None)
        for _ in range(2):  # once more when the reserve made room
            try:
                connection.execute(self._begin)
                outcome = self._attempt(connection, job, savepoint=True)
                connection.execute("COMMIT")
                break
            except sqlite3.Error as error:
                _roll_back(connection)
                outcome = (None, error)
                full = result_code(error) == sqlite3.SQLITE_FULL
                if not (full and self._reserve.give_up()):
                    break
        if (failure := outcome[1]) is not None and result_code(failure) in OF_THE_DISK:
            self.failing = str(as_store_error(failure))
        self._settle([(job, *outcome)])

    def _attempt(
        self, connection: Connection, job: Job[Any], *, savepoint: bool = False
    ) -> tuple[Any, BaseException | None]:
        """Run one piece. The disk's error undoes the batch; with a savepoint, the piece's own error
        undoes only the piece, else raise _PieceFailed.
        """
        if job.grows and (full := self._no_room(connection)):
            return None, full
        if savepoint:
            connection.execute("SAVEPOINT job")
        try:
            result = job.work(connection)
        except BaseException as error:  # the caller's own errors are given back to it
            if result_code(error) in OF_THE_DISK:
                raise
            if not savepoint:
                raise _PieceFailed from error
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return None, error
        if savepoint:
            connection.execute("RELEASE job")
        return result, None

    def _settle(self, results: Sequence[_Result]) -> None:
        """Hand results to the event loop, which is woken once for all of them."""
        if results:
            with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                self._loop.call_soon_threadsafe(_deliver, results)

    def _no_room(self, connection: Connection) -> StoreFull | None:
        """Return the error why nothing new is taken now; None when there is room."""
        if self._reserve.full_because and not self._reserve.take_back():
            return DiskUnavailable(self._reserve.full_because)
        most = (self._max_bytes - RESERVE_BYTES) // PAGE
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        if pages >= most and pages - _free_pages(connection) >= most:
            return StoreFull(
                f"the store holds its {self._max_bytes // MIB} MiB; "
                "delete something, or wait until it is delivered"
            )
        return None


# ------------------------------------------------------------------ pages


def shorten(connection: Connection, pages: int = 0) -> None:
    """Cut deleted pages off the file: so many, or all. Outside of a transaction."""
    # Not `execute`: it takes one step of a statement without columns, also if its rows are
    # fetched, and one step frees one page.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")


def compact(connection: Connection) -> None:
    """Cut all deleted pages off the file, and empty the WAL. Raise StoreError."""
    shorten(connection)
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise StoreError("another program holds the database open, so its WAL cannot be emptied")


def rewrite_whole(connection: Connection) -> None:
    """Write the whole file again if the disk has the room, and empty the WAL. Raise StoreError."""
    with suppress(sqlite3.Error):  # on a full disk what was overwritten is gone all the same
        connection.execute("VACUUM")
    compact(connection)


def _give_back(connection: Connection) -> None:
    """Return deleted pages to the file system: on a full disk they help only there."""
    with suppress(sqlite3.Error):
        shorten(connection, 64)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _free_pages(connection: Connection) -> int:
    found: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return found


def _run_apart(connection: Connection, job: Job[Any]) -> _Result:
    try:
        return job, job.work(connection), None
    except Exception as error:  # noqa: BLE001 - its caller gets it
        return job, None, error


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:  # a full disk rolls back by itself
        connection.execute("ROLLBACK")


def _deliver(results: Iterable[_Result]) -> None:
    """Resolve the futures; one that is done was cancelled, or has its answer already."""
    for job, result, error in results:
        if job.done.done():
            continue
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(as_store_error(error))


# ------------------------------------------------------------------ errors


def result_code(error: BaseException) -> int | None:
    """Read SQLite's primary result code; None when the error is not SQLite's."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: Exception) -> bool:
    """Return whether the file is damaged: a damaged schema can also be text that Python cannot
    read.
    """
    return result_code(error) in _GONE or isinstance(error, UnicodeDecodeError)


def as_store_error(error: BaseException) -> BaseException:
    """Translate SQLite's errors; a caller's own exception stays as it is."""
    if not isinstance(error, sqlite3.Error | sqlite3.Warning | OSError):
        return error
    code = result_code(error)
    if code == sqlite3.SQLITE_FULL:
        return DiskUnavailable("the disk or the store is full")
    if code in _GONE:
        return StoreDamaged(f"the database is damaged ({error}); restart to put it aside")
    if code in _UNWRITABLE:
        return DiskUnavailable(f"the disk cannot be written ({error})")
    if is_disk_fault(error):
        return DiskUnavailable(f"the disk cannot be written ({error.strerror})")
    return StoreError(str(error))
