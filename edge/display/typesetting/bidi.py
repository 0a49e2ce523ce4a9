"""The Unicode Bidirectional Algorithm (UAX 9): the order of mixed left-to-right and right-to-left
text.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar
from unicodedata import bidirectional, normalize

MAX_DEPTH: Final = 125
"""Deepest explicit level (BD2); what would be deeper keeps the level it has."""
MAX_BRACKETS: Final = 63
"""Open brackets of one sequence; with more, its brackets stay neutral (BD16)."""
_PAIRS: Final = (
    "()[]{}\u0f3a\u0f3b\u0f3c\u0f3d\u169b\u169c\u2045\u2046\u207d\u207e\u208d\u208e\u2308\u2309"
    "\u230a\u230b\u2329\u232a\u2768\u2769\u276a\u276b\u276c\u276d\u276e\u276f\u2770\u2771\u2772"
    "\u2773\u2774\u2775\u27c5\u27c6\u27e6\u27e7\u27e8\u27e9\u27ea\u27eb\u27ec\u27ed\u27ee\u27ef"
    "\u2983\u2984\u2985\u2986\u2987\u2988\u2989\u298a\u298b\u298c\u298d\u2990\u298f\u298e\u2991"
    "\u2992\u2993\u2994\u2995\u2996\u2997\u2998\u29d8\u29d9\u29da\u29db\u29fc\u29fd\u2e22\u2e23"
    "\u2e24\u2e25\u2e26\u2e27\u2e28\u2e29\u2e55\u2e56\u2e57\u2e58\u2e59\u2e5a\u2e5b\u2e5c\u3008"
    "\u3009\u300a\u300b\u300c\u300d\u300e\u300f\u3010\u3011\u3014\u3015\u3016\u3017\u3018\u3019"
    "\u301a\u301b\ufe59\ufe5a\ufe5b\ufe5c\ufe5d\ufe5e\uff08\uff09\uff3b\uff3d\uff5b\uff5d\uff5f"
    "\uff60\uff62\uff63"
)
_CLOSING: Final = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
_OPENING: Final = {closing: opening for opening, closing in _CLOSING.items()}
_EMBEDS: Final = {"RLE": (1, ""), "LRE": (0, ""), "RLO": (1, "R"), "LRO": (0, "L")}
_ISOLATES: Final = frozenset({"LRI", "RLI", "FSI"})
_REMOVED: Final = frozenset({"RLE", "LRE", "RLO", "LRO", "PDF", "BN"})
_NEUTRAL: Final = frozenset({"B", "S", "WS", "ON", "LRI", "RLI", "FSI", "PDI"})
_TRAILING: Final = frozenset({"WS", "LRI", "RLI", "FSI", "PDI"}) | _REMOVED

T = TypeVar("T")


def find_levels(text: str, base: int | None = None) -> tuple[int, list[int]]:
    """Return the level of one paragraph (0: left to right, 1: right to left) and of each of its
    characters. `base` fixes the former; without it the first strong character decides.
    """
    kinds = [bidirectional(ch) or "L" for ch in text]
    ends = _isolate_ends(kinds)
    first = _first_strong(kinds, 0, len(kinds), ends) if base is None else base
    found = _explicit(kinds, first, ends)
    for sequence in _sequences(kinds, found.levels, ends):
        _resolve(text, sequence, found, kinds)
    return first, _reset(kinds, _implicit(found.types, found.levels), first)


def reorder(items: Sequence[tuple[int, T]]) -> list[T]:
    """Order the items of one row, each with its level, from left to right (rule L2)."""
    row = list(items)
    for level in range(max((level for level, _ in row), default=0), 0, -1):
        start = 0
        while start < len(row):
            end = start
            while end < len(row) and row[end][0] >= level:
                end += 1
            row[start:end] = row[start:end][::-1]
            start = end + 1
    return [item for _, item in row]


# ------------------------------------------------------------------ the paragraph (P2, P3, BD9)


def _isolate_ends(kinds: Sequence[str]) -> dict[int, int]:
    """Where each isolate ends: its PDI, or the end of the paragraph."""
    ends: dict[int, int] = {}
    begun: list[int] = []
    for at, kind in enumerate(kinds):
        if kind in _ISOLATES:
            begun.append(at)
        elif kind == "PDI" and begun:
            ends[begun.pop()] = at
    return ends | dict.fromkeys(begun, len(kinds))


def _first_strong(kinds: Sequence[str], start: int, end: int, ends: dict[int, int]) -> int:
    at = start
    while at < end:
        if kinds[at] in ("L", "R", "AL"):
            return int(kinds[at] != "L")
        at = ends.get(at, at) + 1
    return 0


# ------------------------------------------------------------------ explicit levels (X1 to X8)


class _Explicit(NamedTuple):
    """A paragraph's level, and the level and the type (after overrides) of each character."""

    first: int
    levels: list[int]
    types: list[str]

    def beside(self, sequence: Sequence[int], kinds: Sequence[str]) -> tuple[int, int]:
        """Return the levels before and after a sequence, without what X9 removes."""
        start, end = sequence[0] - 1, sequence[-1] + 1
        while start >= 0 and kinds[start] in _REMOVED:
            start -= 1
        while end < len(kinds) and kinds[end] in _REMOVED:
            end += 1
        unclosed = kinds[sequence[-1]] in _ISOLATES or end >= len(kinds)
        return (
            self.levels[start] if start >= 0 else self.first,
            self.first if unclosed else self.levels[end],
        )


