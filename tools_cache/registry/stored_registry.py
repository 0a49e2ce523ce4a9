"""Reads the registries on disk at start: the built-in one, and the last good copy of the cloud's.

Blocking. Loads pydantic, so the daemon does it in a child process.
"""

from pathlib import Path

from msgspec import Struct

from tools_cache.api.tool import Source
from tools_cache.errors import BadManifest
from tools_cache.registry.models import Registry
from tools_cache.registry.registry_store import Generation, RegistryStore


class StoredRegistries(Struct, frozen=True):
    """The registries that could be read; `problem` is the built-in one's."""

    local: Registry | None
    problem: str = ""
    remote: Registry | None = None
    generation: Generation | None = None
    complaints: tuple[str, ...] = ()


def read(
    builtin: Path, state: Path, *, base: str | None, per_tool_hardware: bool = False
) -> StoredRegistries:
    """Read both; of the stored copies the newest good one from `base` (None: no cloud, so none)."""
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
        try:
            remote = manifest.load(
                generation.body, per_tool_hardware=per_tool_hardware, trusted=True
            )
        except BadManifest as e:
            complaints.append(str(e))
            continue
        return StoredRegistries(local, problem, remote, generation, tuple(complaints))
    return StoredRegistries(local, problem, complaints=tuple(complaints))
