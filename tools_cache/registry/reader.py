"""Reads a fetched registry in a child process: validates the document, then compiles its schemas.

This keeps the libraries out of the daemon's memory and protects it from documents that crash them.
The child runs `main`: the document on stdin, the result on stdout.
"""

import asyncio
import json
import logging
import pickle
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tools_cache import subprocess_call
from tools_cache.api.tool import Json, Source
from tools_cache.errors import BadDefinition, BadManifest
from tools_cache.registry.models import Dropped, Registry

LIMIT_S: Final = 120.0
"""10,000 tools take three seconds on a PC, and eight times as long on a Raspberry Pi."""
_CHILD: Final = "import sys; from tools_cache.registry import reader; reader.main(*sys.argv[1:])"
"""Not `-m`: objects would be pickled as members of `__main__`."""
INSTALLED: Final = "installed"
"""Kind of the document our own build made: local tools, validated by the build."""
_LENGTH: Final = struct.Struct("<Q")

logger = logging.getLogger(__name__)


class ReaderFailed(Exception):
    """The child gave no answer; nothing is known about the document."""


@dataclass(frozen=True, slots=True)
class RegistryDocument:
    """A valid registry: its bytes (converted, if it was a tool list), what was left out, what does
    not compile.

    `refused` is None if the schemas were not compiled: then they are checked at their first call.
    """

    body: bytes
    registry: Registry
    nameless: tuple[Dropped, ...] = ()
    refused: Mapping[str, str] | None = None


async def read(
    body: bytes,
    *,
    kind: str,
    per_tool_hardware: bool = False,
    known_sha256: str = "",
    limit_s: float = LIMIT_S,
) -> RegistryDocument:
    """Read a document of `kind` (`registry` or `tools`). Raises `BadManifest`, `ReaderFailed`.

    The schemas of the registry `known_sha256` are not compiled again. If no child can be started,
    this process does the work.
    """
    try:
        answer, code = await subprocess_call.ask(
            _CHILD, kind, str(int(per_tool_hardware)), known_sha256, question=body, limit_s=limit_s
        )
    except TimeoutError:
        raise ReaderFailed(f"no answer in {limit_s:.0f} s") from None
    except OSError as e:
        logger.warning("registry: read without a child process: %s", e)
        return await asyncio.to_thread(
            document, body, kind=kind, per_tool_hardware=per_tool_hardware
        )
    found = _answer(answer, code)
    return found if found.body else replace(found, body=body)


def _answer(answer: bytes, code: int | None) -> RegistryDocument:
    parts = list(_parts(answer))
    if not parts:
        raise ReaderFailed(f"it ended with {code}")
    found: RegistryDocument | BadManifest = parts[0][0]
    for level, text in parts[0][1]:
        logger.log(level, "%s", text)
    if isinstance(found, BadManifest):
        raise found
    if len(parts) == 1:
        logger.warning(
            "registry: schemas are not checked before their first call: the child ended with %s",
            code,
        )
        return found
    return replace(found, refused=parts[1])


def _parts(answer: bytes) -> Iterator[Any]:
    """Parse the child's output as far as it came: each part is preceded by its length."""
    while len(answer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(answer)
        part, answer = answer[_LENGTH.size :][:length], answer[_LENGTH.size + length :]
        if len(part) == length:
            yield pickle.loads(part)  # noqa: S301 - of a process that is ours


def document(body: bytes, *, kind: str, per_tool_hardware: bool = False) -> RegistryDocument:
    """Validate one document in this process. Raises `BadManifest`."""
    from tools_cache.registry import manifest  # noqa: PLC0415 - pydantic, 13 MiB, comes with it

    if kind == INSTALLED:
        return RegistryDocument(
            body, manifest.load(body, source=Source.LOCAL, trusted=True), (), {}
        )
    nameless: tuple[Dropped, ...] = ()
    if kind == "tools":
        body, nameless = manifest.from_tool_list(body)
    return RegistryDocument(
        body, manifest.load(body, per_tool_hardware=per_tool_hardware), nameless, None
    )


def version_in(path: Path) -> str:
    """Return the version in a registry file; "" if it cannot be read. Blocking."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return str(document.get("version", "")) if isinstance(document, dict) else ""


def uncompilable(schemas: Mapping[str, Json]) -> dict[str, str]:
    """Compile each schema; return name → problem for those that fail."""
    from tools_cache.schema import check_schema  # noqa: PLC0415 - the validator, only for who reads documents

    found = {}
    for name, schema in schemas.items():
        try:
            check_schema(schema)
        except BadDefinition as e:
            found[name] = str(e)
    return found


class _Said(logging.Handler):
    """Collects log records for the parent to log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, record.getMessage()))


def main(kind: str, per_tool_hardware: str, known_sha256: str) -> None:
    """Run as the child process."""
    said = _Said()
    logging.getLogger("tools_cache").addHandler(said)
    found: RegistryDocument | BadManifest
    try:
        found = document(
            sys.stdin.buffer.read(), kind=kind, per_tool_hardware=per_tool_hardware == "1"
        )
    except BadManifest as e:
        found = e
    refused: dict[str, str] = {}
    if isinstance(found, BadManifest):
        _write((found, said.lines))
    else:  # the daemon has the bytes, unless they were converted
        _write((found if kind == "tools" else replace(found, body=b""), said.lines))
        if found.refused is None and found.registry.sha256 != known_sha256:
            tools = [tool for app in found.registry.apps for tool in app.tools]
            refused = uncompilable({tool.name: tool.input_schema for tool in tools})
    _write(refused)


def _write(part: object) -> None:
    packed = pickle.dumps(part)
    sys.stdout.buffer.write(_LENGTH.pack(len(packed)) + packed)
    sys.stdout.buffer.flush()
