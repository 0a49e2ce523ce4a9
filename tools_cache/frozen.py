"""Read-only JSON: what a registry hands out stays as it was validated.

`FrozenDict` and `FrozenList` are real dicts and lists. A `Packed` object is text that is parsed on
access, for thousands of tools from elsewhere: a parsed object takes about ten times its text.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Never


def _refuse(_self: Any, *_args: Any, **_kwargs: Any) -> Never:
    raise TypeError("registry documents are read-only; copy.deepcopy gives one that can be changed")


class FrozenDict(dict[str, Any]):
    """A read-only JSON object; `copy.deepcopy` returns a plain, changeable one."""

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """Pickle as a frozen object: registries are read in a child process."""
        return FrozenDict, (dict(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}


class FrozenList(list[Any]):
    """A read-only JSON array; `copy.deepcopy` returns a plain, changeable one."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return FrozenList, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]


def frozen(value: Any) -> Any:
    """Freeze a JSON value recursively; its depth is bounded by the parsers."""
    if isinstance(value, dict):
        return FrozenDict({str(key): frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value


# ------------------------------------------------------------------ packed

OPEN: Final = 256
"""Objects that stay parsed: calls return to the same few."""


class Packed(Mapping[str, Any]):
    """A JSON object, or the one under its `key`; both share the text. Equals any equal mapping."""

    __slots__ = ("_key", "_text")

    def __init__(self, text: bytes, key: str = "") -> None:
        self._text = text
        self._key = key

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Packed":
        """Pack an object. Raises ValueError or TypeError if it is not JSON."""
        return cls(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())

    def part(self, key: str) -> "Packed":
        """Return the object under a key, without another copy of its text."""
        return Packed(self._text, key)

    @property
    def text(self) -> bytes:
        """The text, of the whole object also for a part of it."""
        return self._text

    @property
    def identity(self) -> tuple[bytes, str]:
        """What it is made of, to compare and to look it up by, without opening it."""
        return self._text, self._key

    def opened(self) -> FrozenDict:
        """Return the whole object, read-only at all levels."""
        whole = _opened(self._text)
        found: FrozenDict = whole[self._key] if self._key else whole
        return found

    def __getitem__(self, key: str) -> Any:
        return self.opened()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.opened())

    def __len__(self) -> int:
        return len(self.opened())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Packed) and (self._text, self._key) == (other._text, other._key):
            return True
        return self.opened() == (other.opened() if isinstance(other, Packed) else other)

    __hash__ = None  # type: ignore[assignment]  # as every mapping of JSON

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = self.opened().__deepcopy__(memo)
        return copied

    def __repr__(self) -> str:
        return f"Packed({self.opened()!r})"


@lru_cache(OPEN)
def _opened(text: bytes) -> FrozenDict:
    found: FrozenDict = frozen(json.loads(text))
    return found
