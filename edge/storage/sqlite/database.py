"""The SQLite database: one writer thread, WAL, every commit on disk before it is acknowledged.

Schemas come in as numbered migrations, work as functions of a connection.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from edge.core.disk_faults import is_disk_fault
from edge.runtime.files import sync_directory
from edge.storage.sqlite.errors import (
    DiskUnavailable,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMisplaced,
)
from edge.storage.sqlite.guard import DatabaseGuard
from edge.storage.sqlite.inspection import Promises
from edge.storage.sqlite.schema import check_whole, transaction
from edge.storage.sqlite.space_reserve import SpaceReserve

__all__ = (
    "MIB",
    "Connection",
    "DiskUnavailable",
    "Row",
    "SqliteDatabase",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreMisplaced",
    "Work",
)

_log = logging.getLogger(__name__)

T = TypeVar("T")
Row = sqlite3.Row
Connection = sqlite3.Connection
Work = Callable[[sqlite3.Connection], T]
"""Runs in the writer thread, inside a transaction; raises to undo only its own changes."""

PAGE: Final = 4096
MIB: Final = 1024 * 1024
MAX_BYTES: Final = 64 * MIB
"""Cap of the file: smaller than any disk we run on, so this limit is met first."""
RESERVE_BYTES: Final = MIB
"""Kept free under the cap for work that finishes or deletes what is already there."""
RESERVE_FILE_BYTES: Final = MIB
QUEUE: Final = 1024
"""Pieces of work waiting for the thread; more wait in `write` and `read`."""
GROUP: Final = 64
"""Pieces of work in one commit: a tenth of the flash wear of single commits (measured)."""
_GONE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OF_THE_DISK: Final = _GONE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}
"""Results that are not one statement's fault: they undo the whole transaction."""
_UNWRITABLE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})
"""Results of a disk that takes nothing; it may do so again later."""


class _Job(Struct, Generic[T]):
    work: Work[T]
    grows: bool
    done: asyncio.Future[T]
    apart: bool = False
    """Runs outside of a transaction."""


_Result = tuple[_Job[Any], Any, BaseException | None]
"""A piece of work, and what it returned or why it failed."""


class _PieceFailed(Exception):
    """One piece of a batch failed by its own fault."""


