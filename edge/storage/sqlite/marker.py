"""A small file beside a database: that it exists, how far it had come and how it was left.

Without it a missing, empty or older database looks like a first start. It is written at opening and
closing and now and then between, never for a single call.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from edge.runtime.files import write_atomic

MAX_BYTES: Final = 16 * 1024
VERSION: Final = 1


class MarkerFile(Struct, frozen=True):
    """What was true of the database when the file was written.

    `id` is its own number, `running` whether it was open, `numbers` the highest row number of each
    table, `promised` how many calls waited for their answer.
    """

    id: int = 0
    running: bool = False
    numbers: Mapping[str, int] = field(default_factory=dict)
    promised: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Texts of the database's owner, in case they are lost elsewhere."""


def path_of(database: Path) -> Path:
    return database.with_name(database.name + ".marks")


def read(database: Path) -> MarkerFile | None:
    """None if there is none; a damaged one says only that there was a database. Never raises."""
    try:
        with path_of(database).open("rb") as file:
            found: Any = json.loads(file.read(MAX_BYTES))
        if not isinstance(found, dict) or found.pop("version", None) != VERSION:
            return MarkerFile()
        numbers, labels = found["numbers"], found["labels"]
        marks = MarkerFile(
            int(found["id"]),
            bool(found["running"]),
            {str(k): int(v) for k, v in numbers.items()},
            found["promised"],
            labels,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return MarkerFile()
    words = all(isinstance(word, str) for pair in labels.items() for word in pair)
    return marks if words and isinstance(marks.promised, int | None) else MarkerFile()


def write(database: Path, marks: MarkerFile, *, durable: bool) -> None:
    """Replace it whole. `durable`: on disk at return, else as the system likes. Raise OSError."""
    content = json.dumps({"version": VERSION, **asdict(marks)}).encode()
    write_atomic(path_of(database), content, durable=durable)
