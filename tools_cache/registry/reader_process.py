"""The child process of `reader`: validates one document, then compiles its schemas.

A module of its own, without asyncio, since a child starts for each document.
"""

import gc
import logging
import pickle
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tools_cache.api.tool import Json, Source
from tools_cache.errors import BadDefinition, BadManifest
from tools_cache.registry.models import Dropped, Registry

INSTALLED: Final = "installed"
"""Kind of the document our own build made: local tools, validated by the build."""
LENGTH: Final = struct.Struct("<Q")


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
        _write((_to_send(found, kind), said.lines))
        if found.refused is None and found.registry.sha256 != known_sha256:
            tools = [tool for app in found.registry.apps for tool in app.tools]
            refused = uncompilable({tool.name: tool.input_schema for tool in tools})
    _write(refused)
    gc.freeze()  # ends sooner: Python does not search all of it for garbage once more


def _to_send(found: RegistryDocument, kind: str) -> RegistryDocument:
    """Leave out the bytes that the daemon has, and pack the tools of others."""
    body = found.body if kind == "tools" else b""
    registry = found.registry if kind == INSTALLED else found.registry.packed()
    return replace(found, body=body, registry=registry)


def _write(part: object) -> None:
    packed = pickle.dumps(part)
    sys.stdout.buffer.write(LENGTH.pack(len(packed)) + packed)
    sys.stdout.buffer.flush()
