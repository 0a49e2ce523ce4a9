"""What a person sees before confirming: the tool, its origin, and every argument on its own line.

`lines` is the only function that makes them, for the lens, speech, the terminal, MCP and the
control API.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from tools_cache.api.tool import Json, Source, ToolDefinition

MAX_CHARACTERS: Final = 32_000
"""Characters of all lines together. Nobody reads more; a longer call is refused."""
MAX_DEPTH: Final = 32
MAX_DESCRIPTION: Final = 160
CUT: Final = " […]"
"""Follows a description that was cut. Names, keys and values are never cut."""
_CALENDAR: Final = "calendar:create_event"
_ANSWERS: Final = {
    "inputResponses": "Answer given to the tool",
    "requestState": "State given to the tool",
}
_NO_ARGUMENTS: Final = "Without arguments."
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HINTS: Final = frozenset({"tap", "press"})
"""First words of the row `tap: yes · double tap: no`; no argument may look like it."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]+")
_NEEDS_QUOTES: Final = re.compile(r"""["\\,]|:(?:\s|$)|^[\s|\[{(]|\s$""")
_SPACES: Final = re.compile(r" {2,}")
_WORD: Final = re.compile(r"\w+")
_JOINED: Final = re.compile(r"\S+")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\U0001d159")
"""Characters that are drawn as nothing, although Unicode calls them letters or symbols."""
_STYLED: Final = ("<wide>", "<font>", "<small>", "<narrow>")
"""Decompositions of look-alikes of plain characters: full-width forms, mathematical letters."""
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
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
_LEFT_TO_RIGHT: Final = frozenset({"L", "EN"})


class TooLong(Exception):
    """The arguments are longer, or nested deeper, than a person can be shown."""


def lines(
    tool: ToolDefinition, args: Mapping[str, Json], answers: Mapping[str, Json] | None = None
) -> tuple[str, ...]:
    """Describe a call completely: the tool, its origin, each argument in the schema's order, and
    the `answers` sent with them (`ToolCall.input`). Raises `TooLong`.
    """
    head = dict.fromkeys(
        (summary(tool, args), _execute(tool), f"From {origin(tool)}.{_description(tool)}")
    )
    found, size = list(head), sum(map(len, head))
    for line in (
        *_of_object("", args, tool.input_schema, declared=True, depth=0),
        *_of_answers(answers or {}),
    ):
        found.append(line)
        size += len(line)
        if size > MAX_CHARACTERS:
            raise TooLong
    return tuple(found if len(found) > len(head) else [*found, _NO_ARGUMENTS])


def summary(tool: ToolDefinition, args: Mapping[str, Json]) -> str:
    """Return one line: what would happen. Only built-in tools have their own sentence."""
    if tool.name == _CALENDAR and tool.source is Source.LOCAL and not tool.own:
        attendees = args.get("attendees")
        return (
            "Create calendar event with "
            f"{len(attendees) if isinstance(attendees, list) else 0} attendees"
        )
    return _execute(tool)


def _execute(tool: ToolDefinition) -> str:
    return f"Execute {tool.name if _PLAIN_NAME.fullmatch(tool.name) else _quoted(tool.name)}"


def origin(tool: ToolDefinition) -> str:
    """Return whose tool it is, from where its definition came, not from what it says."""
    match tool.source:
        case Source.CLOUD:
            return "the cloud"
        case Source.UPSTREAM:
            return f"the MCP server {text(tool.name.partition(':')[0])}"
    return "your own tools" if tool.own else "this device"


def _description(tool: ToolDefinition) -> str:
    """Return the author's title, or the start of the description; quoted, as it is not our text."""
    title = tool.raw.get("title")
    said = " ".join(
        (title if isinstance(title, str) and title.strip() else tool.description).split()
    )
    if not said:
        return ""
    short = said if len(said) <= MAX_DESCRIPTION else said[:MAX_DESCRIPTION].rstrip() + CUT
    return f" It says of itself: {_quoted(short)}"


# ------------------------------------------------------------------ arguments


