"""MessagePack → Python, from its specification and in no way from ours. Standard library only;
extensions are refused.
"""

import struct
from typing import Any

_FIXED = {
    0xC0: None,
    0xC2: False,
    0xC3: True,
}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_SIZED = {
    0xC4: (">B", "bin"),
    0xC5: (">H", "bin"),
    0xC6: (">I", "bin"),
    0xD9: (">B", "str"),
    0xDA: (">H", "str"),
    0xDB: (">I", "str"),
    0xDC: (">H", "array"),
    0xDD: (">I", "array"),
    0xDE: (">H", "map"),
    0xDF: (">I", "map"),
}


def unpack(data: bytes) -> Any:
    """One value, and nothing behind it. Raises ValueError."""
    value, end = _read(data, 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes behind the value")
    return value


def _read(data: bytes, at: int) -> tuple[Any, int]:
    try:
        head = data[at]
    except IndexError:
        raise ValueError("it ends too early") from None
    if head <= 0x7F:
        return head, at + 1
    if head >= 0xE0:
        return head - 256, at + 1
    if head <= 0x8F:
        return _items("map", head & 0x0F, data, at + 1)
    if head <= 0x9F:
        return _items("array", head & 0x0F, data, at + 1)
    if head <= 0xBF:
        return _items("str", head & 0x1F, data, at + 1)
    if head in _FIXED:
        return _FIXED[head], at + 1
    if head in _NUMBERS:
        end = at + 1 + struct.calcsize(_NUMBERS[head])
        return struct.unpack(_NUMBERS[head], data[at + 1 : end])[0], end
    if head in _SIZED:
        form, kind = _SIZED[head]
        end = at + 1 + struct.calcsize(form)
        return _items(kind, struct.unpack(form, data[at + 1 : end])[0], data, end)
    raise ValueError(f"byte 0x{head:02X} is nothing we know")


def _items(kind: str, size: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in ("str", "bin"):
        raw = data[at : at + size]
        if len(raw) != size:
            raise ValueError("it ends too early")
        return (raw.decode() if kind == "str" else raw), at + size
    found: list[Any] = []
    for _ in range(size * 2 if kind == "map" else size):
        value, at = _read(data, at)
        found.append(value)
    return (dict(zip(found[::2], found[1::2], strict=True)) if kind == "map" else found), at