class SqliteDatabase:
    """`await SqliteDatabase.open(path, migrations)`; then `write`, `read`, `close`.

    Group commit: what queued during the last fsync is committed together; alone, work never waits.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        *,
        max_bytes: int = MAX_BYTES,
        reserve: bool = True,
        shared: bool = False,
        promises: Promises | None = None,
        secure_delete: bool = False,
    ) -> None:
        self.path = path
        self._guard = DatabaseGuard(path, migrations, promises)
        self._failing = ""
        self._max_bytes = max_bytes
        size = RESERVE_FILE_BYTES if reserve else 0
        self._reserve = SpaceReserve(path.with_name(path.name + ".ballast"), size=size)
        self._jobs: queue.Queue[_Job[Any] | None] = queue.Queue()
        self._slots = asyncio.Semaphore(QUEUE)
        self._closed = False
        self._secure_delete = secure_delete
        self._begin = "BEGIN IMMEDIATE" if shared else "BEGIN"  # waits for the other writers
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls,
        path: Path,
        migrations: Sequence[str],
        *,
        max_bytes: int = MAX_BYTES,
        reserve: bool = True,
        shared: bool = False,
        promises: Promises | None = None,
        secure_delete: bool = False,
    ) -> "SqliteDatabase":
        """Open or create. A damaged file becomes `.bad-N`, and what `promises` names is saved.

        `shared`: other processes write, too. `secure_delete`: what is deleted is overwritten with
        zeros. Raise StoreError.
        """
        db = cls(
            path,
            migrations,
            max_bytes=max_bytes,
            reserve=reserve,
            shared=shared,
            promises=promises,
            secure_delete=secure_delete,
        )
        opened: Future[None] = Future()
        opened.set_running_or_notify_cancel()  # a cancelled opener must not cancel it
        db._thread = threading.Thread(target=db._run, args=(opened,), name="store", daemon=True)
        db._thread.start()
        try:
            await asyncio.wrap_future(opened)
        except asyncio.CancelledError:
            db._closed = True
            db._jobs.put(None)  # nobody is left to close it
            raise
        return db

    @property
    def damage(self) -> str:
        """What was wrong at opening and what was saved, as text for `status`; else empty."""
        return self._guard.damage

    async def mark(self) -> None:
        """Note beside the database how far it has come, for when it is lost. Raise StoreError."""
        await self.read(lambda _connection: self._guard.mark_committed())

    @property
    def trouble(self) -> str:
        """Why the disk takes nothing new, as the last attempt found it; empty while it does."""
        return self._reserve.full_because or self._failing

    async def probe(self) -> None:
        """Write one page without a change, so that `trouble` is up to date. Raise StoreError."""
        await self.write(_rewrite_schema_version)
        self._failing = ""

    async def write(self, work: Work[T], *, grows: bool = True) -> T:
        """Run `work`; return its result once it is on disk.

        `grows=False` marks work that finishes or deletes stored things: it may use the reserve. A
        cancelled caller does not know whether its work was done. Raise StoreFull, StoreDamaged,
        StoreClosed.
        """
        return await self._submit(work, grows=grows)

    async def behind(self, work: Work[None], *, failed: Callable[[BaseException], None]) -> None:
        """Queue work that finishes stored things and that nobody waits for.

        It keeps its turn; `failed` gets the reason if it is not on disk. Raise StoreClosed.
        """
        await self._slots.acquire()
        if self._closed:
            self._slots.release()
            raise StoreClosed("the store is closed")

        def over(done: "asyncio.Future[None]") -> None:
            self._slots.release()
            if (error := done.exception()) is not None:
                failed(error)

        job = _Job(work, grows=False, done=self._loop.create_future())
        job.done.add_done_callback(over)
        self._jobs.put(job)

    async def read(self, work: Work[T]) -> T:
        """Run a query; sees every write that was awaited before."""
        return await self._submit(work, grows=False)

    async def compact(self, *, rewrite: bool = False) -> None:
        """Shorten the file by its deleted pages, and empty the WAL, so that no earlier form of a
        page stays on disk. `rewrite`: write the whole file again first, if the disk has the room,
        because what was deleted before `secure_delete` may still be in it. Raise StoreError.
        """
        await self._submit(_rewrite if rewrite else _compact, grows=False, apart=True)

    async def close(self) -> None:
        """Finish what is queued and close. Safe to call again."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _submit(self, work: Work[T], *, grows: bool, apart: bool = False) -> T:
        async with self._slots:
            if self._closed:
                raise StoreClosed("the store is closed")
            job: _Job[T] = _Job(work, grows, self._loop.create_future(), apart)
            self._jobs.put(job)
            return await job.done

    # -------------------------------------------------------------- the writer thread

    def _run(self, opened: "Future[None]") -> None:
        try:
            connection = self._open()
        except BaseException as error:  # noqa: BLE001 - raised in `open`
            opened.set_exception(_as_store_error(error))
            return
        opened.set_result(None)
        try:
            while (batch := self._next_batch()) is not None:
                self._serve(connection, batch)
        finally:
            with suppress(sqlite3.Error):
                _shorten(connection, 256)
            # First: a database that is closed has no WAL, which must not look like a loss.
            self._guard.mark(connection, running=False)
            connection.close()

    def _next_batch(self) -> list[_Job[Any]] | None:
        first = self._jobs.get()
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

    def _serve(self, connection: sqlite3.Connection, batch: list[_Job[Any]]) -> None:
        try:
            self._commit(connection, [job for job in batch if not job.apart])
            for job in batch:
                if job.apart and not job.done.cancelled():
                    self._settle([_run_apart(connection, job)])
            if self._reserve.full_because:
                _give_back(connection)
        except Exception as error:  # noqa: BLE001 - every caller gets an answer
            _log.exception("unexpected error in the store's thread")
            self._settle([(job, None, StoreError(str(error))) for job in batch])

    def _commit(self, connection: sqlite3.Connection, batch: list[_Job[Any]]) -> None:
        """Run a batch in one transaction; if that fails as a whole, each piece alone."""
        batch = [job for job in batch if not job.done.cancelled()]
        changes = connection.total_changes
        try:
            results = self._together(connection, batch)
        except sqlite3.Error:
            for job in batch:
                self._alone(connection, job)
            return
        if self._failing and connection.total_changes > changes:
            self._failing = ""
        self._settle(results)

    def _together(self, connection: sqlite3.Connection, batch: list[_Job[Any]]) -> list[_Result]:
        """Run a batch in one transaction, again with a savepoint each when a piece fails.

        Savepoints cost as much as a short piece of work, and hardly any piece fails.
        """
        try:
            with transaction(connection, self._begin):
                return [(job, *self._attempt(connection, job)) for job in batch]
        except _PieceFailed as failure:
            if len(batch) == 1:
                return [(batch[0], None, failure.__cause__)]
        with transaction(connection, self._begin):
            return [(job, *self._attempt(connection, job, savepoint=True)) for job in batch]

    def _alone(self, connection: sqlite3.Connection, job: _Job[Any]) -> None:
        outcome: tuple[Any, BaseException | None] = (None, None)
        for _ in range(2):  # once more when the reserve made room
            try:
                with transaction(connection, self._begin):
                    outcome = self._attempt(connection, job, savepoint=True)
                break
            except sqlite3.Error as error:
                outcome = (None, error)
                full = _result(error) == sqlite3.SQLITE_FULL
                if not (full and self._reserve.give_up()):
                    break
        if (failure := outcome[1]) is not None and _result(failure) in _OF_THE_DISK:
            self._failing = str(_as_store_error(failure))
        self._settle([(job, *outcome)])

    def _attempt(
        self, connection: sqlite3.Connection, job: _Job[Any], *, savepoint: bool = False
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
            if _result(error) in _OF_THE_DISK:
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
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(_deliver, results)

    # -------------------------------------------------------------- room

    def _no_room(self, connection: sqlite3.Connection) -> StoreFull | None:
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

    # -------------------------------------------------------------- opening

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_dir():
            raise StoreMisplaced(f"{self.path} is a directory, where the database should be")
        try:
            self._guard.before(known=self._reserve.there)
            connection = self._connect()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            of_the_disk = _result(error) in _OF_THE_DISK
            if not (_is_damage(error) or (of_the_disk and self._reserve.give_up())):
                raise  # else an upgrade, or a rescue, has the few pages it needs now
            self._guard.before(known=self._reserve.there)
            connection = self._connect()
        self._reserve.prepare()
        self._guard.mark(connection, running=True)
        return connection

    def _connect(self) -> sqlite3.Connection:
        new = not self.path.exists()
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=5.0
        )
        try:
            connection.row_factory = sqlite3.Row
            for pragma in (
                "auto_vacuum=INCREMENTAL",
                "journal_mode=WAL",
                "synchronous=FULL",
                "wal_autocheckpoint=256",
                f"journal_size_limit={MIB}",
                "foreign_keys=ON",
                f"max_page_count={self._max_bytes // PAGE}",
                "cache_size=-512",
                "temp_store=MEMORY",
                *(["secure_delete=ON"] if self._secure_delete else []),
            ):
                connection.execute(f"PRAGMA {pragma}")
            check_whole(connection)
            self._guard.check(connection)
        except BaseException as error:
            if isinstance(error, Exception) and _is_damage(error):
                self._guard.failed(error, connection.close)
            connection.close()
            raise
        if new:
            sync_directory(self.path.parent)
        return connection


