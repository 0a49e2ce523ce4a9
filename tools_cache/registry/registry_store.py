"""Stores the last two good registry documents on disk, so that an edge without its cloud knows its
tools.

Blocking (run it in a thread once the daemon serves). A file is one line of JSON (the header) and
the document's bytes; the header holds their hash, so a copy that is unchanged since it was
validated need not be validated again.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tools_cache.files import write_atomic

FORMAT: Final = 1
NAMES: Final = ("current.json", "previous.json")
DAMAGED: Final = "damaged.json"
MAX_FILE: Final = 12 * 1024 * 1024
"""A document (8 MiB) and its header, which names the tools that were refused."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One document as fetched: its source, form, ETag, time (wall clock), and refused tools."""

    body: bytes
    """Empty once the document is on disk and its tools are in use."""
    base: str
    kind: str = "registry"
    etag: str = ""
    fetched_wall: float = 0.0
    refused: Mapping[str, str] = field(default_factory=dict)
    digest: str = field(default="", compare=False)
    """SHA-256 of the document, if it is known."""

    def with_digest(self) -> "Generation":
        """Return it with its digest: blocking, of 8 MB for 20 ms."""
        return replace(self, digest=hashlib.sha256(self.body).hexdigest())


class DamagedRegistry(Exception):
    """A file whose content is not what was written."""


class RegistryStore:
    """Two files in one directory; the newest is replaced atomically."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> tuple[Iterator[Generation], list[str]]:
        """Return the readable documents, newest first, and a list that iteration fills with
        complaints about the others.

        A damaged file is renamed to `damaged.json` for inspection, so that it is reported only
        once.
        """
        complaints: list[str] = []
        return self._readable(complaints), complaints

    def peek(self) -> tuple[Generation | None, dict[Path, str]]:
        """Return the newest readable document, and why each other file is unreadable. Changes
        nothing. Raises PermissionError.
        """
        newest: Generation | None = None
        complaints: dict[Path, str] = {}
        for path in (self._directory / name for name in NAMES):
            try:
                found = _decode(_read(path))
            except FileNotFoundError:
                continue
            except DamagedRegistry as e:
                complaints[path] = str(e)
            except PermissionError:
                raise
            except OSError as e:
                complaints[path] = f"cannot be read: {e.strerror}"
            else:
                newest = newest or found
        return newest, complaints

    def save(self, generation: Generation) -> None:
        """Make this the newest; the one before becomes the previous. Raises OSError."""
        self._directory.mkdir(parents=True, exist_ok=True)
        current, previous = (self._directory / name for name in NAMES)
        temporary = current.with_suffix(".new")
        try:
            write_atomic(temporary, _encode(generation), 0o666)
            if current.exists():
                current.replace(previous)
            temporary.replace(current)
            _sync_directory(self._directory)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def put_aside(self, name: str) -> None:
        """Rename a file that cannot be used."""
        with contextlib.suppress(OSError):
            (self._directory / name).replace(self._directory / DAMAGED)

    def _readable(self, complaints: list[str]) -> Iterator[Generation]:
        for name in NAMES:
            try:
                yield _decode(_read(self._directory / name))
            except FileNotFoundError:
                continue
            except DamagedRegistry as e:
                complaints.append(f"{name}: {e}")
                self.put_aside(name)
            except OSError as e:
                complaints.append(f"{name}: cannot be read: {e.strerror}")


def _encode(g: Generation) -> bytes:
    header = {
        "format": FORMAT,
        "sha256": hashlib.sha256(g.body).hexdigest(),
        "base": g.base,
        "kind": g.kind,
        "etag": g.etag,
        "fetched_wall": g.fetched_wall,
        "refused": dict(g.refused),
    }
    return json.dumps(header).encode() + b"\n" + g.body


def _decode(content: bytes) -> Generation:
    line, _, body = content.partition(b"\n")
    try:
        header: dict[str, Any] = json.loads(line)
        if header["format"] != FORMAT:
            raise DamagedRegistry(f"format {header['format']!r} is not {FORMAT}")
        if hashlib.sha256(body).hexdigest() != header["sha256"]:
            raise DamagedRegistry("its content does not match its hash")
        refused = {str(k): str(v) for k, v in header["refused"].items()}
        return Generation(
            body,
            str(header["base"]),
            str(header["kind"]),
            str(header["etag"]),
            float(header["fetched_wall"]),
            refused,
            header["sha256"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise DamagedRegistry(f"its header cannot be read ({type(e).__name__})") from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise DamagedRegistry(f"it is larger than {MAX_FILE} bytes")
    return content


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
