"""Replaces names, serial numbers and hardware addresses in a recording by others of equal length,
so that the packets stay valid.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge.recording.lines import Line, split_zeros

SHORTEST: Final = 4
"""Characters; a shorter name would be found everywhere."""
MAX_GAP: Final = 16
"""Bytes of a packet's head, before the rest of a name that began in the packet before."""
_ADDRESS: Final = re.compile(r"(?i)[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}")


def secrets_of(lines: Iterable[Line]) -> set[str]:
    """Return the serial numbers that the glasses said."""
    found = {str((line.message or {}).get("serial") or "") for line in lines}
    return {serial for serial in found if len(serial) >= SHORTEST}


def anonymise(lines: Sequence[Line], names: Iterable[str]) -> list[Line]:
    """Return the lines without these names and addresses, and without the serial numbers."""
    wanted = {name for name in names if len(name) >= SHORTEST} | secrets_of(lines)
    texts = {text: _other(text) for name in wanted for text in _spellings(name)}
    raw = {text.encode(): other.encode() for text, other in texts.items()}
    for name in wanted:
        if _ADDRESS.fullmatch(name):
            address = bytes.fromhex(re.sub("[:-]", "", name))
            raw |= {address: bytes(6), address[::-1]: bytes(6)}
    forms = sorted(raw.items(), key=lambda form: -len(form[0]))
    replaced = [_in_line(line, texts, forms) for line in lines]
    _replace_across(replaced, forms)
    return replaced


def _spellings(name: str) -> set[str]:
    spelled = {name}
    if _ADDRESS.fullmatch(name):
        plain = re.sub("[:-]", "", name)
        pairs = re.findall("..", plain)
        spelled |= {plain, ":".join(pairs), "-".join(pairs), "_".join(pairs)}
    return {form for each in spelled for form in (each, each.upper(), each.lower())}


def _other(text: str) -> str:
    """Return a text of as many bytes without what it says."""
    return "".join(
        "0" if ch.isascii() and ch.isdigit() else "X" * len(ch.encode()) if ch.isalnum() else ch
        for ch in text
    )


def _in_line(line: Line, texts: dict[str, str], forms: list[tuple[bytes, bytes]]) -> Line:
    if line.is_packet:
        data = line.content
        for form, other in forms:
            data = data.replace(form, other)
        return line if data == line.content else _with_data(line, data)
    changed = {
        name: _in_tree(value, texts)
        for name in ("command", "message", "answer", "reason")
        if (value := getattr(line, name))
    }
    return replace(line, **changed) if changed else line


def _in_tree(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, str):
        for text in sorted(texts, key=len, reverse=True):
            value = value.replace(text, texts[text])
        return value
    if isinstance(value, dict):
        # the type of a message is never a name, whatever the glasses are called
        return {k: each if k == "type" else _in_tree(each, texts) for k, each in value.items()}
    return [_in_tree(each, texts) for each in value] if isinstance(value, list) else value


def _replace_across(lines: list[Line], forms: list[tuple[bytes, bytes]]) -> None:
    """Replace names of which one packet has the beginning and the next one the rest."""
    last: dict[tuple[Any, ...], int] = {}
    for at, line in enumerate(lines):
        if not line.is_packet:
            continue
        before = last.get(stream := (line.to, line.side, line.channel))
        last[stream] = at
        if before is None:
            continue
        for form, other in forms:
            if (cut := _split(lines[before].content, lines[at].content, form)) is not None:
                length, gap = cut
                first, rest = bytearray(lines[before].content), bytearray(lines[at].content)
                first[len(first) - length :] = other[:length]
                rest[gap : gap + len(form) - length] = other[length:]
                lines[before] = _with_data(lines[before], bytes(first))
                lines[at] = _with_data(lines[at], bytes(rest))


def _split(first: bytes, rest: bytes, form: bytes) -> tuple[int, int] | None:
    """Return how many bytes of the form end `first`, and where its rest stands in `rest`."""
    for length in range(len(form) - 1, 0, -1):
        if not first.endswith(form[:length]):
            continue
        gap = rest.find(form[length:], 0, MAX_GAP + len(form) - length)
        if gap >= 0:
            return length, gap
    return None


def _with_data(line: Line, data: bytes) -> Line:
    body, zeros = split_zeros(data)
    return replace(line, data=body.hex(), zeros=zeros)
