"""Reads the fields of a request: a body by its table of fields, a query one by one. Raises
`RequestRefused` with field, problem and fix.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from edge.control.http import Request, RequestRefused
from edge.ports import RegistryPort
from tools_cache.api.tool import Json, Mode, ToolDefinition
from tools_cache.nearest import did_you_mean

MAX_COUNT: Final = 1_000_000
_S = TypeVar("_S", bound=str)
Fields = Mapping[str, Callable[[Mapping[str, Json], str], Any]]
"""The fields of a body: each with the function that reads it, given the body and the name."""


def no_tool(name: str, registry: RegistryPort) -> RequestRefused:
    """Return the refusal of an unknown tool, with the tool that was probably meant."""
    near = did_you_mean(name, registry.snapshot().active)
    fix = f"{near} (all of them: glassd tools --all)" if near else "list them: glassd tools --all"
    return RequestRefused("NOT_FOUND", f"there is no tool {name[:80]}", fix)


def malformed(message: str, fix: str = "") -> RequestRefused:
    return RequestRefused("INVALID_REQUEST", message, fix)


def read(request: Request, fields: Fields, *, empty: bool = False) -> dict[str, Any]:
    """Return the value of every field of `fields`; other fields are refused. With `empty` the body
    may be missing.
    """
    body = {} if empty and not request.body else json_object(request, fields)
    return {key: field(body, key) for key, field in fields.items()}


def json_object(request: Request, known: Collection[str]) -> dict[str, Json]:
    """Read a JSON object with no key but the known ones. Text that cannot be encoded again is
    refused too.
    """
    try:
        body = _json(request.body)
    except UnicodeError:
        raise malformed("the body is not UTF-8 text, or contains an unpaired surrogate") from None
    except (json.JSONDecodeError, _NoNumber) as e:
        raise malformed(f"the body is not JSON: {e}") from None
    except ValueError:  # 5000 digits, or 1e999
        raise malformed("the body has a number that is too large") from None
    except RecursionError:
        raise malformed("the body is nested too deeply") from None
    if not isinstance(body, dict):
        raise malformed("the body must be a JSON object")
    unknown = [key for key in body if key not in known]
    if unknown:
        raise malformed(f"{unknown[0][:40]}: unknown key", f"known: {', '.join(known)}")
    return body


def _json(text: bytes) -> Json:
    """Read JSON that can be encoded again. msgspec takes no other; what is wrong is better said by
    the json module.
    """
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        body = json.loads(text, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        return body


class _NoNumber(ValueError):
    """A constant such as NaN, which Python reads and JSON does not have."""


def _no_constant(word: str) -> None:
    raise _NoNumber(f"{word} is not JSON")


def text(body: Mapping[str, Json], key: str, *, most: int, default: str | None = None) -> str:
    value = body.get(key, default)
    if not isinstance(value, str):
        raise malformed(f"{key}: must be text")
    if default is None and not value.strip():
        raise malformed(f"{key}: must not be empty")
    if len(value) > most:
        raise malformed(f"{key}: must have at most {most} characters")
    return value


def optional_text(body: Mapping[str, Json], key: str, *, most: int) -> str:
    return text(body, key, most=most, default="")


def arguments(body: Mapping[str, Json], key: str) -> dict[str, Json]:
    """Read a call's arguments: an object, or the JSON text of one, which some models send."""
    found, example = body.get(key, {}), 'for example {"text": "milk"}'
    if isinstance(found, str):
        try:
            found = json.loads(found, parse_constant=_no_constant)
        except (ValueError, RecursionError) as e:
            raise malformed(f"{key}: is text that is not JSON: {str(e)[:120]}", example) from None
    if not isinstance(found, dict):
        raise malformed(f"{key}: must be an object", example)
    return found


def same(first: str, second: str, body: Mapping[str, str]) -> str:
    """Return a text that may come under two names; "" if it came under none."""
    if body[first] and body[second] and body[first] != body[second]:
        raise malformed(f"{second}: is not the same as {first}", f"send {first} only")
    return body[first] or body[second]


def one_of(body: Mapping[str, Json], key: str, *, choices: Sequence[_S]) -> _S:
    """Return the choice that was sent; the first is the default."""
    value = body.get(key, choices[0])
    if value not in choices:
        raise malformed(f"{key}: must be one of {', '.join(choices)}")
    return choices[choices.index(value)]


def mode(body: Mapping[str, Json], key: str) -> Mode | None:
    return one_of(body, key, choices=tuple(Mode)) if key in body else None


def boolean(body: Mapping[str, Json], key: str, *, default: bool | None = None) -> bool:
    value = body.get(key, default)
    if not isinstance(value, bool):
        raise malformed(f"{key}: must be true or false")
    return value


def seconds(body: Mapping[str, Json], key: str, *, default: float, most: float) -> float:
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise malformed(f"{key}: must be a number of seconds, more than 0, at most {most:g}")
    return float(value)


def count(body: Mapping[str, Json], key: str) -> int | None:
    """Read a whole number from 0 on; None if it is missing."""
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise malformed(f"{key}: must be a whole number from 0 to {MAX_COUNT}")
    return value


# ------------------------------------------------------------------ from the query


def flag(request: Request, key: str) -> bool:
    value = request.query.get(key, "0")
    if value not in {"0", "1", "true", "false"}:
        raise malformed(f"{key}: must be 1 or 0")
    return value in {"1", "true"}


def scope_given(body: Mapping[str, Json], key: str) -> Mapping[str, Json] | None:
    """Check a caller's scope, `{mentions?, allowedMcpServers?}`, and return it as it was sent;
    None: the caller sees all tools.
    """
    given = body.get(key)
    _scope(given)
    return None if given is None else dict(given)


def _scope(given: Json) -> Callable[[ToolDefinition], bool] | None:
    """Return whether a tool is in a caller's scope, as a function; None: all tools are."""
    if given is None:
        return None
    from edge.core.tools.scope import Scope, admits  # noqa: PLC0415 - only agents with other MCP servers send a scope

    try:
        return partial(admits, Scope.of(given))
    except ValueError as e:
        raise malformed(
            str(e), 'for example {"mentions": [{"type": "mcpServer", "serverId": "files"}]}'
        ) from None


def scope_of(request: Request) -> Callable[[ToolDefinition], bool] | None:
    """Read `scope`, as JSON, from the query: the function that tells whether a tool is in it."""
    try:
        given = json.loads(request.query.get("scope", "null"))
    except (ValueError, RecursionError):  # 5000 digits are a ValueError
        raise malformed("scope: must be JSON", 'for example {"mentions": []}') from None
    return _scope(given)


def number(request: Request, key: str, *, default: int, most: int) -> int:
    value = request.query.get(key, str(default))
    if not value.isdecimal() or not 1 <= int(value[:9]) <= most:
        raise malformed(f"{key}: must be a whole number from 1 to {most}")
    return int(value)


def patience(request: Request, key: str, *, most: float) -> float | None:
    """Read how many seconds a client will wait; None if it will not."""
    value = request.query.get(key)
    if value is None:
        return None
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not 0 < found <= most:
        raise malformed(f"{key}: must be a number of seconds, more than 0, at most {most:g}")
    return found
