"""JSON that cannot be changed: what a registry hands out stays as it was checked (S0-33, S2-63).

Refuses to know what the JSON means. Both types are real dicts and lists, so they compare, iterate
and dump like them.
"""

import copy
from typing import Any, Never


class FrozenDict(dict[str, Any]):
    """A JSON object that refuses every change; `copy.deepcopy` gives a plain, changeable one."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Never:
        raise TypeError(
            "registry documents are read-only; copy.deepcopy gives one that can be changed"
        )

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """A registry that was read in a child process comes over as it was made."""
        return FrozenDict, (dict(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}


class FrozenList(list[Any]):
    """A JSON array that refuses every change; `copy.deepcopy` gives a plain, changeable one."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Never:
        raise TypeError(
            "registry documents are read-only; copy.deepcopy gives one that can be changed"
        )

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return FrozenList, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]


def frozen(value: Any) -> Any:
    """Freeze a JSON value all the way down. Recursion is as deep as the value (parsers bound
    that).
    """
    if isinstance(value, dict):
        return FrozenDict({str(key): frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value
