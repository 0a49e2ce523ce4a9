"""Do a piece of work in a forked child and take its result: what the work imported stays out of this process.

Refuses to know the work. For the start of a program only: before any thread, loop or lock that a fork would copy.
"""

import logging
import os
import pickle
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Apart(Generic[T]):
    """Work under way in a child. `result()` is called once; meanwhile this process can do something else."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._reads, writes = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._reads)
            _be_the_child(work, writes)
        os.close(writes)

    def result(self) -> T:
        """Give what the work gave, or raise what it raised. A child that died is no answer: then it is done here."""
        with os.fdopen(self._reads, "rb") as pipe:
            packed = pipe.read()
        os.waitpid(self._child, 0)
        try:
            good, answer = pickle.loads(packed)  # noqa: S301 - of our own child
        except (EOFError, pickle.UnpicklingError):
            log.warning("a child process died; its work is done in this one")
            return self._work()
        if not good:
            raise answer
        result: T = answer
        return result


def _be_the_child(work: Callable[[], object], writes: int) -> None:
    """Never returns: the parent's cleanups are not this process's business."""
    try:
        try:
            packed = pickle.dumps((True, work()))
        except Exception as error:  # noqa: BLE001 - the parent raises it
            packed = pickle.dumps((False, error))
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(packed)
    finally:
        os._exit(0)
