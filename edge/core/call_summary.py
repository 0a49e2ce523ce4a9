"""What a person sees before confirming: the tool, its origin, and every argument on its own line.

`lines` is the only function that makes them, for the lens, speech, the terminal, MCP and the
control API.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from edge.core.words.wearer_forms import Writer
from tools_cache.api.tool import Json, Named, Source, ToolDefinition

MAX_CHARACTERS: Final = 32_000
"""Characters of all lines together. Nobody reads more; a longer call is refused."""
MAX_DEPTH: Final = 32
MAX_DESCRIPTION: Final = 160
CUT: Final = " […]"
"""Follows a description that was cut. Names, keys and values are never cut."""
HIDDEN: Final = "***"
"""Stands in the place of a secret; only the tool gets that."""
MAX_TITLE: Final = 60
MAX_ITEMS: Final = 20
"""Items of a list that have a row each; those of a longer one are on one line."""
_CREATES_EVENT: Final = "calendar:create_event"
_ENGLISH: Final = Writer()
_ANSWERS: Final = {
    "inputResponses": "Answer given to the tool",
    "requestState": "State given to the tool",
}
_NO_ARGUMENTS: Final = "Without arguments."
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HINTS: Final = frozenset({"tap", "press", "double", "long"})
"""First words of the row `tap: yes · double tap: no`; no argument may look like it."""
_INNER: Final = re.compile(r"(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])")
_EMPTY_LIST: Final = "empty list"
_EMPTY_OBJECT: Final = "empty object"
_EMPTY_TEXT: Final = "empty text"
_IN_WORDS: Final = frozenset({_EMPTY_LIST, _EMPTY_OBJECT, _EMPTY_TEXT})
"""What a text is quoted for that says the same."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]+")
_NEEDS_QUOTES: Final = re.compile(r"""["\\]|:(?:\s|$)|^[\s|\[{(]|\s$""")


class TooLong(Exception):
    """The arguments are longer, or nested deeper, than a person can be shown."""


def lines(
    tool: ToolDefinition,
    args: Mapping[str, Json],
    answers: Mapping[str, Json] | None = None,
    *,
    app: str = "",
    writer: Writer = _ENGLISH,
    names: Mapping[str, Named] | None = None,
) -> tuple[str, ...]:
    """Describe a call completely: the question, each argument in the schema's order, the `answers`
    sent with them (`ToolCall.answers`), the tool's full name and its origin. What `names` has is
    shown in the place of those arguments. Raises `TooLong`.
    """
    args = hide(args, secret_names(tool))
    head, tail = question(tool, app), _whose(tool)
    found, size = [head], len(head) + len(tail)
    for line in (
        *_of_arguments(tool, args, names or {}, writer),
        *_of_answers(answers or {}, writer),
    ):
        found.append(line)
        size += len(line)
        if size > MAX_CHARACTERS:
            raise TooLong
    return (*found, *[_NO_ARGUMENTS] * (len(found) == 1), tail)


def understood(
    tool: ToolDefinition, args: Mapping[str, Json], *, app: str = "", writer: Writer = _ENGLISH
) -> tuple[str, ...]:
    """Describe a call that needs no consent, to a wearer who is asked whether these were the words:
    the question, each argument in plain words, and what a tool without a title says of itself.
    Raises `TooLong`.
    """
    said, alone = _in_plain_words(tool, hide(args, secret_names(tool)))
    rest = []
    for row in _of_object("", said, tool.input_schema, writer, declared=True, depth=0):
        name, _, value = row.partition(": ")
        numbered = name == "id" and tool.shipped  # of a timer or a note
        rest.append(value if name in alone else f"number: {value}" if numbered else row)
    clear = _title(tool) or tool.shipped
    about = "" if clear else _short(tool.description, MAX_TITLE)
    return (question(tool, app), *rest, *[_quoted(about)] * bool(about))


def _in_plain_words(
    tool: ToolDefinition, args: Mapping[str, Json]
) -> tuple[dict[str, Json], set[str]]:
    """Return the arguments, with durations in hours and minutes; and the names of those that need
    no name before them: durations, on and off, and the only text there is.
    """
    from edge.core import phrases  # noqa: PLC0415 - at the first question
    from tools_cache.api.durations import spoken  # noqa: PLC0415

    said: dict[str, Json] = {}
    alone = set()
    for name, value in args.items():
        unit_s = phrases.unit_of(name)
        if isinstance(value, bool) and name == phrases.ON_OFF:
            said[name] = "on" if value else "off"
        elif isinstance(value, int | float) and not isinstance(value, bool) and unit_s and value:
            said[name] = spoken(value * unit_s)
        else:
            said[name] = value
            if not isinstance(value, str) or len(args) > 1 or not tool.shipped:
                continue
        alone.add(_key(name))
    return said, alone


