"""Reads the registries on disk at start: the built-in one, and the last good copy of the cloud's.

Blocking. Loads pydantic, so the daemon does it in a child process.
"""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from tools_cache.api.tool import Source
from tools_cache.errors import BadManifest
from tools_cache.registry import registry_index
from tools_cache.registry.models import Registry
from tools_cache.registry.registry_index import IndexKey
from tools_cache.registry.registry_store import Generation, RegistryStore


@dataclass(frozen=True, slots=True)
class StoredRegistries:
    """The registries that could be read; `problem` is the built-in one's."""

    local: Registry | None
    problem: str = ""
    remote: Registry | None = None
    generation: Generation | None = None
    complaints: tuple[str, ...] = ()


def read(
    builtin: Path,
    state: Path,
    *,
    base: str | None,
    per_tool_hardware: bool = False,
    version: str = "",
) -> StoredRegistries:
    """Read both; of the stored copies the newest good one from `base` (None: no cloud, so none).
    `version`: of glassd; without one, documents are validated again.
    """
    from tools_cache.registry import manifest  # noqa: PLC0415 - pydantic, 13 MiB, comes with it

    local, problem = None, ""
    try:
        local = manifest.load(builtin.read_bytes(), source=Source.LOCAL, trusted=True)
    except (OSError, BadManifest) as e:
        problem = str(e)
    if base is None:
        return StoredRegistries(local, problem)
    generations, complaints = RegistryStore(state).load()
    for generation in generations:
        if generation.base != base:
            continue  # from another cloud
        key = IndexKey(generation.digest, version, per_tool_hardware)
        try:
            remote = _remote(state, generation, key)
        except BadManifest as e:
            complaints.append(str(e))
            continue
        # with complaints it may have to be stored again
        used = generation if complaints else replace(generation, body=b"")
        return StoredRegistries(local, problem, remote, used, tuple(complaints))
    return StoredRegistries(local, problem, complaints=tuple(complaints))


def _remote(state: Path, generation: Generation, key: IndexKey) -> Registry:
    """Return a stored document's registry, of its index if that is usable. Raises `BadManifest`."""
    if key.version and (found := registry_index.read(state, key)) is not None:
        return found
    from tools_cache.registry import manifest  # noqa: PLC0415 - see `read`

    found = manifest.load(
        generation.body, per_tool_hardware=key.per_tool_hardware, trusted=True
    ).packed()
    if key.version:
        with contextlib.suppress(OSError):  # then the next start takes longer
            registry_index.write(state, key, found)
    return found
