"""Kasa and Tapo devices of the home, in a child process that answers one request.

`{"action": "discover"}` finds devices; `{"action": "apply", "items": [...]}` reads or changes those
that are known. Both take `hosts`, `username` and `password_file` of the settings. The library,
python-kasa (GPL-3.0-or-later), is an optional extra and is loaded here alone, never in the daemon.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.kasa_devices import is_at_home

MAX_HOSTS: Final = 64
MAX_ITEMS: Final = 64
MAX_SECRET: Final = 4096
_ITEM: Final = {"mac": str, "host": str, "connection": dict, "child": str, "name": str}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what the devices answer. Raise `ToolFailure` if the request, the settings or the
    library are at fault; a device that fails is a part of the answer.
    """
    hosts = _hosts(request.get("hosts", []))
    action, items = request.get("action"), request.get("items", [])
    if action not in ("discover", "apply"):
        raise _invalid("action: must be discover or apply")
    _check_items(items)
    username = request.get("username", "")
    password = _password(request.get("password_file", ""))
    try:
        from edge.tools.workers import kasa_library  # noqa: PLC0415 - the extra may be missing
    except ImportError as e:
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            "Kasa devices need the extra kasa, which is not installed",
            suggestion="Install glassd with the extra kasa",
        ) from e
    home = kasa_library.Home(hosts, username, password)
    return asyncio.run(home.discover() if action == "discover" else home.apply(items))


def _hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_HOSTS:
        raise _invalid(f"hosts: must be a list of at most {MAX_HOSTS} addresses")
    for host in value:
        if not isinstance(host, str) or not is_at_home(host):
            raise _invalid(
                f"hosts: {str(host)[:60]!r} is no private IPv4 address",
                "Write the address of the device in your own network, like 192.168.1.20",
            )
    return tuple(dict.fromkeys(value))


def _check_items(items: Any) -> None:
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise _invalid(f"items: must be a list of at most {MAX_ITEMS} devices")
    for item in items:
        if not isinstance(item, Mapping):
            raise _invalid("items: must be objects")
        for field, kind in _ITEM.items():
            if not isinstance(item.get(field), kind):
                raise _invalid(f"items: {field} is missing or has another type")
        if not is_at_home(item["host"]):
            raise _invalid("items: host is no private IPv4 address", "Search with kasa:discover")


def _password(path: str) -> str:
    """Return the text of the password's file. No error has any of it."""
    if not path:
        return ""
    try:
        with Path(path).expanduser().open("rb") as file:
            raw = file.read(MAX_SECRET + 1)
        if len(raw) > MAX_SECRET:
            raise _no_password(f"is larger than {MAX_SECRET // 1024} KiB")
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise _no_password("is not text in UTF-8") from None
    except (OSError, RuntimeError) as e:
        raise _no_password(f"cannot be read: {getattr(e, 'strerror', None) or 'no home'}") from None


def _no_password(problem: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.AUTH,
        f"The password_file of [tool.kasa] {problem}",
        suggestion="Name a file with the password of the Kasa or Tapo account alone",
    )


def _invalid(message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message, suggestion=suggestion)