def preview(tool: ToolDefinition, args: Mapping[str, Json]) -> str:
    """Return what would happen in one line for programs, as in `confirmation_request.preview`."""
    if tool.name == _CREATES_EVENT and tool.shipped:
        attendees = args.get("attendees")
        count = len(attendees) if isinstance(attendees, list) else 0
        return f"Create calendar event with {count} attendees"
    return f"Execute {_full_name(tool)}"


def question(tool: ToolDefinition, app: str = "") -> str:
    """Return the question in one line: whose tool, and its author's title or its name's words. Only
    a tool that glassd ships has a question of its own.
    """
    if tool.wearer.ask and tool.shipped:
        return tool.wearer.ask
    package, _, name = tool.name.partition(":")
    title = _title(tool)
    named = app if app != package else ""  # an app without a name is called as its package
    about = _short(named or package.rpartition(".")[2] or package)
    what = _short(title or name.replace("_", " ").replace("-", " ")).rstrip("?!.… ")
    asked = f"{_inline(what if title else _capital(what))}?"
    if (tool.own or tool.shipped) and about.casefold() in what.casefold().split():
        return _capital(asked)  # others could borrow the words of a tool that glassd ships
    return f"{_capital(_inline(about))}: {asked}"


def _whose(tool: ToolDefinition) -> str:
    return f"{_full_name(tool)}, from {origin(tool)}.{_description(tool)}"


def _full_name(tool: ToolDefinition) -> str:
    return tool.name if _PLAIN_NAME.fullmatch(tool.name) else _quoted(tool.name)


def _title(tool: ToolDefinition) -> str:
    title = tool.raw.get("title")
    return title.strip() if isinstance(title, str) else ""


def _short(words: str, most: int = MAX_TITLE) -> str:
    line = " ".join(words.split())
    return line if len(line) <= most else line[:most].rstrip() + CUT


