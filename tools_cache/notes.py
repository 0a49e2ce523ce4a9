"""The notes table, shared by the three notes tools; it lives in their package's own storage.

Refuses to know who asks. SQLite folds case for ASCII only, so each note keeps a folded copy of
itself for searching.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from tools_cache.handed import Json, ToolStorage

CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL,"
    " folded TEXT NOT NULL, created REAL NOT NULL)"
)
COUNT: Final = "SELECT count(*) AS total FROM notes"
INSERT: Final = "INSERT INTO notes (text, folded, created) VALUES (?, ?, ?)"


def newest(words: int = 0) -> str:
    """Give the query for notes that hold so many words, newest first; parameters: each word,
    then the limit.
    """
    holds = " WHERE " + " AND ".join(["instr(folded, ?) > 0"] * words) if words else ""
    return f"SELECT id, text, created FROM notes{holds} ORDER BY created DESC, id DESC LIMIT ?"  # noqa: S608 - only placeholders are put in


async def there(storage: ToolStorage) -> bool:
    """Is the table there yet? Reading must not create it: reads go on when the disk is full."""
    return bool(
        await storage.fetch("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'notes'")
    )


def folded(text: str) -> str:
    """Give the form in which words are compared: "STRASSE", "Straße" and full-width letters
    alike.
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def shown(rows: Iterable[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Give rows as a caller sees them: `{id, text, created}` with an ISO time in UTC."""
    return [
        {
            "id": row["id"],
            "text": row["text"],
            "created": datetime.fromtimestamp(float(row["created"]), UTC).isoformat(
                timespec="seconds"
            ),
        }
        for row in rows
    ]


def listing(rows: Iterable[Mapping[str, Json]]) -> str:
    """Give rows as a lens shows them: one note a line."""
    return "\n".join(f"- {row['text']}" for row in rows)
