"""Removes from any text what must not leave this machine: secrets, tokens, complete hardware
addresses, home directories.

It relies on no format: known secrets are hidden wherever they occur, and so is text that looks like
a secret.
"""

import re
import tomllib
from collections.abc import Container, Mapping
from typing import Any, Final

from edge.config.load import MAX_FILE
from edge.config.model import McpServerConfig, Settings
from edge.runtime.logs import Redactor

HIDDEN: Final = "***"
SHORTEST: Final = 4
"""Characters; shorter texts would hide ordinary words."""
_SECRET_NAME: Final = re.compile(
    r"(?i)password|passwd|passkey|secret|token|api_?key|credential|authorization|cookie|\bpin\b|idempotencykey"
)
_PERSONAL: Final = frozenset({("uplink", "username"), ("edge", "user_id")})
_OF_SERVER: Final = frozenset(
    {
        "id",
        "command",
        "allowed_tools",
        "enabled",
        "idle_s",
        "timeout_s",
        "visible",
        "confirm",
        "trusted",
        "secret_files",
    }
)
"""What is shown of another MCP server: a key may be in an argument, an address, or under any other
name.
"""
_SERVER_KEYS: Final = frozenset(McpServerConfig.__struct_fields__)
_MAC: Final = re.compile(
    r"(?<![0-9A-Fa-f])([0-9A-Fa-f]{2})([:_-])(?:[0-9A-Fa-f]{2}\2){4}([0-9A-Fa-f]{2})(?![0-9A-Fa-f])"
)
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]*-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL)
_LONG: Final = re.compile(
    r"\b(?:[0-9A-Fa-f]{32,}|eyJ[\w-]+(?:\.[\w-]+){1,2}|[A-Za-z0-9+/_-]{40,}={0,2})(?![\w/])"
)
"""128 bits or more in hexadecimal, JSON web tokens, 30 bytes or more in base64: keys, tokens and
their digests.
"""
_HOME: Final = re.compile(r"/home/[^/\s\"':]+")


class Redact:
    """Call it with a text, or `value` with JSON; a text given to `hide` is never in the result."""

    def __init__(self) -> None:
        self._line = Redactor()
        self._known: set[str] = set()

    def hide(self, secret: str) -> None:
        """Remove this text everywhere; of several lines (a key file), each one."""
        for text in (secret.strip(), *secret.split()):
            if len(text) >= SHORTEST:
                self._known.add(text)

    def __call__(self, text: str) -> str:
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        text = "\n".join(map(self._line, _PEM.sub(HIDDEN, text).split("\n")))
        text = _MAC.sub(lambda m: f"{m[1]}{m[2]}…{m[2]}{m[3]}", text)
        return _HOME.sub("~", _LONG.sub(HIDDEN, text))

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value redacted; a value whose name is that of a secret is hidden whole."""
        if isinstance(value, Mapping):
            return {self(str(key)): self.value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner, name) for inner in value]
        if value is None or isinstance(value, bool):
            return value
        if _SECRET_NAME.search(name) and not name.endswith("_file"):
            return HIDDEN
        return self(value) if isinstance(value, str) else value

    # -------------------------------------------------------------- the configuration

    def config(self, raw: bytes) -> str:
        """Return a configuration without its comments; of unknown keys only the name, since the
        value may be a misplaced secret.
        """
        try:
            document = tomllib.loads(raw[:MAX_FILE].decode("utf-8-sig", "replace"))
        except tomllib.TOMLDecodeError as e:
            names = self._names_only(raw[:MAX_FILE].decode("utf-8", "replace"))
            return f"# not valid TOML: {self(str(e))}\n{names}"
        known, version = _every_key(Settings()), document.get("version")
        lines = [f"version = {version!r}" if isinstance(version, int) else "# no version"]
        for section, table in document.items():
            if isinstance(table, dict):
                lines += ["", f"[{self(section)}]"]
                lines += (self._key(section, key, v, known=known) for key, v in table.items())
            elif section != "version":
                lines.append(f"{self(section)} = {HIDDEN}")
        return "\n".join(lines) + "\n"

    def _key(self, section: str, key: str, value: Any, *, known: Container[tuple[str, str]]) -> str:
        if (section, key) not in known or (section, key) in _PERSONAL:
            return f"{self(key)} = {HIDDEN}"
        if (section, key) == ("mcp", "servers"):
            value = [self._server(one) for one in value] if isinstance(value, list) else HIDDEN
        return f"{key} = {self.value(value, key)!r}"

    def _server(self, one: Any) -> Any:
        if not isinstance(one, Mapping):
            return HIDDEN
        hidden = {name if name in _SERVER_KEYS else HIDDEN: HIDDEN for name in one}
        return hidden | {name: one[name] for name in one if name in _OF_SERVER}

    def _names_only(self, text: str) -> str:
        """Return what is shown of a file that is not TOML: its sections and the names before the
        equals signs.
        """
        names = re.findall(r"(?m)^\s*(\[[\w.]+\]|[\w.]+\s*(?==))", text)
        return "".join(
            f"{self(name)}\n" if name.startswith("[") else f"{self(name.strip())} = {HIDDEN}\n"
            for name in names
        )


def _every_key(settings: Settings) -> frozenset[tuple[str, str]]:
    return frozenset(
        (name, key) for name, s in settings.sections().items() for key in s.__struct_fields__
    )
