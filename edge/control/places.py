"""A bounded number of places. Refuses to make anyone wait for one: who finds none is told so at
once.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from edge.control.http import Refused


class Places:
    """`with places.one(): …` takes a place. Raises `Refused` (503) when all are taken; the
    words say what to do.
    """

    def __init__(self, most: int, problem: str, fix: str) -> None:
        self._most = most
        self._problem = problem
        self._fix = fix
        self._taken = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        if self._taken >= self._most:
            raise Refused(503, "BUSY", self._problem, self._fix)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
