"""Notice a database that is damaged, missing, empty or an older copy, and save what can be read.

A database without promises is only put aside when SQLite cannot use it.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from edge.storage.sqlite import inspection, marker as marking
from edge.storage.sqlite.files import set_aside
from edge.storage.sqlite.inspection import Damage, Promises
from edge.storage.sqlite.marker import MarkerFile
from edge.storage.sqlite.schema import migrate, transaction

if TYPE_CHECKING:
    from edge.storage.sqlite.pages import Index

_log = logging.getLogger(__name__)


BOOT: Final = "boot_id"
"""The label in the marker file that says in which boot of the machine it was written."""


class DatabaseGuard:
    """One per opened database. `damage` says, for `status`, what was wrong and what was saved."""

    def __init__(self, path: Path, migrations: Sequence[str], promises: Promises | None) -> None:
        self._path = path
        self._migrations = migrations
        self._promises = promises
        self._marks: MarkerFile | None = None
        self._index: Index | None = None
        self.damage = ""

    def before(self, *, known: bool) -> None:
        """Look at the files before SQLite does. Raise OSError, sqlite3.Error.

        `known`: something else says that this database was used before.
        """
        if self._promises is None or self.damage:
            return
        self._marks = marking.read(self._path)
        inspection.finish(self._path)
        killed = self._was_killed()
        self._index = inspection.index_of(self._path) if killed else None
        known = known or self._marks is not None
        if damage := inspection.examine(self._path, self._index, killed=killed, known=known):
            self.repair(damage)

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise sqlite3.DatabaseError if SQLite found less in the WAL than was committed."""
        if damage := inspection.lost_in_log(self._path, self._index):
            error = sqlite3.DatabaseError(damage)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        # Before an upgrade, which may build tables again.
        replaced = inspection.older_copy(connection, self._marks)
        migrate(connection, self._migrations)
        if self._promises is not None:
            self._recognise(connection, self._promises, replaced)

    def failed(self, error: Exception, close: Callable[[], None]) -> None:
        """Opening failed with damage: what SQLite closes must not take the WAL with it."""
        inspection.keeping_log(self._path, close)
        self.repair(error.args[0] if isinstance(error.args[0], Damage) else Damage(str(error)))

    def repair(self, damage: Damage) -> None:
        """Put the files aside; what was promised is saved first. Raise OSError, sqlite3.Error."""
        if self._promises is None:
            aside = set_aside(self._path)
            self.damage = (
                f"The database was damaged ({damage.why}); "
                f"it is kept as {aside.name}, a fresh one was started"
            )
        else:
            from edge.storage.sqlite import rescue  # noqa: PLC0415 - only for damage

            self.damage = rescue.rescue(
                self._path,
                damage,
                self._promises,
                migrations=self._migrations,
                marks=self._marks,
                index=self._index,
            )
            self._index = None
            self._marks = None  # they speak of the one that is aside
        _log.error("%s", self.damage)

    def mark(self, connection: sqlite3.Connection, *, running: bool) -> None:
        """Note beside the database how far it has come; a disk that refuses is no error.

        Nothing depends on the note while the database is whole.
        """
        if (promises := self._promises) is None:
            return
        with suppress(OSError, sqlite3.Error):
            number, rows = inspection.identity(connection), inspection.numbers(connection)
            promised = promises.count(connection)
            found = MarkerFile(number, running, rows, promised, promises.labels)
            if found != self._marks:
                marking.write(self._path, found, durable=self._marks is None or not running)
                self._marks = found

    def mark_committed(self) -> None:
        """Note how far an open database has come, through a connection of its own.

        The open one also sees what is not committed; if that never is, the database would look like
        an older copy.
        """
        if self._promises is None:
            return
        uri = f"file:{quote(str(self._path))}?mode=ro"
        with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as committed:
            self.mark(committed, running=True)

    def _was_killed(self) -> bool:
        """Whether the database was left open in this very boot: WAL and index are then as left.

        After a power cut the index is older than the WAL, or both are missing.
        """
        if self._marks is None or not self._marks.running:
            return False
        boot_id = None if self._promises is None else self._promises.labels.get(BOOT)
        return self._marks.labels.get(BOOT) == boot_id

    def _recognise(
        self, connection: sqlite3.Connection, promises: Promises, replaced: Damage | None
    ) -> None:
        """Accept a usable database: report what is wrong with it and give it its own id."""
        before = self.damage
        with transaction(connection):
            mended = promises.mend(connection)
            if replaced:
                saved = promises.settle(connection, stale=True, whole=False)
                self.damage = (
                    f"The database was replaced: {replaced.why}. {saved.kept} promised calls"
                    " are in it. Next: put the right one back, if there is one"
                )
            elif mended:
                self.damage = (
                    f"The database was damaged: {mended} promised calls or messages could not be"
                    " read. Next: see glassd calls, and look for disk errors with dmesg"
                )
        if self.damage != before:
            _log.error("%s", self.damage)
        if not inspection.identity(connection):
            connection.execute(f"PRAGMA application_id={inspection.new_identity()}")
