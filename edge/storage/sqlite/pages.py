"""Read SQLite's files as bytes: pages of a damaged database, its write-ahead log and its index.

Takes any bytes: what does not fit the format (sqlite.org/fileformat2.html) is skipped.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

PAGE: Final = 4096
"""The only page size this program makes."""
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = {b"\x37\x7f\x06\x82": "<", b"\x37\x7f\x06\x83": ">"}
"""First bytes of a WAL → byte order of its checksums."""
_MAP_ENTRIES: Final = PAGE // 5
"""Pages described by one page of the pointer map."""
_ROOT, _CHILD = 1, 5
_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 0x02, 0x05, 0x0A, 0x0D
_DEPTH: Final = 20
_NUMBERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Serial type → bytes of an integer."""

Value = int | float | str | bytes | None


class Unreadable(Exception):
    """These bytes are not what the file format wants here."""


# ------------------------------------------------------------------ the write-ahead log


@dataclass(frozen=True, slots=True)
class Index:
    """What the WAL's index (`-shm`) says was committed, and how much is in the database file."""

    committed: int
    copied: int
    salts: bytes


def read_index(raw: bytes) -> Index | None:
    """None when it is damaged or empty: then it says nothing."""
    if (
        len(raw) < 136
        or raw[:48] != raw[48:96]
        or raw[12] != 1
        or _sums("<", raw[:40], (0, 0)) != struct.unpack("<II", raw[40:48])
    ):
        return None
    (committed,), (copied,) = struct.unpack_from("<I", raw, 16), struct.unpack_from("<I", raw, 96)
    return Index(committed, copied, raw[32:40])


@dataclass(frozen=True, slots=True)
class WriteAheadLog:
    """The newest image of each committed page. `whole` is False if a frame is damaged."""

    pages: Mapping[int, bytes] = field(default_factory=dict)
    frames: int = 0
    whole: bool = True


def read_log(raw: bytes) -> WriteAheadLog:
    """Read every frame that can be verified, also behind a damaged one."""
    count = (len(raw) - _WAL_HEADER) // _FRAME_HEADER if len(raw) > _WAL_HEADER else 0
    order, salts, previous = _opening(raw)
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    last, damaged = 0, []
    for number in range(1, count + 1):
        start = _WAL_HEADER + (number - 1) * (_FRAME_HEADER + PAGE)
        frame = raw[start : start + _FRAME_HEADER + PAGE]
        head, page = frame[:_FRAME_HEADER], frame[_FRAME_HEADER:]
        if len(page) < PAGE:
            break
        sums: tuple[int, int] = struct.unpack(">II", head[16:])
        good = (
            head[8:16] == salts
            and previous is not None
            and _sums(order, head[:8] + page, previous) == sums
        )
        previous = sums
        if not good:
            damaged.append(number)
            continue
        where, commits = struct.unpack(">II", head[:8])
        pending[where] = page
        if commits:
            pages.update(pending)
            pending.clear()
            last = number
    return WriteAheadLog(pages, last, whole=not any(number < last for number in damaged))


def _opening(raw: bytes) -> tuple[str, bytes, tuple[int, int] | None]:
    """Return byte order, salts and first checksum of a WAL; None if its header is damaged."""
    head = raw[:_WAL_HEADER]
    order = _MAGIC.get(head[:4], "<")
    if len(head) == _WAL_HEADER:
        sums: tuple[int, int] = struct.unpack(">II", head[24:])
        if sums == _sums(order, head[:24], (0, 0)):
            return order, head[16:24], sums
    return order, raw[_WAL_HEADER + 8 : _WAL_HEADER + 16], None


def _sums(order: str, data: bytes, start: tuple[int, int]) -> tuple[int, int]:
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for a, b in zip(words[::2], words[1::2], strict=True):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return first, second


# ------------------------------------------------------------------ rows


