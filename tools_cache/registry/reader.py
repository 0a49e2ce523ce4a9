"""Reads a fetched registry in a child process: validates the document, then compiles its schemas.

This keeps the libraries out of the daemon's memory and protects it from documents that crash them.
The child runs `reader_process.main`: the document on stdin, the result on stdout.
"""

import asyncio
import json
import logging
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tools_cache import subprocess_call
from tools_cache.errors import BadManifest
from tools_cache.registry.reader_process import LENGTH, RegistryDocument, document

LIMIT_S: Final = 120.0
"""10,000 tools take three seconds on a PC, and eight times as long on a Raspberry Pi."""
_CHILD: Final = (
    "import sys; from tools_cache.registry import reader_process;reader_process.main(*sys.argv[1:])"
)
"""Not `-m`: objects would be pickled as members of `__main__`."""

logger = logging.getLogger(__name__)


class ReaderFailed(Exception):
    """The child gave no answer; nothing is known about the document."""


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
            _CHILD,
            kind,
            str(int(per_tool_hardware)),
            known_sha256,
            question=body,
            limit_s=limit_s,
            # pydantic would search every installed package for plugins
            env={**os.environ, "PYDANTIC_DISABLE_PLUGINS": "true"},
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
    while len(answer) >= LENGTH.size:
        (length,) = LENGTH.unpack_from(answer)
        part, answer = answer[LENGTH.size :][:length], answer[LENGTH.size + length :]
        if len(part) == length:
            yield pickle.loads(part)  # noqa: S301 - of a process that is ours


def version_in(path: Path) -> str:
    """Return the version in a registry file; "" if it cannot be read. Blocking."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ""
    return str(document.get("version", "")) if isinstance(document, dict) else ""
