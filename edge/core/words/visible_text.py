"""Text in which every character is seen as what it is: what is drawn as nothing, or looks like
something else, is escaped.
"""

import re
import unicodedata
from typing import Final

from edge.core.words import joiners
from edge.core.words.text_direction import (
    END,
    ISOLATES,
    LTR,
    RTL,
    has_one_reading,
    is_right_to_left,
)

_SPACES: Final = re.compile(r" {2,}")
_WORD: Final = re.compile(r"\w+")
_JOINED: Final = re.compile(r"\S+")
_ISOLATED: Final = re.compile(f"[{LTR}{RTL}].*{END}")
_MIXING: Final = frozenset({"L", "EN", "AN"})
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\U0001d159")
"""Characters that are drawn as nothing, although Unicode calls them letters or symbols."""
_STYLED: Final = ("<wide>", "<font>", "<small>", "<narrow>")
"""Decompositions of look-alikes of plain characters: full-width forms, mathematical letters."""
_SET_WIDE: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "IDEOGRAPHIC"})
"""Scripts whose commas and brackets are as wide as their letters."""
_NEAR: Final = 4
"""Commas and brackets in a row."""
_LOOKALIKES: Final = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
"""Scripts with letters that look like Latin ones."""
_LATIN_LIKE: Final = frozenset(
    "абгезікоорсухьѕјҝүһӏԁԛԝѵАВЕЗІКМНОРСТУХЬЅЈҮҺӀԌԚԜѴ"
    "αβγικνορστυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ"
    "գզհյնոսցքօԼՍՏՕ"
    "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏴᏮ"
    "ⲀⲂⲈⲌⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬⲟⲣⲥⲭ"
    "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ"
)
"""Letters of those scripts that look like a Latin letter or a digit. A text with no other letters
of a script may be read as Latin.
"""
_MOST_MARKS: Final = 3
"""Combining marks on one letter; more would run into the lines above and below."""


def visible(value: str) -> str:
    """Escape what does not look like what it is: line ends, control and format characters, blanks,
    look-alike letters, right-to-left letters whose place among others could be misread.
    """
    if value.isascii() and value.isprintable():
        return _SPACES.sub(_counted, value)
    figures = _figures(value)
    hidden = _misleading(value)
    shown: list[str] = []
    marks, script = _MOST_MARKS, ""
    for at, ch in enumerate(value):
        if ch in joiners.JOINERS and joiners.is_seen(value, at):
            shown.append(ch)
            continue
        combining = unicodedata.category(ch)[0] == "M"
        mark_of = _script(ch) if combining else ""
        # Some marks cannot be seen at all on a letter of another script.
        foreign = mark_of not in {"", "COMBINING", script}
        script = script if combining else _script(ch)
        marks = marks + 1 if combining else 0 if ch.isalpha() else _MOST_MARKS
        blank = unicodedata.category(ch) in _UNSEEN or ch in _BLANK or _is_selector(ch)
        unseen = (blank and ch != " ") or (combining and marks > _MOST_MARKS)
        if at in figures:
            shown.append(_figure(value, at))
        else:
            shown.append(escaped(ch) if unseen or foreign or at in hidden else ch)
    text = _SPACES.sub(_counted, "".join(shown))
    if has_one_reading(text):
        return text
    return "".join(escaped(ch) if is_right_to_left(ch) else ch for ch in text)


def for_terminal(line: str) -> str:
    """Return a line of a question for a terminal, which may order it by rules of its own: without
    the signs for directions, right-to-left letters beside letters of the other direction or digits
    escaped.
    """
    values = _ISOLATED.search(line)
    bare = line.translate(ISOLATES)
    if values is None or _MIXING.isdisjoint(map(unicodedata.bidirectional, values[0])):
        return bare
    return "".join(escaped(ch) if is_right_to_left(ch) else ch for ch in bare)


def _counted(spaces: re.Match[str]) -> str:
    return f"\\x20{{{len(spaces[0])}}}"