def _explicit(kinds: Sequence[str], first: int, ends: dict[int, int]) -> _Explicit:
    found, resolved = [first] * len(kinds), list(kinds)
    stack = [(first, "", False)]
    isolates_over = embeds_over = isolates = 0
    matched = set(ends.values())
    for at, kind in enumerate(kinds):
        level, override, _ = stack[-1]
        found[at] = level
        if kind in _EMBEDS or kind in _ISOLATES:
            isolating = kind in _ISOLATES
            odd, forced = _EMBEDS.get(kind, (int(kind == "RLI"), ""))
            if kind == "FSI":
                odd = _first_strong(kinds, at + 1, ends[at], ends)
            if isolating and override:
                resolved[at] = override
            deeper = level + 1 + ((level + 1) & 1 != odd)
            if deeper <= MAX_DEPTH and not isolates_over and not embeds_over:
                stack.append((deeper, forced, isolating))
                isolates += isolating
                found[at] = level if isolating else deeper
            elif isolating:
                isolates_over += 1
            elif not isolates_over:
                embeds_over += 1
        elif kind == "PDI":
            if isolates_over:
                isolates_over -= 1
            elif isolates and at in matched:
                embeds_over = 0
                while not stack.pop()[2]:
                    pass
                isolates -= 1
            found[at], override, _ = stack[-1]
            resolved[at] = override or kind
        elif kind == "PDF":
            if not isolates_over and embeds_over:
                embeds_over -= 1
            elif not isolates_over and len(stack) > 1 and not stack[-1][2]:
                stack.pop()
            found[at] = stack[-1][0]
        elif kind == "B":
            found[at] = first
        elif kind != "BN" and override:
            resolved[at] = override
    return _Explicit(first, found, resolved)


def _sequences(
    kinds: Sequence[str], explicit: Sequence[int], ends: dict[int, int]
) -> list[list[int]]:
    """Return the isolating run sequences (X10, BD13): positions that are resolved together."""
    sequences: list[list[int]] = []
    waiting: dict[int, list[int]] = {}
    last: list[int] = []
    for at in (at for at, kind in enumerate(kinds) if kind not in _REMOVED):
        if at in waiting:
            last = waiting.pop(at)
        elif not last or explicit[last[-1]] != explicit[at] or last[-1] in ends:
            last = []
            sequences.append(last)
        last.append(at)
        if at in ends:
            waiting[ends[at]] = last
    return sequences


# ------------------------------------------------------------------ one sequence (W1 to N2)


def _resolve(text: str, sequence: Sequence[int], found: _Explicit, kinds: Sequence[str]) -> None:
    """Resolve the weak and neutral types of one sequence, in place."""
    level = found.levels[sequence[0]]
    sos, eos = ("R" if max(level, other) & 1 else "L" for other in found.beside(sequence, kinds))
    types = [found.types[at] for at in sequence]
    _weak(types, sos)
    _brackets([text[at] for at in sequence], types, [kinds[at] for at in sequence], level, sos)
    _neutral(types, level, sos, eos)
    for at, kind in zip(sequence, types, strict=True):
        found.types[at] = kind


