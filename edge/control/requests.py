"""Reads the fields of a request: returns the value, or raises `RequestRefused` with field, problem
and fix.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from edge.control.http import Request, RequestRefused
from edge.ports import RegistryPort
from tools_cache.api.tool import Json, ToolDefinition
from tools_cache.nearest import did_you_mean

MAX_COUNT: Final = 1_000_000


def no_tool(name: str, registry: RegistryPort) -> RequestRefused:
    """Return the refusal of an unknown tool, with the tool that was probably meant."""
    near = did_you_mean(
        name, [entry.definition.name for entry in registry.snapshot().entries() if not entry.hidden]
    )
    fix = f"{near} (all of them: glassd tools --all)" if near else "list them: glassd tools --all"
    return RequestRefused(404, "NOT_FOUND", f"there is no tool {name[:80]}", fix)


def malformed(message: str, fix: str = "") -> RequestRefused:
    return RequestRefused(400, "INVALID_REQUEST", message, fix)


def json_object(request: Request, known: Sequence[str], *, empty: bool = False) -> dict[str, Json]:
    """Read a JSON object with no key but the known ones; text that cannot be written again is
    refused too. With `empty` no body at all is an empty object.
    """
    if empty and not request.body:
        return {}
    try:
        body = json.loads(request.body, parse_constant=_no_constant)
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
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


class _NoNumber(ValueError):
    """A word such as NaN, which Python reads and JSON does not know."""


def _no_constant(word: str) -> None:
    raise _NoNumber(f"{word} is not JSON")


def text(body: Mapping[str, Json], key: str, *, most: int, default: str | None = None) -> str:
    value = body.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise malformed(f"{key}: must be text")
    if len(value) > most:
        raise malformed(f"{key}: must have at most {most} characters")
    return value


def arguments(body: Mapping[str, Json]) -> dict[str, Json]:
    """Read a call's arguments: an object, or the JSON text of one, which some models send."""
    found = body.get("args", {})
    if isinstance(found, str):
        try:
            found = json.loads(found, parse_constant=_no_constant)
        except (ValueError, RecursionError) as e:
            raise malformed(
                f"args: is text that is not JSON: {str(e)[:120]}", 'for example {"text": "milk"}'
            ) from None
    if not isinstance(found, dict):
        raise malformed("args: must be an object", 'for example {"text": "milk"}')
    return found


def same_text(body: Mapping[str, Json], *keys: str, most: int) -> str:
    """Read a text that may come under several names; "" when it came under none."""
    found = [(key, value) for key in keys if (value := text(body, key, most=most, default=""))]
    if len({value for _, value in found}) > 1:
        raise malformed(f"{found[1][0]}: is not the same as {found[0][0]}", f"send {keys[0]} only")
    return found[0][1] if found else ""


def one_of(body: Mapping[str, Json], key: str, choices: Sequence[str]) -> str:
    value = body.get(key, choices[0])
    if value not in choices:
        raise malformed(f"{key}: must be one of {', '.join(choices)}")
    return str(value)


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
    """Read a whole number from 0 on; None when it did not come."""
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


def scope_given(given: Json) -> Mapping[str, Json] | None:
    """Check a caller's scope, `{mentions?, allowedMcpServers?}`, and return it as it was given;
    None: it has none, and sees all.
    """
    scope(given)
    return None if given is None else dict(given)


def scope(given: Json) -> Callable[[ToolDefinition], bool] | None:
    """Read a caller's scope, `{mentions?, allowedMcpServers?}`: may it see this tool? None: it
    has no scope, and sees all.
    """
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
    """Read `scope`, JSON, from the query."""
    try:
        given = json.loads(request.query.get("scope", "null"))
    except (ValueError, RecursionError):  # 5000 digits are a ValueError
        raise malformed("scope: must be JSON", 'for example {"mentions": []}') from None
    return scope(given)


def number(request: Request, key: str, *, default: int, most: int) -> int:
    value = request.query.get(key, str(default))
    if not value.isdecimal() or not 1 <= int(value[:9]) <= most:
        raise malformed(f"{key}: must be a whole number from 1 to {most}")
    return int(value)


def patience(request: Request, key: str, *, most: float) -> float | None:
    """Read how many seconds a client will wait; None when it will not."""
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
