"""Templates of user-made tools: `{{input.x}}` is a JSON value or a part of an address, `${env.X}` a
secret.

What a caller sends stays a value: it cannot close a string, add a key or leave its place in a path,
and is never a template itself.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from tools_cache.api.tool import Json

_SLOT: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_PATH: Final = re.compile(r"input(?:\.[^.\s]+)*|call\.(?:id|tool)")
_ENV: Final = re.compile(r"\$\{env\.([A-Za-z_][A-Za-z0-9_]{0,63})\}")
_INDEX: Final = re.compile(r"[0-9]+")
_DOTS: Final = frozenset({".", ".."})
ABSENT: Final = object()
"""Value of a placeholder that the call has nothing for."""
HIDDEN: Final = "***"
SHORTEST: Final = 4
"""Minimum characters of a secret that is searched in answers, as in the log."""
Values = Mapping[str, str]


class BadTemplate(ValueError):
    """This text is not a valid template; the message says why and what to write."""


class Unfilled(ValueError):
    """This call has no valid value for a place that cannot be empty."""


# ------------------------------------------------------------------ looking


def check(template: Json) -> None:
    """Raise `BadTemplate` unless every placeholder is known."""
    for text in _texts(template):
        for path in _SLOT.findall(text):
            if not _PATH.fullmatch(path):
                raise BadTemplate(
                    f"{{{{{path}}}}} is not a placeholder; there are "
                    f"{{{{input.NAME}}}}, {{{{call.id}}}} and {{{{call.tool}}}}"
                )
        rest = _ENV.sub("", _SLOT.sub("", text))
        if "${" in rest:
            raise BadTemplate(
                "a ${ that is no ${env.NAME}; NAME may hold letters, digits and _ only"
            )
        if "{{" in rest:
            raise BadTemplate("a {{ without its }}; a placeholder is {{input.NAME}}")


def slots(template: Json) -> frozenset[str]:
    """Return the paths of all placeholders for a call's values: `input.town`, `call.id`."""
    return frozenset(path for text in _texts(template) for path in _SLOT.findall(text))


def secrets(template: Json) -> frozenset[str]:
    """Return the names of all `${env.NAME}`."""
    return frozenset(name for text in _texts(template) for name in _ENV.findall(text))


def _texts(template: Json) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for key, inner in template.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(template, list | tuple):
        for inner in template:
            yield from _texts(inner)


# ------------------------------------------------------------------ filling in


def with_secrets(template: Json, values: Values, *, encoded: bool = False) -> Json:
    """Fill in secrets, before a call's values. `encoded`: percent-encode them, except in the host
    or if one is the whole beginning.
    """
    if isinstance(template, Mapping):
        return {key: with_secrets(inner, values) for key, inner in template.items()}
    if isinstance(template, list | tuple):
        return [with_secrets(inner, values) for inner in template]
    if not isinstance(template, str):
        return template

    start = len(origin(template)) if "://" in template else 0

    def secret(match: "re.Match[str]") -> str:
        value = values[match[1]]
        return _quoted(value) if encoded and match.start() and match.end() > start else value

    return _ENV.sub(secret, template)


def without_secrets(value: Json, secrets: Iterable[str]) -> Json:
    """Remove secrets from an answer, also in the form they have in an address or in JSON. Short
    ones stay, because they would hide words.
    """
    found = [secret for secret in secrets if len(secret.strip()) >= SHORTEST]
    forms = {form for secret in found for form in _forms(secret)}
    return _without(value, sorted(forms, key=len, reverse=True))


def _forms(secret: str) -> tuple[str, ...]:
    bare = secret.strip()  # as a header sends it
    return secret, bare, _quoted(secret), _quoted(bare), json.dumps(bare)[1:-1]


def _without(value: Json, forms: Sequence[str]) -> Json:
    if isinstance(value, str):
        for form in forms:
            value = value.replace(form, HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {str(_without(key, forms)): _without(inner, forms) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, forms) for inner in value]
    return value


def filled(template: Json, scope: Mapping[str, Json]) -> Json:
    """Fill a JSON template. A text that is one placeholder becomes the value itself, of any type; a
    missing value leaves its key out, and is null in a list. Within a longer text a value becomes
    text.
    """
    found = _filled(template, scope)
    return None if found is ABSENT else found


def unfilled(template: Json, scope: Mapping[str, Json]) -> frozenset[str]:
    """Return the paths of the placeholders for which there is no value."""
    return frozenset(path for path in slots(template) if _value(path, scope) in (ABSENT, None))


def _filled(template: Json, scope: Mapping[str, Json]) -> Any:
    if isinstance(template, str):
        if whole := _SLOT.fullmatch(template):
            return _value(whole[1], scope)
        return _SLOT.sub(lambda m: text_of(_value(m[1], scope)), template)
    if isinstance(template, Mapping):
        members = ((key, _filled(inner, scope)) for key, inner in template.items())
        return {key: value for key, value in members if value is not ABSENT}
    if isinstance(template, list | tuple):
        return [filled(inner, scope) for inner in template]
    return template


def text_of(value: Any) -> str:
    """Return a value within a text: text as it is, nothing for a missing one, JSON for all else."""
    if value is ABSENT or value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(path: str, scope: Mapping[str, Json]) -> Any:
    found: Any = scope
    for step in path.split("."):
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and _INDEX.fullmatch(step) and int(step) < len(found):
            found = found[int(step)]
        else:
            return ABSENT
    return found


# ------------------------------------------------------------------ addresses


def origin(url: str) -> str:
    """Return scheme, host and port as written: no placeholder may change them."""
    scheme, colon, rest = url.partition("://")
    return scheme + colon + re.split(r"[/?#\\]", rest, maxsplit=1)[0]


def address(url: str, query: Mapping[str, Json], scope: Mapping[str, Json]) -> str:
    """Fill an address: each value is one percent-encoded part of the path or the query. A missing
    value is an error in the path; in the query it is empty, or left out if it comes from `query`.
    Raises `Unfilled`.
    """
    start = origin(url)
    path, mark, rest = url[len(start) :].partition("?")
    filled_path = _SLOT.sub(lambda m: _part(m[1], scope), path)
    if any(part in _DOTS for part in filled_path.split("/")) and slots(path):
        raise Unfilled(f"{' and '.join(sorted(slots(path)))}: . and .. are no part of an address")
    filled_rest = _SLOT.sub(lambda m: _quoted(text_of(_value(m[1], scope))), rest)
    pairs = [f"{_quoted(key)}={_quoted(text)}" for key, text in _pairs(query, scope)]
    if not pairs:
        return start + filled_path + mark + filled_rest
    return start + filled_path + "?" + "&".join([filled_rest] * bool(filled_rest) + pairs)


def _part(path: str, scope: Mapping[str, Json]) -> str:
    text = text_of(_value(path, scope))
    if not text:
        raise Unfilled(f"{path}: the address needs it")
    return _quoted(text)


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _pairs(query: Mapping[str, Json], scope: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key, template in query.items():
        value = _filled(template, scope)
        several: Sequence[Any] = value if isinstance(value, list) else [value]
        for one in several:
            if one is not ABSENT and one is not None:
                yield key, text_of(one)
