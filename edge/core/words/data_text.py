"""Data of a result that has no text of its own, as lines for a person: a line for each value where
there are few, else a line for each key and the rest on request.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tools_cache.api.tool import Json

Write = Callable[[Json], str]
"""Writes a number, a text, yes or no, or nothing for the wearer."""

TEXT_KEYS: Final = ("text", "message", "summary", "content")
"""Keys whose value is the text of a result."""
_NAMES: Final = (*TEXT_KEYS, "title", "name", "label")
FEW: Final = 12
"""Lines that are shown at once."""
SHORT: Final = 400
"""Characters that are shown at once; a lens holds about 250."""
_KEYS: Final = 4
"""Lines of a summary: with the line that says how to read on they fill a lens."""
_BRIEF: Final = 40
"""Characters of a value in a summary."""
_FEW_KEYS: Final = 5
_LINE: Final = 80
"""Characters of an object that is one line; a lens takes two rows for them."""
_MOST_LINES: Final = 400
_DEEPEST: Final = 6
_LONGEST_JSON: Final = 256 * 1024
"""Bytes of a text that is looked at for JSON: as much as a result may have."""


@dataclass(frozen=True, slots=True)
class DataText:
    """`text` is shown; `more`, if there is any, is all of it, shown when asked for."""

    text: str
    more: str = ""


def describe(data: Json, write: Write) -> DataText:
    """Describe the data of a result: its own text, else lines for what it holds."""
    own = _own_text(data)
    return _of_data(data, write) if own is None else of_text(own, write)


def raw(data: Json) -> str:
    """Return the text of data as it is: its own, else JSON; `of_text` describes either."""
    own = _own_text(data)
    return json.dumps(data, ensure_ascii=False, default=str) if own is None else own


def _own_text(data: Json) -> str | None:
    if isinstance(data, Mapping):
        data = next((data[key] for key in TEXT_KEYS if isinstance(data.get(key), str)), None)
    return data if isinstance(data, str) else None


def of_text(text: str, write: Write) -> DataText:
    """Return a text as it is; one that is JSON is described as the data it holds."""
    found = _json_in(text)
    return DataText(text) if found is None else _of_data(found, write)


def _of_data(data: Json, write: Write) -> DataText:
    if not isinstance(data, Mapping | list):
        return DataText("" if data is None else write(data))
    lines = list(islice(_outline(data, write, 0), _MOST_LINES + 1))
    whole = "\n".join(lines[:_MOST_LINES]) + ("\n…" if len(lines) > _MOST_LINES else "")
    if whole.count("\n") < FEW and len(whole) <= SHORT:
        return DataText(whole)
    return DataText(_summary(data, write), whole)


def _json_in(text: str) -> Json:
    """Return the object or list that a text is; None for other text."""
    if text.lstrip()[:1] not in {"{", "["} or len(text) > _LONGEST_JSON:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


# ------------------------------------------------------------------ all of it


def _outline(data: Json, write: Write, depth: int) -> Iterator[str]:
    """Yield `key: value` lines; what is inside another value is indented below it."""
    if table := _table(data, write):
        yield from table
        return
    indent = "  " * depth
    for label, value in _entries(data):
        if not isinstance(value, Mapping | list):
            yield f"{indent}{label}: {write(value)}"
        elif not value:
            yield f"{indent}{label}: none"
        elif isinstance(value, list) and not any(isinstance(v, Mapping | list) for v in value):
            yield f"{indent}{label}: {', '.join(map(write, value))}"
        elif (line := _in_a_line(value, write)) is not None:
            yield f"{indent}{label}: {line}"
        elif depth >= _DEEPEST:
            yield f"{indent}{label}: {_size(value)}"
        else:
            yield f"{indent}{label}:"
            yield from _outline(value, write, depth + 1)


def _table(data: Json, write: Write) -> list[str]:
    """Return a short list of alike objects as rows, their cells separated by tabs and the keys
    above them; [] for any other value.
    """
    if not isinstance(data, list) or not 2 <= len(data) < FEW:
        return []
    if not all(isinstance(row, Mapping) and row.keys() == data[0].keys() for row in data):
        return []
    keys = tuple(data[0])
    values = [row[key] for row in data for key in keys]
    if not 2 <= len(keys) <= _FEW_KEYS or any(isinstance(v, Mapping | list) for v in values):
        return []
    rows = [[label(str(key)) for key in keys], *([write(row[key]) for key in keys] for row in data)]
    whole = all(cell.strip() and cell.isprintable() for row in rows for cell in row)
    return ["\t".join(row) for row in rows] if whole else []


def _in_a_line(value: Json, write: Write) -> str | None:
    """Return a small object as `Anna, total 12.5`; None for any other value."""
    if not isinstance(value, Mapping) or len(value) > _FEW_KEYS:
        return None
    if any(isinstance(inner, Mapping | list) for inner in value.values()):
        return None
    named = (
        write(inner) if key in _NAMES else f"{label(str(key))} {write(inner)}"
        for key, inner in value.items()
    )
    line = ", ".join(named)
    return line if len(line) <= _LINE and "\n" not in line else None


def _entries(data: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(data, Mapping):
        yield from ((label(str(key)), value) for key, value in data.items())
    else:
        yield from ((str(number), value) for number, value in enumerate(data, 1))


def label(key: str) -> str:
    """Return a key in words: `temperature_c` is `temperature c`."""
    return " ".join(key.replace("_", " ").split()) or key


# ------------------------------------------------------------------ in short


def _summary(data: Json, write: Write) -> str:
    if isinstance(data, list):
        lines = [_brief(value, write) for value in data]
        most = _KEYS - 1
        head = [f"{len(data)} items"] if len(lines) > most else []
    else:
        lines = [f"{name}: {_brief(value, write)}" for name, value in _entries(data)]
        most, head = _KEYS, []
    if len(lines) > most:
        left = len(lines) - (most - 1)
        lines = [*lines[: most - 1], f"and {left} more"]
    return "\n".join([*head, *lines])


def _brief(value: Json, write: Write) -> str:
    if isinstance(value, Mapping):
        named = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
        said = named or ", ".join(
            f"{label(str(key))} {write(inner)}"
            for key, inner in islice(value.items(), 3)
            if not isinstance(inner, Mapping | list)
        )
        return _cut(said) or _size(value)
    if isinstance(value, list):
        return _size(value)
    return _cut(write(value))


def _size(value: Json) -> str:
    many = "items" if isinstance(value, list) else "values"
    return f"{len(value)} {many if len(value) != 1 else many[:-1]}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _BRIEF else line[: _BRIEF - 1].rstrip() + "…"
