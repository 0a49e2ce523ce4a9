"""The folders that the configuration names, and which of them cannot be read now. Asked by the
status and by the doctor.
"""

from pathlib import Path

from edge.config.model import Settings
from edge.runtime.unreadable import folder_problem


def named(settings: Settings) -> list[tuple[str, Path]]:
    """Return each with the key of the configuration that names it."""
    found = [("[kb] folder", settings.kb.folder), ("[calendar] folder", settings.calendar.folder)]
    found += [("[tools] folders", folder) for folder in settings.tools.folders]
    return [(key, Path(folder)) for key, folder in found if folder]


def unreadable(settings: Settings) -> list[tuple[str, Path, str]]:
    """Return those that cannot be read, each with its key and the reason. Looks at the disk."""
    return [
        (key, folder, problem)
        for key, folder in named(settings)
        if (problem := folder_problem(folder))
    ]


def fix(key: str, folder: Path, settings: Settings) -> str:
    """Say what a person does about one of them."""
    return (
        f"make or mount {folder}, or correct {key} in "
        f"{settings.source or 'the environment'}, then: systemctl reload glassd"
    )