def _of_object(
    path: str, value: Mapping[str, Json], schema: Json, *, declared: bool, depth: int
) -> Iterator[str]:
    """Yield the declared properties in the schema's order, then the others, marked."""
    properties = _properties(schema)
    for key in [*(k for k in properties if k in value), *(k for k in value if k not in properties)]:
        known = declared and (key in properties or (depth > 0 and not properties))
        yield from _of_value(
            f"{path}.{_key(key)}" if path else _key(key),
            value[key],
            properties.get(key),
            known,
            depth,
        )


def _of_answers(answers: Mapping[str, Json]) -> Iterator[str]:
    """Yield the answers; their labels have a space, so that no argument's key looks like one."""
    for key, value in answers.items():
        yield from _of_value(_ANSWERS.get(key, _key(key)), value, None, declared=True, depth=1)


def _of_value(path: str, value: Json, schema: Json, declared: bool, depth: int) -> Iterator[str]:  # noqa: FBT001 - all are needed
    if depth > MAX_DEPTH or len(path) > MAX_CHARACTERS:
        raise TooLong
    parts = value if isinstance(value, list | tuple) else (value,)
    if sum(len(part) for part in parts if isinstance(part, str)) > MAX_CHARACTERS:
        raise TooLong  # before any of it is looked at, character by character
    mark = "" if declared else " (not declared)"
    if isinstance(value, Mapping) and value:
        yield from _of_object(path, value, schema, declared=declared, depth=depth + 1)
    elif isinstance(value, list | tuple) and any(
        isinstance(item, Mapping | list | tuple) for item in value
    ):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        for number, item in enumerate(value, 1):
            yield from _of_value(f"{path}[{number}]", item, items, declared, depth + 1)
    elif isinstance(value, list | tuple) and value:
        yield f"{path} ({len(value)}){mark}: {', '.join(map(_scalar, value))}"
    else:
        yield f"{path}{mark}: {_scalar(value)}"


def _properties(schema: Json, depth: int = 0) -> dict[str, Json]:
    """Return the properties that a schema names, including those of its combined schemas."""
    if not isinstance(schema, Mapping) or depth > 3:
        return {}
    found = schema.get("properties")
    named = dict(found) if isinstance(found, Mapping) else {}
    for word in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(word)
        for part in parts if isinstance(parts, list) else ():
            named = {**_properties(part, depth + 1), **named}
    return named


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else json.dumps(value, default=str)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _HINTS else _quoted(key)


# ------------------------------------------------------------------ characters


def text(value: str) -> str:
    """Return a text on one line, quoted where it could be mistaken for something else."""
    plain = value and not _NEEDS_QUOTES.search(value) and not _literal(value)
    plain = plain and visible(value) == value
    return value if plain else _quoted(value)


def _literal(value: str) -> bool:
    """Return whether this text looks like a number, true, false or null."""
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(value: str) -> str:
    return '"' + visible(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def visible(value: str) -> str:
    """Escape what does not look like what it is: line ends, control and format characters, blanks,
    look-alike letters.
    """
    if value.isascii() and value.isprintable():
        return _SPACES.sub(_counted, value)
    figures = _figures(value)
    hidden = _misleading(value, figures)
    shown: list[str] = []
    marks, script = _MOST_MARKS, ""
    for at, ch in enumerate(value):
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
    return _SPACES.sub(_counted, "".join(shown))


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


def _misleading(value: str, figures: set[int]) -> set[int]:
    """Return the positions of characters that look like others, or change the drawing order of
    their neighbours. `figures` are shown as ASCII digits.
    """
    found = {at for at, ch in enumerate(value) if unicodedata.decomposition(ch).startswith(_STYLED)}
    for word in _WORD.finditer(value):
        scripts = {at: _script(value[at]) for at in range(*word.span()) if value[at].isalpha()}
        if len(_LOOKALIKES.union({"LATIN"}).intersection(scripts.values())) > 1:
            found |= {at for at, script in scripts.items() if script in _LOOKALIKES}
    found |= _all_latin_like(value)
    directions = [
        "EN" if at in figures else unicodedata.bidirectional(ch) for at, ch in enumerate(value)
    ]
    if not _LEFT_TO_RIGHT.isdisjoint(directions):
        found |= {at for at, direction in enumerate(directions) if direction in _RIGHT_TO_LEFT}
    return found


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
