"""Encrypted values: AES-256-GCM under one key of this edge, each bound to its place (`about`).

The library is imported at the first value.
"""

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from edge.runtime.files import write_atomic
from edge.storage.sqlite.database import StoreError
from tools_cache.api.handed import Json
from tools_cache.api.tool import ErrorCode, ToolError, ToolFailure

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
"""What GCM is made for; random ones last for 2³² values (NIST SP 800-38D, 8.3)."""
MARK_BYTES: Final = 4
_FORM: Final = b"\x01"
_HEAD: Final = len(_FORM) + MARK_BYTES + NONCE_BYTES
_MAX_FILE: Final = 4096


class KeyLost(ToolFailure):
    """The key that values were encrypted with is not there; nothing was changed."""

    def __init__(self, message: str, suggestion: str) -> None:
        super().__init__(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, message, suggestion=suggestion))


class Altered(StoreError):
    """An encrypted value is not what was written in this place."""


class Cipher:
    """Seals and opens JSON values under one key."""

    def __init__(self, key: bytes, chance: Callable[[int], bytes]) -> None:
        self._aead = _library()(key)
        self._key = key
        self._mark = _mark(key)
        self._chance = chance

    def seal(self, value: Json, about: bytes) -> bytes:
        """Encrypt; the same value never looks the same twice."""
        nonce = self._chance(NONCE_BYTES)
        text = json.dumps(value, allow_nan=False).encode()
        secret: bytes = self._aead.encrypt(nonce, text, about)
        return _FORM + self._mark + nonce + secret

    def open(self, sealed: bytes, about: bytes) -> Json:
        """Decrypt what `seal` gave for the same place. Raise `KeyLost`, `Altered`."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above

        if sealed[:1] != _FORM or len(sealed) < _HEAD:
            raise Altered("an encrypted column holds something that was not encrypted here")
        if sealed[1 : 1 + MARK_BYTES] != self._mark:
            fix = "put the key back that was in use then"
            raise KeyLost("This was encrypted with another key", fix)
        nonce, secret = sealed[1 + MARK_BYTES : _HEAD], sealed[_HEAD:]
        try:
            return json.loads(self._aead.decrypt(nonce, secret, about))
        except InvalidTag:
            why = "an encrypted value was changed, or belongs to another row, column or user"
            raise Altered(why) from None

    def derive(self, purpose: bytes) -> bytes:
        """Return another key, for one purpose; it tells nothing of this one."""
        return hmac.digest(self._key, b"glassd key for " + purpose, "sha256")


class Keyring:
    """The one key: systemd's credential, else a file made at first use. Thread-safe.

    A mark beside the file (`.id`, four bytes of the key's hash) shows that a key was lost: it is
    never replaced silently.
    """

    def __init__(
        self,
        file: Path,
        *,
        credential: Path | None = None,
        chance: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._file = file
        self._mark_file = file.with_name(file.name + ".id")
        self._credential = credential
        self._chance = chance
        self._cipher: Cipher | None = None
        self._lock = threading.Lock()

    def cipher(self) -> Cipher:
        """Blocking at its first use. Raise `KeyLost`, `OSError`."""
        with self._lock:
            if self._cipher is None:
                _library()  # without it no key is made
                self._cipher = Cipher(self._key(), self._chance)
            return self._cipher

    def _key(self) -> bytes:
        path = self._credential or self._file
        marked = _read(self._mark_file)
        try:
            key = _parsed(_read(path), path)
        except FileNotFoundError:
            key = b""
        if not key and marked:
            raise KeyLost(f"The key of the encrypted values is gone ({path})", self._cure())
        if marked and marked != _mark(key).hex().encode():
            raise KeyLost(f"{path} is not the key that values were encrypted with", self._cure())
        if not key:
            key = self._chance(KEY_BYTES)
            _write(self._file, key.hex().encode())
        if not marked:
            _write(self._mark_file, _mark(key).hex().encode())
        return key

    def _cure(self) -> str:
        return f"put the old key back; or give those values up: delete {self._mark_file}"


def _parsed(text: bytes, path: Path) -> bytes:
    """Read 32 bytes as they are, or as 64 hexadecimal digits."""
    if not text:
        raise FileNotFoundError(path)
    try:
        key = text if len(text) == KEY_BYTES else bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        form = f"{KEY_BYTES} bytes, or {2 * KEY_BYTES} hexadecimal digits"
        raise KeyLost(f"{path} holds no key ({form})", "put the old key back")
    return key


def _mark(key: bytes) -> bytes:
    return hashlib.sha256(b"glassd key mark" + key).digest()[:MARK_BYTES]


def _read(path: Path) -> bytes:
    """Return what is in a small file; nothing when there is none."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE)
    except FileNotFoundError:
        return b""


def _write(path: Path, data: bytes) -> None:
    """Make a private file that survives a power cut, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(path, data)


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - see above
    except ImportError:
        why = "Encrypted columns need the library cryptography, which is not installed"
        fix = "pip install 'glassd[enrol]'"
        raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, why, suggestion=fix)) from None
    return AESGCM
