"""The tools of an app as compressed text. A definition is built when it is looked at, and stays: of
thousands of tools from elsewhere, few are ever used.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final, overload

from tools_cache.api.tool import (
    ExecutionType,
    Json,
    Mode,
    RateLimit,
    SideEffects,
    Source,
    ToolDefinition,
)
from tools_cache.api.wearer import Undo, WearerTexts
from tools_cache.frozen import FrozenDict, Packed, frozen

CHUNK: Final = 32
"""Tools that are built together: about 1 ms on a PC."""
_LEVEL: Final = 3
"""Of the compression: 10,000 tools in 0.1 s, to a tenth of their size."""
_WRITTEN: Final = frozenset({"raw", "input_schema"})
"""Fields that are the author's own text."""


class PackedTools(Sequence[ToolDefinition]):
    """Read-only. `plain`: the names of the cloud's tools about which a list of what is offered
    needs to know no more: no conditions, no dependencies, for everybody.
    """

    __slots__ = ("_built", "_chunks", "names", "plain")

    def __init__(
        self, names: tuple[str, ...], plain: frozenset[str], chunks: tuple[bytes, ...]
    ) -> None:
        self.names = names
        self.plain = plain
        self._chunks = chunks
        self._built: dict[int, tuple[ToolDefinition, ...]] = {}

    @classmethod
    def of(cls, tools: Sequence[ToolDefinition]) -> "PackedTools":
        """Pack tools that were validated."""
        chunks = (tools[first : first + CHUNK] for first in range(0, len(tools), CHUNK))
        return cls(
            tuple(tool.name for tool in tools),
            frozenset(tool.name for tool in tools if _is_plain(tool)),
            tuple(_pack(chunk) for chunk in chunks),
        )

    @property
    def chunks(self) -> tuple[bytes, ...]:
        """The text, to be stored."""
        return self._chunks

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> ToolDefinition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolDefinition, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolDefinition | tuple[ToolDefinition, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        number, place = divmod(range(len(self))[index], CHUNK)
        if number not in self._built:
            self._built[number] = _unpack(self._chunks[number])
        return self._built[number][place]

    def __iter__(self) -> Iterator[ToolDefinition]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedTools):
            return self.names == other.names and self._chunks == other._chunks
        return isinstance(other, tuple) and tuple(self) == other

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __reduce__(self) -> tuple[Any, ...]:
        """Registries are read in a child process."""
        return PackedTools, (self.names, self.plain, self._chunks)


def _is_plain(tool: ToolDefinition) -> bool:
    special = tool.available_when or tool.depends_on or tool.for_programs
    return tool.source is Source.CLOUD and not special


def _pack(tools: Sequence[ToolDefinition]) -> bytes:
    """Return a line of JSON, the fields of each tool and the length of its text, and the texts."""
    texts = [_text(tool) for tool in tools]
    rows = [[len(text), _fields_of(tool)] for tool, text in zip(tools, texts, strict=True)]
    line = json.dumps(rows, separators=(",", ":"), allow_nan=False).encode()
    return zlib.compress(b"\n".join((line, b"".join(texts))), _LEVEL)


def _unpack(chunk: bytes) -> tuple[ToolDefinition, ...]:
    line, _, texts = zlib.decompress(chunk).partition(b"\n")
    tools, first = [], 0
    for length, values in json.loads(line):
        raw = Packed(texts[first : first + length])
        first += length
        read = {key: _READ[key](v) if key in _READ else v for key, v in values.items()}
        known = _EMPTY | read
        tools.append(ToolDefinition(input_schema=raw.part("inputSchema"), raw=raw, **known))
    return tuple(tools)


def _text(tool: ToolDefinition) -> bytes:
    """Return what the author wrote, as `Packed` keeps it."""
    raw = tool.raw if isinstance(tool.raw, Packed) else Packed.of(tool.raw)
    if tool.input_schema != raw["inputSchema"]:
        raise ValueError(f"{tool.name}: its schema is not the one that was written")
    return raw.text


def _fields_of(tool: ToolDefinition) -> dict[str, Json]:
    """Return the fields that differ from their defaults, as JSON."""
    values = {name: getattr(tool, name) for name in _DEFAULTS}
    return {
        name: _WRITE[name](value) if name in _WRITE else value
        for name, value in values.items()
        if value != _DEFAULTS[name]
    }


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


_DEFAULTS: Final[Mapping[str, Any]] = {
    field.name: _default(field) for field in fields(ToolDefinition) if field.name not in _WRITTEN
}


def _write_texts(texts: WearerTexts) -> list[Json]:
    undo = texts.undo and [texts.undo.tool, dict(texts.undo.args)]
    return [texts.name, texts.ask, texts.later, undo]


def _read_texts(written: list[Json]) -> WearerTexts:
    name, ask, later, undo = written
    return WearerTexts(name, ask, later, undo and Undo(undo[0], frozen(undo[1])))


def _read_modes(written: list[Json]) -> frozenset[Mode]:
    return _MODES[tuple(written)]


_EMPTY: Final = {"available_when": FrozenDict(), "local_phrases": FrozenDict()}
"""Shared too, and read-only as those that were written."""
_MODES: Final = {modes: frozenset(map(Mode, modes)) for modes in (("text",), ("voice",))}
"""Shared by tools with equal values; both together are the default."""
_WRITE: Final[Mapping[str, Callable[[Any], Json]]] = {
    "allowed_modes": sorted,
    "available_when": dict,
    "local_phrases": dict,
    "rate_limit": lambda limit: [limit.calls, limit.window_s],
    "wearer": _write_texts,
}
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "activation_phrases": tuple,
    "allowed_modes": _read_modes,
    "available_when": FrozenDict,
    "depends_on": tuple,
    "execution_type": ExecutionType,
    "local_phrases": Packed.of,
    "rate_limit": lambda written: RateLimit(*written),
    "side_effects": SideEffects,
    "source": Source,
    "wearer": _read_texts,
}
