"""Do work in a forked child and return its result: its imports stay out of this process.

Only at the start of a program, before any thread, loop or lock that a fork would copy.
"""

import logging
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
LIMIT_S: Final = 30.0
"""Settings and registries take 0.1 s to read, from a sleeping SD card some seconds."""
CHUNK: Final = 256 * 1024

log = logging.getLogger(__name__)


class WorkerProcess(Generic[T]):
    """Work that runs in a child meanwhile. Call `result()` once."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._reads, writes = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._reads)
            _be_the_child(work, writes)
        os.close(writes)

    def result(self, limit_s: float = LIMIT_S) -> T:
        """Return or raise what the work did; if the child died or took too long, do it here."""
        packed = self._read(limit_s)
        try:
            good, answer = pickle.loads(packed)  # noqa: S301 - of our own child
        except (EOFError, pickle.UnpicklingError):
            log.warning("a child process died; its work continues in this process")
            return self._work()
        if not good:
            raise answer
        result: T = answer
        return result

    def _read(self, limit_s: float) -> bytes:
        """Read the child's whole answer and wait for its end; kill one that takes too long."""
        parts, ends = [], time.monotonic() + limit_s
        with os.fdopen(self._reads, "rb", buffering=0) as pipe:
            while select.select([pipe], [], [], max(0.0, ends - time.monotonic()))[0]:
                part = pipe.read(CHUNK)
                if not part:
                    break
                parts.append(part)
            else:
                log.warning("a child process did not answer within %g s", limit_s)
                parts.clear()
                os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        return b"".join(parts)


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
