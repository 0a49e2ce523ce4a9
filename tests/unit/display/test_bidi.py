"""The order of mixed left-to-right and right-to-left text (UAX 9)."""

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from edge.display.typesetting.bidi import find_levels, reorder

CONFORMANCE = Path("/usr/share/unicode/BidiCharacterTest.txt")
"""Unicode's own 91,707 cases: Debian's package unicode-data."""
SHARE = 20
"""One case in so many is played: all of them take ten seconds."""
ALEF, BET, ARABIC = "\u05d0", "\u05d1", "\u0627"


def seen(text: str, base: int | None = None) -> str:
    """The characters from left to right."""
    _, levels = find_levels(text, base)
    return "".join(reorder(list(zip(levels, text, strict=True))))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("abc", "abc"),
        (f"a {ALEF}{BET} b", f"a {BET}{ALEF} b"),
        (f"{ALEF}{BET} 15:30", f"15:30 {BET}{ALEF}"),
        (f"{ALEF} (b) {BET}", f"{BET} )b( {ALEF}"),
        (f"a ({ALEF} 4)", f"a (4 {ALEF})"),
        (f"{ARABIC} 1-2", f"2-1 {ARABIC}"),
        (f"{ALEF} 1-2", f"1-2 {ALEF}"),
        (f"{ALEF} 5%", f"5% {ALEF}"),
        (f"x \u2067a {ALEF}\u2069 y", f"x \u2067{ALEF} a\u2069 y"),
        (f"\u202e{ALEF}bc\u202c", f"\u202ccb{ALEF}\u202e"),
        (f"x \u2068{ALEF} a\u2069 y", f"x \u2068a {ALEF}\u2069 y"),
        ("", ""),
    ],
)
def test_words_and_numbers_keep_their_own_direction(text, order):
    assert seen(text) == order


def test_the_first_strong_character_decides_the_paragraph():
    assert find_levels(f"1, {ALEF} a")[0] == 1
    assert find_levels(f"1, a {ALEF}")[0] == 0
    assert find_levels(f"\u2067{ALEF}\u2069 a")[0] == 0, "what is isolated does not count"
    assert find_levels(f"{ALEF}", 0) == (0, [1])


def test_an_isolated_value_does_not_reorder_what_is_around_it():
    """A right-to-left name beside a number would otherwise carry the number to its other side."""
    assert seen(f"to: {ALEF}{BET} 100", 0) == f"to: 100 {BET}{ALEF}"
    isolated = seen(f"to: \u2068{ALEF}{BET}\u2069 100", 0)
    assert isolated.replace("\u2068", "").replace("\u2069", "") == f"to: {BET}{ALEF} 100"


@given(st.text(alphabet=f"a1-({ALEF}{ARABIC}) \u2067\u2069\u202b\u202e\u202c\u0301%,", max_size=40))
def test_every_character_has_a_level_and_stays_once(text):
    _, levels = find_levels(text)
    assert len(levels) == len(text)
    assert sorted(seen(text)) == sorted(text)


def test_deep_nesting_is_bounded():
    _, levels = find_levels("\u2067" * 4000 + ALEF)
    assert max(levels) <= 126


@pytest.mark.parametrize(
    ("text", "base", "wanted"),
    [
        ("\u062a1/2", None, "1 2 2 2"),  # W4
        ("%1", 1, "2 2"),  # W5
        ("\u0661-1", 0, "2 0 0"),  # W7
        ("a \u2329b.1\u232a", 1, "2 2 2 2 2 2 2"),  # BD16: one sign in two forms
        (f"a((b){ALEF})", 1, "2 1 1 2 1 1 1"),  # N0: pairs in the order of their beginnings
        ("a" + "(" * 64 + "b" + ")" * 64, 1, "2" + " 2" * 65 + " 1" * 64),  # BD16: too many
        ("\u0661\t(\u0662)", None, "2 0 1 2 1"),  # L1
        (f"{ALEF}\u2066\u202a\u2069{BET}", 0, "1 1 x 1 1"),  # BD13, X6a
        (f"{ALEF}\u2066\u202c\u2069{BET}", 0, "1 1 x 1 1"),  # X7: no end beyond the isolate
        (f"{ALEF}\u2067{BET}", 0, "1 0 1"),  # X10: an isolate without an end
        (f"{ALEF}+\u202b", 0, "1 0 x"),  # X10: what X9 removes has no level
        ("\u0627\u202b*\u202c 1-2", 0, "1 x 1 x 1 2 2 2"),
        ("\u202d" * 63 + "\u202ea", 0, "x " * 64 + "124"),  # X4: too deep once is too deep after
    ],
)
def test_cases_of_unicode_that_each_need_a_rule_of_their_own(text, base, wanted):
    found = zip(find_levels(text, base)[1], wanted.split(), strict=True)
    assert all(want in ("x", str(level)) for level, want in found)


def test_unicode_conformance():
    if not CONFORMANCE.exists():
        pytest.skip("apt install unicode-data has Unicode's cases")
    with CONFORMANCE.open(encoding="utf-8") as lines:
        for line in islice((n for n in lines if n[0] in "0123456789ABCDEF"), 0, None, SHARE):
            codes, direction, base, wanted, order = line.strip().split(";")
            text = "".join(chr(int(code, 16)) for code in codes.split())
            first, levels = find_levels(text, None if direction == "2" else int(direction))
            kept = [
                (level, at)
                for at, (want, level) in enumerate(zip(wanted.split(), levels, strict=True))
                if want != "x"
            ]
            assert first == int(base), line
            assert [level for level, _ in kept] == [int(n) for n in wanted.split() if n != "x"], (
                line
            )
            assert reorder(kept) == [int(n) for n in order.split()], line
