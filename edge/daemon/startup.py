"""What a daemon reads before it starts: settings, the registries on disk, the owner's tools.

Reading them needs pydantic (13 MiB), so it is done in a child process.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tools_cache
from edge import __version__
from edge.cloud.enrolment.credentials import DamagedEnrolment, EnrolmentFiles
from edge.config.model import Settings
from edge.core.tools.user_tools import Own
from edge.runtime.paths import Env
from edge.runtime.worker_process import WorkerProcess
from tools_cache.registry import stored_registry
from tools_cache.registry.stored_registry import StoredRegistries

BUILTIN: Final = "tool_registry.json"


@dataclass(frozen=True, slots=True)
class Startup:
    """Everything that was read."""

    settings: Settings
    registries: StoredRegistries
    own: Own


def begin(config: Path | None, env: Env) -> WorkerProcess[Startup]:
    """Start reading in a child. Its `result()` raises `BadSettings`."""
    return WorkerProcess(lambda: read(config, env))


def read(config: Path | None, env: Env) -> Startup:
    """Read in this process. Raises `BadSettings`."""
    from edge.config import load  # noqa: PLC0415 - pydantic
    from edge.daemon import user_tools as own_tools  # noqa: PLC0415 - pydantic
    from edge.tools import user_tools  # noqa: PLC0415 - pydantic

    settings = load.load(config, env)
    builtin = Path(tools_cache.__file__).with_name(BUILTIN)
    base = _cloud(settings, env) or None
    found = stored_registry.read(
        builtin,
        settings.state_dir(env) / "registry",
        base=base,
        per_tool_hardware=settings.registry.per_tool_hardware,
        version=__version__,
    )
    return Startup(
        settings, found, user_tools.read(own_tools.folders(settings, env), settings.tools.packages)
    )


def _cloud(settings: Settings, env: Env) -> str:
    """Return the cloud whose stored registry may be used: the configured one, else the enrolled
    one, unless a broker is configured.
    """
    if settings.cloud.url or settings.uplink.host:
        return settings.cloud.url
    try:
        kept = EnrolmentFiles(settings.state_dir(env)).load()
    except DamagedEnrolment:
        return ""  # the daemon reads it too and reports the damage
    return kept.cloud_url if kept is not None else ""
