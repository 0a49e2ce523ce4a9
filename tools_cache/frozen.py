"""Read-only JSON: what a registry hands out stays as it was validated.

Both types are real dicts and lists, so they compare, iterate and dump like them.
"""

import copy
from typing import Any, Never


class FrozenDict(dict[str, Any]):
    """A read-only JSON object; `copy.deepcopy` returns a plain, changeable one."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> Never:
        raise TypeError(
            "registry documents are read-only; copy.deepcopy gives one that can be changed"
        )

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """Pickle as a frozen object: registries are read in a child process."""
        return FrozenDict, (dict(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}


class FrozenList(list[Any]):
    """A read-only JSON array; `copy.deepcopy` returns a plain, changeable one."""

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
    """Freeze a JSON value recursively; its depth is bounded by the parsers."""
    if isinstance(value, dict):
        return FrozenDict({str(key): frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value