def _inline(words: str) -> str:
    """Return words of another author so that they end where they seem to end."""
    return (
        _isolated(words)
        if ": " not in words and '"' not in words and _visible(words) == words
        else _quoted(words)
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def origin(tool: ToolDefinition) -> str:
    """Return whose tool it is, from where its definition came, not from what it says."""
    match tool.source:
        case Source.CLOUD:
            return "the cloud"
        case Source.UPSTREAM:
            return f"the MCP server {text(tool.name.partition(':')[0])}"
    return "your own tools" if tool.own else "this device"


def _description(tool: ToolDefinition) -> str:
    """Return the start of the description of a tool without a title: quoted, as not our text. A
    tool that glassd ships needs none: its question says what it does.
    """
    clear = _title(tool) or (tool.wearer.ask and tool.shipped)
    said = "" if clear else _short(tool.description, MAX_DESCRIPTION)
    return f" It says of itself: {_quoted(said)}" if said else ""


# ------------------------------------------------------------------ secrets


def secret_names(tool: ToolDefinition) -> tuple[str, ...]:
    """Return the names of the arguments that are secrets, such as a password: the schema declares
    them `writeOnly`. Those of other people's tools never are: they could hide what is asked for.
    """
    if not (tool.shipped or tool.own):
        return ()
    properties = _properties(tool.input_schema)
    return tuple(
        name
        for name, each in properties.items()
        if isinstance(each, Mapping) and each.get("writeOnly") is True
    )


def hide(args: Mapping[str, Json], names: Iterable[str]) -> dict[str, Json]:
    """Return arguments with something else in the place of these."""
    hidden = frozenset(names)
    return {name: HIDDEN if name in hidden else value for name, value in args.items()}


# ------------------------------------------------------------------ arguments


def _of_arguments(
    tool: ToolDefinition, args: Mapping[str, Json], names: Mapping[str, Named], writer: Writer
) -> Iterator[str]:
    """Yield the lines of all arguments in the schema's order."""
    properties = _properties(tool.input_schema)
    for key in [*(k for k in properties if k in args), *(k for k in args if k not in properties)]:
        if key in names:
            yield f"{_key(names[key].label)}: {text(names[key].words)}"
        else:
            one = {key: args[key]}
            yield from _of_object("", one, tool.input_schema, writer, declared=True, depth=0)


def _of_object(
    path: str,
    value: Mapping[str, Json],
    schema: Json,
    writer: Writer,
    *,
    declared: bool,
    depth: int,
) -> Iterator[str]:
    """Yield the declared properties in the schema's order, then the others, marked."""
    properties = _properties(schema)
    for key in [*(k for k in properties if k in value), *(k for k in value if k not in properties)]:
        known = declared and (key in properties or (depth > 0 and not properties))
        place = _Place(f"{path}, {_key(key)}" if path else _key(key), known, depth)
        yield from _of_value(place, value[key], properties.get(key), writer)


def _of_answers(answers: Mapping[str, Json], writer: Writer) -> Iterator[str]:
    """Yield the answers; their labels have a space, so that no argument's key looks like one."""
    for key, value in answers.items():
        place = _Place(_ANSWERS.get(key, _key(key)), declared=True, depth=1)
        yield from _of_value(place, value, None, writer)


class _Place(NamedTuple):
    """Where a value is: its path in words, whether the schema declares it, how deep it is."""

    path: str
    declared: bool
    depth: int

    def label(self, items: int | None = None) -> str:
        counted = "" if items is None else f" ({items})"
        return f"{self.path}{counted}{'' if self.declared else ' (not declared)'}"


def _of_value(place: _Place, value: Json, schema: Json, writer: Writer) -> Iterator[str]:
    path, declared, depth = place
    if depth > MAX_DEPTH or len(path) > MAX_CHARACTERS:
        raise TooLong
    parts = value if isinstance(value, list | tuple) else (value,)
    if sum(len(part) for part in parts if isinstance(part, str)) > MAX_CHARACTERS:
        raise TooLong  # before any of it is looked at, character by character
    if isinstance(value, Mapping) and value:
        yield from _of_object(path, value, schema, writer, declared=declared, depth=depth + 1)
    elif isinstance(value, list | tuple) and value:
        yield from _of_list(place, value, schema, writer)
    else:
        yield f"{place.label()}: {_scalar(value, writer)}"


def _of_list(place: _Place, items: Sequence[Json], schema: Json, writer: Writer) -> Iterator[str]:
    """Yield how many there are, then each; a long list of plain values is on one line."""
    label = place.label(len(items))
    if any(isinstance(item, Mapping | list | tuple) for item in items):
        inner = schema.get("items") if isinstance(schema, Mapping) else None
        yield f"{label}:"
        for number, item in enumerate(items, 1):
            at = _Place(f"{place.path} #{number}", place.declared, place.depth + 1)
            yield from _of_value(at, item, inner, writer)
    elif len(items) <= MAX_ITEMS:
        yield f"{label}:"
        for number, item in enumerate(items, 1):
            yield f"{number}. {_scalar(item, writer)}"
    else:
        yield f"{label}: {', '.join(_scalar(item, writer, joined=True) for item in items)}"


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


def _scalar(value: Json, writer: Writer, *, joined: bool = False) -> str:
    if isinstance(value, Mapping):
        return _EMPTY_OBJECT
    if isinstance(value, list | tuple):
        return _EMPTY_LIST
    text_in_list = joined and isinstance(value, str)  # a written moment has a comma in it
    said = None if text_in_list else writer.exact(value)
    if said is not None:
        return said
    if not isinstance(value, str):
        return json.dumps(value, default=str)
    if not value:
        return _EMPTY_TEXT
    mistakable = writer.resembles(value) or value in _IN_WORDS
    return _quoted(value) if mistakable or (joined and "," in value) else text(value)


def _key(key: str) -> str:
    """Return a key in words; quoted or as it is where words could be taken for something else."""
    if not _PLAIN_KEY.fullmatch(key):
        return _quoted(key)
    if key.lower().partition("_")[0] in _HINTS:
        return _quoted(key)
    return _INNER.sub(" ", key)


# ------------------------------------------------------------------ characters


def _visible(value: str) -> str:
    from edge.core.words.visible_text import visible  # noqa: PLC0415 - at the first question

    return visible(value)


def _isolated(value: str) -> str:
    from edge.core.words.text_direction import isolated  # noqa: PLC0415 - at the first question

    return isolated(value)


def text(value: str) -> str:
    """Return a text on one line, quoted where it could be mistaken for something else."""
    plain = value and not _NEEDS_QUOTES.search(value) and not _literal(value)
    plain = plain and _visible(value) == value
    return _isolated(value) if plain else _quoted(value)


def _literal(value: str) -> bool:
    """Return whether this text looks like a number, true, false or null."""
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(value: str) -> str:
    return _isolated('"' + _visible(value.replace("\\", "\\\\").replace('"', '\\"')) + '"')
