"""The notes table, shared by the notes tools, in their package's storage.

SQLite folds case for ASCII only, so each note also stores a folded copy for searching.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from tools_cache.api.handed import Json, ToolStorage

CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL,"
    " folded TEXT NOT NULL, created REAL NOT NULL)"
)
COUNT: Final = "SELECT count(*) AS total FROM notes"
ONE: Final = "SELECT text FROM notes WHERE id = ?"
SAME: Final = (
    "SELECT others.text FROM notes JOIN notes AS others"
    " ON others.text = notes.text AND others.id <> notes.id WHERE notes.id = ? LIMIT 1"
)
"""Another note with the text of this one."""
REMOVE: Final = "DELETE FROM notes WHERE id = ?"
INSERT: Final = "INSERT INTO notes (text, folded, created) VALUES (?, ?, ?)"


def newest(words: int = 0) -> str:
    """Return the query for the newest notes with this many words. Parameters: words, limit."""
    holds = " WHERE " + " AND ".join(["instr(folded, ?) > 0"] * words) if words else ""
    return f"SELECT id, text, created FROM notes{holds} ORDER BY created DESC, id DESC LIMIT ?"  # noqa: S608 - only placeholders are put in


async def there(storage: ToolStorage) -> bool:
    """Return whether the table exists. Reading does not create it, so it works on a full disk."""
    return bool(
        await storage.fetch("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'notes'")
    )


def folded(text: str) -> str:
    """Return text for comparing: "STRASSE", "Straße" and full-width letters are equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def shown(rows: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Return rows for a caller: `{id, text, created}` with an ISO time in UTC."""
    times = ((row, datetime.fromtimestamp(float(row["created"]), UTC)) for row in rows)
    return [
        {"id": row["id"], "text": row["text"], "created": time.isoformat(timespec="seconds")}
        for row, time in times
    ]


def listing(rows: Iterable[Mapping[str, Json]]) -> str:
    """Return rows for the lens: one note per line."""
    return "\n".join(f"- {row['text']}" for row in rows)
