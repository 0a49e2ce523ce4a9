"""Explains what is wrong with a configuration, by key, problem and fix; and reads keys from
environment variables.

It never repeats the value of an unknown key: it may be a password in the wrong place.
"""

import json
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from edge.config.model import Settings
from edge.config.validators import Problem
from tools_cache.nearest import nearest

PREFIX: Final = "GLASSD_"
Where = tuple[str, ...]
_YES: Final = frozenset({"1", "yes", "on", "true"})
_NO: Final = frozenset({"0", "no", "off", "false"})


# ------------------------------------------------------------------ the environment


def overlay(
    settings: Settings, document: dict[str, Any], env: Mapping[str, str]
) -> tuple[dict[Where, str], list[Problem]]:
    """Put `GLASSD_SECTION__KEY` variables into the document; return which key came from which
    variable, and the problems.
    """
    known = {
        f"{PREFIX}{section}__{key}".upper(): (section, key) for section, key in every_key(settings)
    }
    taken: dict[Where, str] = {}
    problems = []
    for name in sorted(env):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        if name not in known:
            fix = did_you_mean(name, known)
            problems.append(Problem("", "no setting has this name", fix, name))
            continue
        section, key = known[name]
        table = document.setdefault(section, {})
        if isinstance(table, dict):
            hints = typing.get_type_hints(type(getattr(settings, section)))
            table[key] = _value(hints[key], env[name])
            taken[section, key] = name
    return taken, problems


def _value(annotation: object, text: str) -> object:
    """Read a variable as the type of its key requires: text as it is, lists also comma-separated,
    the rest as in TOML.
    """
    if annotation is str or typing.get_origin(annotation) is typing.Literal:
        return text
    lowered = text.strip().lower()
    if annotation is bool and lowered in _YES | _NO:
        return lowered in _YES
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        listed = typing.get_origin(annotation) is tuple
        return [part.strip() for part in text.split(",") if part.strip()] if listed else text


def every_key(settings: Settings) -> list[tuple[str, str]]:
    """List all (section, key) pairs, in the order they are declared."""
    return [
        (name, key) for name, part in settings.sections().items() for key in part.__struct_fields__
    ]


# ------------------------------------------------------------------ what pydantic found


def _annotation(model: type[BaseModel], section: str, key: str) -> object:
    return _section(model, section).model_fields[key].annotation


def _section(model: type[BaseModel], name: str) -> type[BaseModel]:
    return typing.cast(type[BaseModel], model.model_fields[name].annotation)


def _keys(model: type[BaseModel]) -> list[tuple[str, str]]:
    return [
        (section, key)
        for section in model.model_fields
        for key in _section(model, section).model_fields
    ]


def problems(
    model: type[BaseModel], wrong: ValidationError, from_env: Mapping[Where, str]
) -> list[Problem]:
    """Return every validation error as a problem with its fix."""
    return [_problem(model, error, from_env) for error in wrong.errors(include_url=False)]


def _problem(model: type[BaseModel], error: Any, from_env: Mapping[Where, str]) -> Problem:
    where = tuple(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return _unknown(model, where)
    source = from_env.get(where[:2], "")
    context = error.get("ctx") or {}
    if error["type"] == "value_error":
        return Problem(".".join(where), str(context["error"]), "", source)
    if error["type"] == "missing":
        return Problem(".".join(where), "missing", "add it", source)
    got = f"got {_format(error['input'])}"
    if len(where) == 1:
        fix = f"write [{where[0]}] on its own line, with its keys below"
        return Problem(where[0], f"must be a section, {got}", fix)
    must = _MUST.get(error["type"], "").format(**context) or error["msg"]
    if (inner := _inner(model, where)) is not None:
        return Problem(".".join(where), f"{must}, {got}", _example(inner, where[-1]), source)
    example = _example(_section(model, where[0]), where[1])
    return Problem(".".join(where[:2]), f"{must}, {got}", example, source)


_MUST: Final[Mapping[str, str]] = types.MappingProxyType(
    {
        "int_type": "must be a whole number",
        "int_from_float": "must be a whole number",
        "float_type": "must be a number",
        "bool_type": "must be true or false",
        "string_type": "must be text in quotes",
        "tuple_type": "must be a list",
        "dict_type": "must be a table",
        "literal_error": "must be one of {expected}",
        "greater_than": "must be more than {gt:g}",
        "greater_than_equal": "must be at least {ge:g}",
        "less_than_equal": "must be at most {le:g}",
    }
)


def _example(form: type[BaseModel], key: str) -> str:
    if key not in form.model_fields or form.model_fields[key].is_required():
        return ""
    default = form.model_fields[key].get_default(call_default_factory=True)
    if default in ("", {}, ()):
        return ""
    return f"the default is {key} = {_format(default)}"


def _format(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(
        list(value) if isinstance(value, tuple) else value, default=str, ensure_ascii=False
    )
    return text if len(text) <= 40 else text[:39] + "…"


def _unknown(model: type[BaseModel], where: Where) -> Problem:
    """Suggest the nearest key: in the same section, else in any other."""
    if len(where) == 1:
        homes = [f"{section}.{key}" for section, key in _keys(model) if key == where[0]]
        fix = f"did you mean {homes[0]}?" if homes else did_you_mean(where[0], model.model_fields)
        return Problem(where[0], "unknown section" if not homes else "unknown key", fix)
    if (inner := _inner(model, where)) is not None:
        return Problem(".".join(where), "unknown key", did_you_mean(where[-1], inner.model_fields))
    section, key = where[:2]
    near = nearest(key, _section(model, section).model_fields)
    everywhere = {k: f"{s}.{k}" for s, k in _keys(model)}
    path = (
        everywhere.get(key)
        or (near and f"{section}.{near}")
        or everywhere.get(nearest(key, everywhere), "")
    )
    known = "known here: " + ", ".join(_section(model, section).model_fields)
    return Problem(".".join(where), "unknown key", f"did you mean {path}?" if path else known)


def _inner(model: type[BaseModel], where: Where) -> type[BaseModel] | None:
    """Return the model of an entry of a list or table (`mcp.servers.0.url`); None for the keys of a
    section.
    """
    if len(where) < 4 or where[1] not in _section(model, where[0]).model_fields:
        return None
    found = typing.get_args(_annotation(model, *where[:2]))
    return next(
        (one for one in found if isinstance(one, type) and issubclass(one, BaseModel)), None
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, else list all of them."""
    choices = list(known)
    near = nearest(word, choices)
    return f"did you mean {near}?" if near else "known: " + ", ".join(choices)