@dataclass(slots=True)
class Image:
    """A database as far as it can be read: the file, with the pages of the WAL over it."""

    file: bytes
    log: Mapping[int, bytes]
    seen: set[int] = field(default_factory=set)
    damaged: int = 0
    """Pages that a table needs and that cannot be read, as far as met."""

    @property
    def count(self) -> int:
        return max(len(self.file) // PAGE, *self.log, 0) if self.log else len(self.file) // PAGE

    def rows(self, root: int) -> Iterator[tuple[int, list[Value]]]:
        """Yield (row number, columns) of each readable row of the table at `root`.

        First down from its root, then the pages under a damaged one, by the pointer map.
        """
        yield from self._down(root, 0)
        for number in range(3, self.count + 1):
            if number not in self.seen and self._root_of(number) == root:
                yield from self._page(number, _DEPTH)

    def _bytes(self, number: int) -> bytes:
        """A page as it is now; empty when it cannot be had."""
        page = self.log.get(number) or self.file[(number - 1) * PAGE : number * PAGE]
        return page if len(page) == PAGE else b""

    def _down(self, number: int, depth: int) -> Iterator[tuple[int, list[Value]]]:
        if number in self.seen or depth > _DEPTH or not 1 < number <= self.count:
            return
        yield from self._page(number, depth)

    def _page(self, number: int, depth: int) -> Iterator[tuple[int, list[Value]]]:
        self.seen.add(number)
        page = self._bytes(number)
        kind, cells = (page[0], struct.unpack_from(">H", page, 3)[0]) if page else (0, 0)
        inner = kind in (_INTERIOR_INDEX, _INTERIOR_TABLE)
        if cells > PAGE // 4 or not (inner or kind in (_LEAF_INDEX, _LEAF_TABLE)):
            self.damaged += 1
            return
        for at in struct.unpack_from(f">{cells}H", page, 12 if inner else 8):
            if inner and at + 4 <= PAGE:
                yield from self._down(struct.unpack_from(">I", page, at)[0], depth + 1)
            if kind != _INTERIOR_TABLE:
                try:
                    yield self._cell(page, at + 4 if inner else at, table=kind == _LEAF_TABLE)
                except (Unreadable, IndexError, struct.error, UnicodeDecodeError):
                    self.damaged += 1
        if inner:
            yield from self._down(struct.unpack_from(">I", page, 8)[0], depth + 1)

    def _cell(self, page: bytes, at: int, *, table: bool) -> tuple[int, list[Value]]:
        size, at = _varint(page, at)
        row, at = _varint(page, at) if table else (0, at)
        most = PAGE - 35 if table else (PAGE - 12) * 64 // 255 - 23
        least = (PAGE - 12) * 32 // 255 - 23
        here = size
        if size > most and (here := least + (size - least) % (PAGE - 4)) > most:
            here = least
        if size > PAGE * self.count or at + here > PAGE:
            raise Unreadable("cell")
        body = page[at : at + here]
        if here < size:
            body += self._overflow(struct.unpack_from(">I", page, at + here)[0], size - here)
        return row, _record(body)

    def _overflow(self, number: int, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            page = self._bytes(number)
            if number < 2 or not page:
                raise Unreadable("overflow")
            parts.append(page[4 : 4 + min(size, PAGE - 4)])
            size -= len(parts[-1])
            number = struct.unpack_from(">I", page)[0]
        return b"".join(parts)

    def _root_of(self, number: int) -> int:
        """Return the root above a page, by the pointer map; 0 if it is free or unknown."""
        for _ in range(_DEPTH):
            at = 2 + (number - 2) // (_MAP_ENTRIES + 1) * (_MAP_ENTRIES + 1)
            if number <= 2 or number == at or not (entries := self._bytes(at)):
                return 0
            kind, parent = struct.unpack_from(">BI", entries, 5 * (number - at - 1))
            if kind == _ROOT:
                return number
            if kind != _CHILD:
                return 0
            number = parent
        return 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(8):
        byte = data[at + n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9


def _record(body: bytes) -> list[Value]:
    """Decode the columns of one row. Raise Unreadable."""
    end, at = _varint(body, 0)
    types: list[int] = []
    while at < end:
        kind, at = _varint(body, at)
        types.append(kind)
    if at != end:
        raise Unreadable("record")
    values: list[Value] = []
    for kind in types:
        value, at = _value(body, at, kind)
        values.append(value)
    if at != len(body):
        raise Unreadable("record")
    return values


def _value(body: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _NUMBERS:
        end = at + _NUMBERS[kind]
        return int.from_bytes(body[at:end], "big", signed=True), end
    if kind == 7:
        return float(struct.unpack_from(">d", body, at)[0]), at + 8
    if kind >= 12:
        end = at + (kind - 12) // 2
        part = body[at:end]
        return (part.decode("utf-8") if kind % 2 else part), end
    if kind in (10, 11):
        raise Unreadable("record")
    return (None if kind == 0 else kind - 8), at


def fits(values: Sequence[Value], types: Sequence[str]) -> bool:
    """Whether a row can be of a table with columns of these declared types."""
    wanted = {"INTEGER": int, "TEXT": str, "REAL": int | float}
    return len(values) <= len(types) and all(
        value is None or isinstance(value, wanted.get(kind, object))
        for value, kind in zip(values, types, strict=False)
    )
