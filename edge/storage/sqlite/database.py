"""The SQLite database: one writer thread, WAL, every commit on disk before it is acknowledged.

Schemas come in as numbered migrations, work as functions of a connection (writer.py runs it).
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

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
from edge.storage.sqlite.schema import check_whole
from edge.storage.sqlite.space_reserve import SpaceReserve
from edge.storage.sqlite.writer import (
    MIB,
    OF_THE_DISK,
    PAGE,
    Job,
    Urgency,
    Work,
    Writer,
    as_store_error,
    compact,
    is_damage,
    result_code,
    rewrite_whole,
    shorten,
)

__all__ = (
    "MIB",
    "Connection",
    "DiskUnavailable",
    "Job",
    "Row",
    "SqliteDatabase",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreMisplaced",
    "Work",
)

T = TypeVar("T")
Row = sqlite3.Row
Connection = sqlite3.Connection
MAX_BYTES: Final = 64 * MIB
"""Cap of the file: smaller than any disk we run on, so this limit is met first."""
RESERVE_FILE_BYTES: Final = MIB
QUEUE: Final = 1024
"""Pieces of work waiting for the thread; more wait in `write` and `read`."""


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
        self._max_bytes = max_bytes
        size = RESERVE_FILE_BYTES if reserve else 0
        self._reserve = SpaceReserve(path.with_name(path.name + ".ballast"), size=size)
        self._slots = asyncio.Semaphore(QUEUE)
        self._closed = False
        self._secure_delete = secure_delete
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(self._loop, self._reserve, max_bytes=max_bytes, shared=shared)

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
            db._writer.put(None)  # nobody is left to close it
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
        return self._reserve.full_because or self._writer.failing

    async def probe(self) -> None:
        """Write one page without a change, so that `trouble` is up to date. Raise StoreError."""
        await self.write(_rewrite_schema_version)
        self._writer.failing = ""

    async def write(self, work: Work[T], *, grows: bool = True, soon: bool = False) -> T:
        """Run `work`; return its result once it is on disk.

        `grows=False` marks work that finishes or deletes stored things: it may use the reserve.
        `soon`: it is committed with the next write, or in a moment. A cancelled caller does not
        know whether its work was done. Raise StoreFull, StoreDamaged, StoreClosed.
        """
        return await self._submit(work, Urgency.SOON if soon else Urgency.NOW, grows=grows)

    async def behind(
        self,
        work: Work[T],
        *,
        failed: Callable[[BaseException], None],
        stored: Callable[[], None] | None = None,
        grows: bool = False,
    ) -> Job[T]:
        """Queue work that nobody waits for; return it, for `replace`.

        It keeps its turn, and whatever is asked later sees it. It is committed with the next write,
        or in a moment; then `stored` is called, or `failed` with the reason why it is not on disk.
        Raise StoreClosed.
        """
        await self._slots.acquire()
        if self._closed:
            self._slots.release()
            raise StoreClosed("the store is closed")

        def over(done: "asyncio.Future[T]") -> None:
            self._slots.release()
            if (error := done.exception()) is not None:
                failed(error)
            elif stored is not None:
                stored()

        job = Job(work, grows, self._loop.create_future(), Urgency.SOON)
        job.done.add_done_callback(over)
        self._writer.put(job)
        return job

    def replace(self, job: Job[T], work: Work[T]) -> bool:
        """Let other work take the place of what is queued behind; False if it has begun."""
        return self._writer.replace(job, work)

    async def read(self, work: Work[T]) -> T:
        """Run a query; it sees all work that was queued before, committed or not."""
        return await self._submit(work, Urgency.READ)

    async def compact(self, *, rewrite: bool = False) -> None:
        """Shorten the file by its deleted pages, and empty the WAL, so that no earlier form of a
        page stays on disk. `rewrite`: write the whole file again first, if the disk has the room,
        because what was deleted before `secure_delete` may still be in it. Raise StoreError.
        """
        await self._submit(rewrite_whole if rewrite else compact, Urgency.APART)

    async def close(self) -> None:
        """Finish what is queued and close. Safe to call again."""
        if self._closed:
            return
        self._closed = True
        self._writer.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def _submit(self, work: Work[T], urgency: Urgency, *, grows: bool = False) -> T:
        async with self._slots:
            if self._closed:
                raise StoreClosed("the store is closed")
            job: Job[T] = Job(work, grows, self._loop.create_future(), urgency)
            self._writer.put(job)
            return await job.done

    # -------------------------------------------------------------- the writer thread

    def _run(self, opened: "Future[None]") -> None:
        try:
            connection = self._open()
        except BaseException as error:  # noqa: BLE001 - raised in `open`
            opened.set_exception(as_store_error(error))
            return
        opened.set_result(None)
        try:
            self._writer.run(connection)
        finally:
            with suppress(sqlite3.Error):
                shorten(connection, 256)
            # First: a database that is closed has no WAL, which must not look like a loss.
            self._guard.mark(connection, running=False)
            connection.close()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_dir():
            raise StoreMisplaced(f"{self.path} is a directory, where the database should be")
        try:
            self._guard.before(known=self._reserve.there)
            connection = self._connect()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            of_the_disk = result_code(error) in OF_THE_DISK
            if not (is_damage(error) or (of_the_disk and self._reserve.give_up())):
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
            if isinstance(error, Exception) and is_damage(error):
                self._guard.failed(error, connection.close)
            connection.close()
            raise
        if new:
            sync_directory(self.path.parent)
        return connection


def _rewrite_schema_version(connection: sqlite3.Connection) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.execute(f"PRAGMA user_version={version}")
