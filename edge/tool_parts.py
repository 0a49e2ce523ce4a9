"""The smaller parts of a call's context: a lens, a voice, other tools, a clock, the session, a line
in the audit log, kept values.

Loaded when a tool first asks for one of them. Refuses to know where they come from.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache import handed
from tools_cache.handed import Json
from tools_cache.tool import ToolCall, ToolResponse

MAX_EVENT: Final = 200
MAX_KEY: Final = 200
_KV: Final = "CREATE TABLE IF NOT EXISTS _kv (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
"""No table a tool can name: those begin with a letter."""
_KV_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name = '_kv'"
_KV_SET: Final = (
    "INSERT INTO _kv (key, value) VALUES (?, "
    "?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


@dataclass(frozen=True, slots=True)
class Shown:
    _present: Callable[[dict[str, Json]], Awaitable[str]]

    async def show(self, text: str, *, title: str = "") -> str:
        layout = {"layout": "reference_card", "title": title} if title else {"layout": "text_wall"}
        return await self._present(
            {"display": {**layout, "text": text}, "audio": {"suppressVoiceResponse": True}}
        )


@dataclass(frozen=True, slots=True)
class Said:
    _present: Callable[[dict[str, Json]], Awaitable[str]]

    async def say(self, text: str) -> str:
        return await self._present({"audio": {"text": text}})


@dataclass(frozen=True, slots=True)
class Others:
    _call: Callable[[str, Mapping[str, Json]], Awaitable[ToolResponse]]

    async def call(self, tool: str, args: Mapping[str, Json]) -> Mapping[str, Json]:
        return (await self._call(tool, args)).to_json()


@dataclass(frozen=True, slots=True)
class Wall:
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Seen:
    _state: Callable[[], Mapping[str, Json]]

    def state(self) -> dict[str, Json]:
        return dict(self._state())


@dataclass(frozen=True, slots=True)
class Noted:
    _call: ToolCall
    _note: Callable[[Mapping[str, Json]], None] | None

    def log(self, event: str) -> None:
        """Without an audit log there is nowhere to write it, and the tool need not mind."""
        if self._note is not None:
            self._note(
                {
                    "callId": self._call.call_id,
                    "toolId": self._call.tool,
                    "turnId": self._call.turn_id or None,
                    "origin": self._call.origin.value,
                    "outcome": "noted",
                    "reason": event[:MAX_EVENT],
                }
            )


@dataclass(frozen=True, slots=True)
class Kept:
    """`KV` in a table of the user's own file. Looking makes no table: reads go on when the disk
    is full.
    """

    _db: handed.Database

    async def get(self, key: str, default: Json = None) -> Json:
        rows = await self._look("SELECT value FROM _kv WHERE key = ?", key)
        return json.loads(rows[0]["value"]) if rows else default

    async def set(self, key: str, value: Json) -> None:
        if not 0 < len(key) <= MAX_KEY:
            raise ValueError(f"a key has 1 to {MAX_KEY} characters")
        await self._db.execute(_KV)
        await self._db.execute(_KV_SET, key, json.dumps(value, allow_nan=False))

    async def delete(self, key: str) -> bool:
        return bool(await self._look("SELECT 1 FROM _kv WHERE key = ?", key)) and (
            await self._db.execute("DELETE FROM _kv WHERE key = ?", key) > 0
        )

    async def keys(self) -> list[str]:
        return [row["key"] for row in await self._look("SELECT key FROM _kv ORDER BY key")]

    async def _look(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        there = await self._db.fetch(_KV_THERE)
        return await self._db.fetch(sql, *params) if there else []
