"""The folders that the configuration names, and which of them cannot be read; for the status and
the doctor.
"""

from pathlib import Path
from typing import Final

from edge.config.model import Settings
from edge.runtime.paths import Env, config_candidates
from edge.runtime.unreadable import folder_problem

USER_TOOLS: Final = "tools.d"


def of_user_tools(settings: Settings, env: Env) -> tuple[Path, ...]:
    """Return the folder beside the (possible) configuration, and the configured folders."""
    beside = (settings.source,) if settings.source is not None else config_candidates(env)
    named = map(Path, settings.tools.folders)
    return tuple(dict.fromkeys((*(path.absolute().parent / USER_TOOLS for path in beside), *named)))


def named(settings: Settings) -> list[tuple[str, Path]]:
    """Return each folder with its key of the configuration."""
    found = [("[kb] folder", settings.kb.folder), ("[calendar] folder", settings.calendar.folder)]
    found += [("[tools] folders", folder) for folder in settings.tools.folders]
    return [(key, Path(folder)) for key, folder in found if folder]


def unreadable(settings: Settings) -> list[tuple[str, Path, str]]:
    """Return the folders that cannot be read, each as (key, folder, reason). Reads the disk."""
    return [
        (key, folder, problem)
        for key, folder in named(settings)
        if (problem := folder_problem(folder))
    ]


def fix(key: str, folder: Path, settings: Settings) -> str:
    """Return what a person does about an unreadable folder."""
    return (
        f"make or mount {folder}, or correct {key} in "
        f"{settings.source or 'the environment'}, then: systemctl reload glassd"
    )
