"""Replaces names, serial numbers, hardware addresses, and the names and addresses of Wi-Fi networks
in a recording by others of equal length, so that the packets stay valid.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge.recording.lines import Line, split_zeros

SHORTEST: Final = 4
"""Characters; a shorter name would be found everywhere."""
MAX_GAP: Final = 16
"""Bytes of a packet's head, before the rest of a name that began in the packet before."""
_ADDRESS: Final = re.compile(r"(?i)[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}")


_NETWORK: Final = ("ssid", "password", "address")
"""Fields of messages that have the name of a Wi-Fi network, its password, or an address in it."""


def secrets_of(lines: Iterable[Line]) -> set[str]:
    """Return the serial numbers that the glasses said."""
    return _said(lines, ("serial",))


def _said(lines: Iterable[Line], keys: Sequence[str]) -> set[str]:
    trees = (line.message or line.command for line in lines)
    return {text for tree in trees for text in _values(tree, keys) if len(text) >= SHORTEST}


def _values(value: Any, keys: Sequence[str]) -> Iterator[str]:
    """Yield the texts of these fields, wherever they are in a tree."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (each,) if key in keys and isinstance(each, str) else _values(each, keys)
    elif isinstance(value, list):
        for each in value:
            yield from _values(each, keys)


def anonymise(lines: Sequence[Line], names: Iterable[str]) -> list[Line]:
    """Return the lines without these names and addresses, without the serial numbers, and without
    names and addresses of networks.
    """
    lines = _without_networks(lines)
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


def _without_networks(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without names and addresses of networks, where they are words of their own:
    a network may be called like a word of the protocol.
    """
    texts = {text: _other(text) for text in _said(lines, _NETWORK)}
    if not texts:
        return list(lines)
    raw = {text.encode(): other.encode() for text, other in texts.items()}
    raw |= {form: b"X" * len(form) for text in texts for form in _escaped(text)}
    longest = sorted(texts, key=len, reverse=True)
    in_text = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)")
    forms = sorted(raw.items(), key=lambda form: -len(form[0]))
    in_bytes = re.compile(rb"(?<!\w)(?:%b)(?!\w)" % b"|".join(re.escape(form) for form, _ in forms))
    replaced = []
    for line in lines:
        if line.is_packet:
            data = in_bytes.sub(lambda found: raw[found[0]], line.content)
            replaced.append(line if data == line.content else _with_data(line, data))
        else:
            replaced.append(
                _in_words(line, lambda t: in_text.sub(lambda found: texts[found[0]], t))
            )
    _replace_across(replaced, forms)
    return replaced


def _escaped(name: str) -> Iterator[bytes]:
    """Yield the forms that JSON, also within JSON, has of a name with other letters or signs."""
    once = json.dumps(name)[1:-1]
    if once != name:
        yield once.encode()
        yield json.dumps(once)[1:-1].encode()


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
    longest = sorted(texts, key=len, reverse=True)

    def change(value: str) -> str:
        for text in longest:
            value = value.replace(text, texts[text])
        return value

    return _in_words(line, change)


def _in_words(line: Line, change: Callable[[str], str]) -> Line:
    """Return a line that is no packet with all its texts changed."""
    changed = {
        name: _in_tree(value, change)
        for name in ("command", "message", "answer", "reason")
        if (value := getattr(line, name))
    }
    return replace(line, **changed) if changed else line


def _in_tree(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        # the type of a message is never a name, whatever the glasses are called
        return {k: each if k == "type" else _in_tree(each, change) for k, each in value.items()}
    return [_in_tree(each, change) for each in value] if isinstance(value, list) else value


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