def _run_apart(connection: sqlite3.Connection, job: _Job[Any]) -> _Result:
    try:
        return job, job.work(connection), None
    except Exception as error:  # noqa: BLE001 - its caller gets it
        return job, None, error


def _shorten(connection: sqlite3.Connection, pages: int = 0) -> None:
    """Cut deleted pages off the file: so many, or all. Outside of a transaction."""
    # Not `execute`: it takes one step of a statement without columns, also if its rows are
    # fetched, and one step frees one page.
    connection.executescript(f"PRAGMA incremental_vacuum({pages})")


def _compact(connection: sqlite3.Connection) -> None:
    _shorten(connection)
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise StoreError("another program holds the database open, so its WAL cannot be emptied")


def _rewrite(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # on a full disk what was overwritten is gone all the same
        connection.execute("VACUUM")
    _compact(connection)


def _give_back(connection: sqlite3.Connection) -> None:
    """Return deleted pages to the file system: on a full disk they help only there."""
    with suppress(sqlite3.Error):
        _shorten(connection, 64)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _deliver(results: Iterable[_Result]) -> None:
    """Resolve the futures; one that is done was cancelled, or has its answer already."""
    for job, result, error in results:
        if job.done.done():
            continue
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(_as_store_error(error))


def _result(error: BaseException) -> int | None:
    """Read SQLite's primary result code; None when the error is not SQLite's."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_damage(error: Exception) -> bool:
    """A damaged schema can also be text that Python cannot read."""
    return _result(error) in _GONE or isinstance(error, UnicodeDecodeError)


def _as_store_error(error: BaseException) -> BaseException:
    """Translate SQLite's errors; a caller's own exception stays as it is."""
    if not isinstance(error, sqlite3.Error | sqlite3.Warning | OSError):
        return error
    code = _result(error)
    if code == sqlite3.SQLITE_FULL:
        return DiskUnavailable("the disk or the store is full")
    if code in _GONE:
        return StoreDamaged(f"the database is damaged ({error}); restart to put it aside")
    if code in _UNWRITABLE:
        return DiskUnavailable(f"the disk cannot be written ({error})")
    if is_disk_fault(error):
        return DiskUnavailable(f"the disk cannot be written ({error.strerror})")
    return StoreError(str(error))


def _free_pages(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return found


def _rewrite_schema_version(connection: sqlite3.Connection) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.execute(f"PRAGMA user_version={version}")
