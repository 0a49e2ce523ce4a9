"""JSON objects stored as text and parsed on access, for thousands of tools from elsewhere.

A parsed object takes about ten times its text; the last ones used stay parsed. Read-only.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Never

from tools_cache.frozen import FrozenDict, frozen

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

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Never:
        raise TypeError(
            "registry documents are read-only; copy.deepcopy gives one that can be changed"
        )

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
