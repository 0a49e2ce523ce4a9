"""What a daemon reads before it begins: its settings, the registries on disk, the owner's own
tools.

Refuses to keep anything. Both readings need pydantic (13 MiB), so they are done in a child process.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tools_cache
from edge.apart import Apart
from edge.core.own import Own
from edge.enrol_store import DamagedEnrolment, EnrolmentFiles
from edge.paths import Env
from edge.settings import Settings
from tools_cache import shelf
from tools_cache.shelf import Shelf

BUILTIN: Final = "tool_registry.json"


@dataclass(frozen=True, slots=True)
class Beginning:
    """All that was read."""

    settings: Settings
    shelf: Shelf
    own: Own


def begin(config: Path | None, env: Env) -> Apart[Beginning]:
    """Start reading in a child. Its `result()` raises `BadSettings`."""
    return Apart(lambda: read(config, env))


def read(config: Path | None, env: Env) -> Beginning:
    """Read here. Raises `BadSettings`."""
    from edge import own_reading, own_tools, settings_reading  # noqa: PLC0415 - pydantic

    settings = settings_reading.load(config, env)
    builtin = Path(tools_cache.__file__).with_name(BUILTIN)
    base = _cloud(settings, env) or None
    found = shelf.read(
        builtin,
        settings.state_dir(env) / "registry",
        base=base,
        per_tool_hardware=settings.registry.per_tool_hardware,
    )
    return Beginning(
        settings, found, own_reading.read(own_tools.folders(settings, env), settings.tools.packages)
    )


def _cloud(settings: Settings, env: Env) -> str:
    """The cloud whose copy may be offered: the configured one, else the enrolled one, which a
    configured broker overrules.
    """
    if settings.cloud.url or settings.uplink.host:
        return settings.cloud.url
    try:
        kept = EnrolmentFiles(settings.state_dir(env)).load()
    except DamagedEnrolment:
        return ""  # told by the daemon, which reads it too
    return kept.cloud_url if kept is not None else ""
