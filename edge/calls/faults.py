"""Faults beside a call: a disk that takes nothing, a listener that is gone, a bug elsewhere. Each
is logged and kept for the caller to look at, so that it ends one step and not the whole call.
"""

import logging
from types import TracebackType
from typing import Final, Self

from edge.storage.sqlite.errors import StorageUnavailable

_log: Final = logging.getLogger(__name__)


class Attempt:
    """A `with` block whose error is logged as `problem` and kept in `error`, and not raised: what
    stands after the block runs in any case.

    `bug`: such an error is unexpected, so it is logged with its traceback, unless it is the disk's.
    """

    def __init__(
        self, problem: str, *args: object, level: int = logging.WARNING, bug: bool = False
    ) -> None:
        self._problem = problem
        self._args = args
        self._level = level
        self._bug = bug
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):  # a cancellation is no fault
            return False
        self.error = error
        if self._bug and not isinstance(error, StorageUnavailable):
            _log.error(self._problem, *self._args, exc_info=error)
        else:
            _log.log(self._level, self._problem + ": %s", *self._args, error)
        return True
