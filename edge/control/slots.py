"""Concurrency limits: a request for which no place is free is refused at once, never queued."""

from collections.abc import Iterator
from contextlib import contextmanager

from edge.control.http import RequestRefused


class Slots:
    """`with places.one(): …` takes a place. Raises `RequestRefused` (503), with a fix, when all are
    taken.
    """

    def __init__(self, most: int, problem: str, fix: str) -> None:
        self._most = most
        self._problem = problem
        self._fix = fix
        self._taken = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        if self._taken >= self._most:
            raise RequestRefused(503, "BUSY", self._problem, self._fix)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
