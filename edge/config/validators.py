"""What a setting may hold: validators of single values, and the error for a bad configuration.

This module must not import pydantic: the daemon keeps the settings in memory, while the library
(13 MiB) stays in a short-lived child process (load.py), where it understands the annotations below.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

MAX_PROBLEMS: Final = 20
"""Problems listed at once; more than that means the wrong file."""
MAX_SOCKET: Final = 107
"""Bytes of a unix socket's path (sun_path without its final null byte)."""

WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""A name that is valid as one level of an MQTT topic, and as a file name."""
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""A name in an environment."""
SERVER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
"""Another MCP server's id: the package its tools are in."""
_SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"}
)
MAC: Final = re.compile(r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}", re.IGNORECASE)
RADIO: Final = re.compile(r"bluez|inproc|usb:\d{1,3}|tcp:[^\s/]+:\d{1,5}")


class BadSettings(Exception):
    """The configuration cannot be used. The text has one problem a line, each with file, key,
    problem and fix.
    """

    @classmethod
    def of(cls, problems: "list[Problem]", source: str) -> "BadSettings":
        lines = [p.line(source) for p in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            lines.append(f"{source}: and {len(problems) - MAX_PROBLEMS} more")
        return cls("\n".join(lines))


class Problem(Struct, frozen=True):
    """One problem. `source` overrules the file's name (an environment variable)."""

    key: str
    problem: str
    fix: str = ""
    source: str = ""

    def line(self, source: str) -> str:
        head = ": ".join(part for part in (self.source or source, self.key) if part)
        return f"{head}: {self.problem}" + (f"; {self.fix}" if self.fix else "")


class Rule(Struct, frozen=True):
    """Mark of a type: a value passes `check`, which returns it, perhaps normalised, or raises
    ValueError with problem and fix.
    """

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - runs only where a configuration is read

        return core_schema.no_info_after_validator_function(self.check, handler(source))


class Tidy(Struct, frozen=True):
    """Mark of a type: a value is normalised before it is checked."""

    tidied: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - as above

        return core_schema.no_info_before_validator_function(self.tidied, handler(source))


class Number:
    """Mark of a type: the bounds of a number (`ge`: at least, `gt`: more than, `le`: at most)."""

    def __init__(self, **bounds: float) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), **self._bounds}


def word(value: str) -> str:
    if value and not WORD.fullmatch(value):
        raise ValueError(
            "may hold letters, digits and . _ - only, at most 63, beginning with a letter or digit"
        )
    return value


def matching(pattern: re.Pattern[str], form: str, *, empty: bool = True) -> Any:
    def check(value: str) -> str:
        if (value or not empty) and not pattern.fullmatch(value):
            raise ValueError(f"must be {form}")
        return value

    return check


def host(value: str) -> str:
    if (
        "/" in value
        or "@" in value
        or (":" in value and not value.startswith("[") and value.count(":") == 1)
    ):
        raise ValueError(
            "must be a bare host name or address; the port is a key of its "
            'own: host = "broker.local", port = 8883'
        )
    return value.strip("[]")


def url(value: str) -> str:
    if value and not re.match(r"https?://[^/]", value):
        raise ValueError("must begin with https:// (or http:// on your own network)")
    place = re.split(r"[/?#]", value.partition("://")[2])[0]
    if "@" in place:
        raise ValueError(
            "must not hold a password; put it into a file, "
            "and the file's name beside the url (token_file, password_file, secret_files)"
        )
    port = re.search(r":([^\]:]*)$", place)
    if port and not (re.fullmatch(r"\d{1,5}", port[1], re.ASCII) and 0 < int(port[1]) < 65536):
        raise ValueError("must have a port from 1 to 65535, or none")
    return value.rstrip("/")


def locale(value: str) -> str:
    """Check a language, perhaps with a region; return it as `de-DE`."""
    from edge.config import locale_forms  # noqa: PLC0415 - runs only where a configuration is read

    name = locale_forms.normal(value)
    if value and locale_forms.load(name) is None:
        known, language = locale_forms.languages(), name.partition("-")[0]
        near = f"did you mean {language[:2]}?" if language[:2] in known else ""
        raise ValueError(
            f"{value[:40]!r} is not a known language; "
            + (near or "write its code, with a region or without one: de-DE, en-GB, fr")
        )
    return name


