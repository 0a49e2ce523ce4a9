"""Files of the sample apps: lines of JSON, appended and synced."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

STATE_ENV: Final = "GLASSD_APP_STATE_DIR"


def state_file(name: str) -> Path:
    return Path(os.environ.get(STATE_ENV) or tempfile.gettempdir()) / name


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return all rows of a file, oldest first; small enough to be read whole."""
    path = state_file(name)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def append_row(name: str, row: dict[str, Any]) -> None:
    path = state_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
