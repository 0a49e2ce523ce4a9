"""The documents of a folder: list them, read one (Markdown with a head, or plain text).

Links that lead out of the folder are not followed; what is no text is not read.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools_cache.api.knowledge import NAMESPACES

KINDS: Final = {".md": "markdown", ".markdown": "markdown", ".txt": "text"}
MAX_FILE: Final = 512 * 1024
MAX_FILES: Final = 5000
MAX_NAME: Final = 250
MAX_TITLE: Final = 200
MAX_TAGS: Final = 20
_HEAD: Final = re.compile(r"\A---[ \t]*\n(.{0,4000}?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD: Final = re.compile(r"^(title|tags|url):[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)
_HEADING: Final = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Standing:
    """One file of the folder: what shows whether it changed."""

    id: str
    namespace: str
    path: str
    mtime_ns: int
    size: int

    @property
    def version(self) -> tuple[int, int]:
        return self.mtime_ns, self.size


@dataclass(frozen=True, slots=True)
class Leaf:
    """One document read."""

    sha256: str
    kind: str
    title: str
    body: str
    tags: tuple[str, ...]
    url: str | None


def standing(folder: Path) -> tuple[list[Standing], int]:
    """List the documents, and count those left out. Raise OSError.

    Left out: too large, too many, a name that is no text, or a folder that may not be read.
    """
    found: list[Standing] = []
    left_out = 0
    for entry in _files(folder):
        if entry is None:
            left_out += 1
            continue
        named = os.path.relpath(entry.path, folder)
        top = named.partition(os.sep)[0]
        try:
            named.encode()
            seen = entry.stat(follow_symlinks=False)
        except (OSError, UnicodeEncodeError):
            left_out += 1
            continue
        if seen.st_size > MAX_FILE or len(named) > MAX_NAME or len(found) == MAX_FILES:
            left_out += 1
            continue
        namespace = top if top in NAMESPACES else NAMESPACES[0]
        found.append(Standing(named, namespace, entry.path, seen.st_mtime_ns, seen.st_size))
    return found, left_out


def _files(folder: Path) -> Iterator["os.DirEntry[str] | None"]:
    """Yield what may be documents; None for a subfolder that may not be read, as `lost+found`."""
    top = os.fspath(folder)
    waiting = [top]
    while waiting:
        at = waiting.pop()
        try:
            with os.scandir(at) as entries:
                found = sorted(entries, key=lambda e: e.name)
        except PermissionError:
            if at == top:
                raise
            yield None
            continue
        for entry in found:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and Path(entry.name).suffix.lower() in KINDS:
                yield entry


def read(one: Standing) -> Leaf | None:
    """Read a document; None when it is gone, has grown too large meanwhile, or is no text."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(one.path, flags), "rb") as file:
            raw = file.read(MAX_FILE + 1)
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None
    if len(raw) > MAX_FILE or "\0" in text:
        return None
    path = Path(one.path)
    kind = KINDS[path.suffix.lower()]
    title, tags, url, body = _headed(text) if kind == "markdown" else ("", (), None, text)
    heading = _HEADING.search(body) if kind == "markdown" and not title else None
    title = title or (heading[1] if heading else path.stem)
    title = " ".join(title.split())[:MAX_TITLE]
    return Leaf(hashlib.sha256(raw).hexdigest(), kind, title, body, tags, url)


def _headed(text: str) -> tuple[str, tuple[str, ...], str | None, str]:
    """Return (title, tags, url, body) of a text that may begin with fields between `---` lines."""
    head = _HEAD.match(text)
    if head is None:
        return "", (), None, text
    fields = {name.lower(): value.strip().strip("\"'") for name, value in _FIELD.findall(head[1])}
    listed = fields.get("tags", "").strip("[]").split(",")
    words = (word.strip().strip("\"'").lower() for word in listed)
    tags = tuple(dict.fromkeys(word for word in words if word))[:MAX_TAGS]
    address = fields.get("url", "")
    url = address if address.startswith(("https://", "http://")) else None
    return fields.get("title", ""), tags, url, text[head.end() :]