def _weak(types: list[str], sos: str) -> None:
    previous = strong = sos
    for at, kind in enumerate(types):
        if kind == "NSM":  # W1
            types[at] = "ON" if previous in _ISOLATES or previous == "PDI" else previous
        if types[at] == "EN" and strong == "AL":  # W2
            types[at] = "AN"
        if kind in ("L", "R", "AL"):
            strong = kind
        previous = types[at]
    types[:] = ["R" if kind == "AL" else kind for kind in types]  # W3
    for at in range(1, len(types) - 1):  # W4
        left, kind, right = types[at - 1 : at + 2]
        if left == right and (
            (kind == "CS" and left in ("EN", "AN")) or (kind == "ES" and left == "EN")
        ):
            types[at] = left
    for step in (1, -1):  # W5
        order = range(len(types))[::step]
        for at in order:
            beside = at - step
            if types[at] == "ET" and 0 <= beside < len(types) and types[beside] == "EN":
                types[at] = "EN"
    strong = sos
    for at, kind in enumerate(types):  # W6, W7
        if kind in ("L", "R"):
            strong = kind
        if kind in ("ET", "ES", "CS"):
            types[at] = "ON"
        elif kind == "EN" and strong == "L":
            types[at] = "L"


def _brackets(
    characters: Sequence[str], types: list[str], original: Sequence[str], level: int, sos: str
) -> None:
    """Give both brackets of a pair one direction (N0)."""
    own = "R" if level & 1 else "L"
    for opened, closed in _pairs(characters, types):
        inside = {_strong(kind) for kind in types[opened + 1 : closed]} - {""}
        if not inside:
            continue
        direction = own
        if own not in inside:
            before = next((s for s in map(_strong, types[opened - 1 :: -1]) if s), sos)
            context = before if opened else sos
            direction = context if context != own else own
        for at in (opened, closed):
            types[at] = direction
            for mark in range(at + 1, len(types)):
                if original[mark] == "NSM":
                    types[mark] = direction
                elif original[mark] != "BN":
                    break


def _pairs(characters: Sequence[str], types: Sequence[str]) -> list[tuple[int, int]]:
    stack: list[tuple[str, int]] = []
    pairs: list[tuple[int, int]] = []
    for at, ch in enumerate(characters):
        if types[at] != "ON":
            continue
        if ch in _CLOSING:
            if len(stack) == MAX_BRACKETS:
                return []
            stack.append((normalize("NFC", _CLOSING[ch]), at))
        elif ch in _OPENING:
            wanted = normalize("NFC", ch)
            for depth in range(len(stack) - 1, -1, -1):
                if stack[depth][0] == wanted:
                    pairs.append((stack[depth][1], at))
                    del stack[depth:]
                    break
    return sorted(pairs)


def _strong(kind: str) -> str:
    """The direction in which a type counts for its neighbours; "" for none."""
    return "R" if kind in ("R", "EN", "AN") else "L" if kind == "L" else ""


def _neutral(types: list[str], level: int, sos: str, eos: str) -> None:
    own = "R" if level & 1 else "L"
    at = 0
    while at < len(types):
        end = at
        while end < len(types) and types[end] in _NEUTRAL:
            end += 1
        if end > at:
            before = _strong(types[at - 1]) if at else sos
            after = _strong(types[end]) if end < len(types) else eos
            types[at:end] = [before if before == after else own] * (end - at)
        at = end + 1


# ------------------------------------------------------------------ levels: rules I1, I2 and L1


def _implicit(resolved: Sequence[str], explicit: Sequence[int]) -> list[int]:
    found = list(explicit)
    for at, (kind, level) in enumerate(zip(resolved, explicit, strict=True)):
        if level & 1:
            found[at] += kind in ("L", "EN", "AN")
        elif kind == "R":
            found[at] += 1
        elif kind in ("EN", "AN"):
            found[at] += 2
    return found


def _reset(kinds: Sequence[str], found: list[int], first: int) -> list[int]:
    """Separators, and the spaces before them or at the end, take the paragraph's level (L1)."""
    trailing = True
    for at in range(len(kinds) - 1, -1, -1):
        if kinds[at] in ("B", "S"):
            trailing = True
            found[at] = first
        elif trailing and kinds[at] in _TRAILING:
            found[at] = first
        else:
            trailing = False
    return found
