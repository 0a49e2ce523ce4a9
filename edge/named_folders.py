"""The folders that the configuration names, and which of them cannot be read now. Asked by the status and by the doctor."""

from pathlib import Path

from edge.folders import folder_problem
from edge.settings import Settings


def unreadable(settings: Settings) -> list[tuple[str, Path, str]]:
    """Return `(key of the configuration, folder, why it cannot be read)` of each. Looks at the disk."""
    named = [("[kb] folder", settings.kb.folder), ("[calendar] folder", settings.calendar.folder)]
    named += [("[tools] folders", folder) for folder in settings.tools.folders]
    return [(key, Path(folder), problem) for key, folder in named if folder and (problem := folder_problem(Path(folder)))]


def fix(key: str, folder: Path) -> str:
    """Say what a person does about one of them."""
    again = ", then: systemctl reload glassd" if key == "[tools] folders" else ""
    return f"make or mount {folder}, or correct {key} in glassd.toml{again}"