def escaped(ch: str) -> str:
    """Escape one character: its short form, or its number."""
    code = ord(ch)
    return _SHORT.get(ch) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


def _script(ch: str) -> str:
    return unicodedata.name(ch, "").partition(" ")[0]


def _is_selector(ch: str) -> bool:
    ranges = (("\ufe00", "\ufe0f"), ("\u180b", "\u180f"), ("\U000e0100", "\U000e01ef"))
    return any(first <= ch <= last for first, last in ranges)


def _figures(value: str) -> set[int]:
    """Return the positions of digits that look like others to readers of another script: Bengali ৪
    is 4. Next to letters of their own script, without Latin ones, they are left as they are.
    """
    scripts = {_script(ch) for ch in value if ch.isalpha()}
    latin = any(ch.isascii() and ch.isalnum() for ch in value)
    return {
        at
        for at, ch in enumerate(value)
        if (kind := _digits(ch)) and (latin or not any(script in kind for script in scripts))
    }


def _digits(ch: str) -> str:
    """Return `BENGALI` for a Bengali digit; "" for an ASCII digit and for everything else."""
    if ch.isascii() or not ch.isdecimal() or unicodedata.decomposition(ch).startswith(_STYLED):
        return ""
    return unicodedata.name(ch, "").partition(" DIGIT")[0]


def _figure(value: str, at: int) -> str:
    """Return one digit as ASCII; the number it belongs to gets `{` and the name of its digits."""
    kind = _digits(value[at])
    begins = at == 0 or _digits(value[at - 1]) != kind
    ends = _digits(value[at + 1 : at + 2]) != kind
    end = f" in {kind.lower()} digits}}" if ends else ""
    return "\\{" * begins + str(unicodedata.decimal(value[at])) + end


def _misleading(value: str) -> set[int]:
    """Return the positions of characters that look like others."""
    found = {
        at
        for at, ch in enumerate(value)
        if unicodedata.decomposition(ch).startswith(_STYLED) and not _is_usual(value, at)
    }
    for word in _WORD.finditer(value):
        scripts = {at: _script(value[at]) for at in range(*word.span()) if value[at].isalpha()}
        if len(_LOOKALIKES.union({"LATIN"}).intersection(scripts.values())) > 1:
            found |= {at for at, script in scripts.items() if script in _LOOKALIKES}
    found |= _all_latin_like(value)
    return found


def _is_usual(value: str, at: int) -> bool:
    """Return whether a full-width comma or bracket stands beside Han, kana or Hangul, as is usual
    there.
    """
    if not _is_wide_sign(value[at]):
        return False
    before, after = value[max(0, at - _NEAR) : at], value[at + 1 : at + 1 + _NEAR]
    beside = (
        next((ch for ch in text if not _is_wide_sign(ch)), " ") for text in (before[::-1], after)
    )
    return any(_script(ch) in _SET_WIDE for ch in beside)


def _is_wide_sign(ch: str) -> bool:
    wide = unicodedata.decomposition(ch).startswith("<wide>")
    return wide and unicodedata.category(ch)[0] == "P"


def _all_latin_like(value: str) -> set[int]:
    """Return the positions of letters of another script that all look like Latin ones: in the whole
    value, or in one word together with Latin letters or digits, as in a host name.
    """
    found = _latin_like(value)
    for joined in _JOINED.finditer(value):
        if any(ch.isascii() and ch.isalnum() for ch in joined[0]):
            found |= {joined.start() + at for at in _latin_like(joined[0])}
    return found


def _latin_like(value: str) -> set[int]:
    scripts: dict[str, set[int]] = {}
    honest: set[str] = set()
    for at, ch in enumerate(value):
        if ch.isalpha() and (script := _script(ch)) in _LOOKALIKES:
            scripts.setdefault(script, set()).add(at)
            if unicodedata.normalize("NFD", ch)[0] not in _LATIN_LIKE:
                honest.add(script)
    return {at for script in scripts if script not in honest for at in scripts[script]}