def timezone(value: str) -> str:
    """Check the name of a time zone."""
    import zoneinfo  # noqa: PLC0415 - as above

    from tools_cache.nearest import did_you_mean  # noqa: PLC0415 - as above

    try:
        return zoneinfo.ZoneInfo(value).key if value else value
    except (KeyError, ValueError, OSError):
        known = sorted(zoneinfo.available_timezones())
        cities = {zone.rpartition("/")[2].lower(): zone for zone in known}
        city = cities.get(value.lower().replace(" ", "_"))
        near = f"did you mean {city}?" if city else did_you_mean(value, known)
        raise ValueError(
            f"{value[:40]!r} is not a known time zone; "
            + (near or "write an IANA name such as Europe/Berlin")
        ) from None


def voice_server(value: str) -> str:
    """Check the address of a Wyoming server, which has no password and no encryption."""
    form = "must be tcp://HOST:PORT or unix:///PATH, for example tcp://127.0.0.1:10200"
    if value.startswith("unix:"):
        path = value.removeprefix("unix://")
        if not path.startswith("/") or path == "/":
            raise ValueError(form)
        socket(path)
    elif value:
        found = re.fullmatch(r"tcp://(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@?#\[\]]+):(\d{1,5})/?", value)
        if not (found and 0 < int(found[1]) < 65536):
            raise ValueError(form)
    return value


RECOGNISERS: Final = ("auto", "moonshine", "sherpa", "off")


def recogniser(value: str) -> str:
    """Check what recognises words: one of this machine, or a Wyoming server's address."""
    if value in RECOGNISERS:
        return value
    try:
        if value and voice_server(value):
            return value
    except ValueError:
        pass
    raise ValueError(
        "must be auto, moonshine, sherpa, off, or the address of a Wyoming server: "
        "tcp://HOST:PORT or unix:///PATH"
    )


MIN_WAKE_LETTERS: Final = 5
MAX_WAKE_LETTERS: Final = 40


def wake_phrase(value: str) -> str:
    """Check the words after which glassd acts; return them in small letters."""
    words = " ".join(value.lower().split())
    if words and not all(ch.isalpha() or ch in " '" for ch in words):
        raise ValueError("must be words of letters only, as they are spoken")
    if words and not MIN_WAKE_LETTERS <= len(words) <= MAX_WAKE_LETTERS:
        raise ValueError(
            f"must have {MIN_WAKE_LETTERS} to {MAX_WAKE_LETTERS} letters: "
            "a shorter one is heard in other words"
        )
    return words


def headers(value: dict[str, str]) -> dict[str, str]:
    """Check header lines; one with the name of a secret must not contain the secret itself."""
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", name):
            raise ValueError(f"{name[:64]!r} is not a valid header name")
        if not (text.isascii() and text.isprintable()):
            raise ValueError(f"{name}: must be plain ASCII on one line")
        if name.lower() in _SECRET_HEADERS and "${env." not in text:
            raise ValueError(
                f"{name}: must not hold the secret itself; write ${{env.NAME}} in its place "
                f'and name its file: secret_files = {{ NAME = "/path" }}'
            )
    return value


def absolute(value: str) -> str:
    if value and not value.startswith("/"):
        raise ValueError("must be an absolute path (a service has no working directory)")
    return value


def socket(value: str) -> str:
    if len(value.encode()) > MAX_SOCKET:
        raise ValueError(
            f"must have at most {MAX_SOCKET} bytes (the kernel's bound on a unix socket's path)"
        )
    return absolute(value)


def flat(value: object) -> object:
    """Turn `display.width = 576`, which is a table in a table in TOML, into a flat dotted key."""
    if not isinstance(value, dict):
        return value
    found: dict[str, object] = {}
    for key, inner in value.items():
        below = flat(inner)
        if isinstance(below, dict):
            found.update({f"{key}.{k}": v for k, v in below.items()})
        else:
            found[key] = inner
    return found


def listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


BUILT_IN: Final = "registry"
"""The package of the tools that find tools; it is part of how tools are offered, so not
configurable.
"""


def tool_names(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        package, colon, tool = name.partition(":")
        if not (package and colon and tool) or any(ch.isspace() for ch in name):
            raise ValueError(
                f"{name[:80]!r} is not a tool name; use package:tool, see glassd tools --all"
            )
    return value


def configurable(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if name.partition(":")[0] == BUILT_IN:
            raise ValueError(
                f"{name[:80]!r} is built in and not configurable; "
                "it is offered only when it is needed"
            )
    return value
