"""The daemon's schema as numbered steps: step N brings a database of version N-1 to N. A published step never changes.

Refuses to know what the rows mean. `size` stands first: summing it must not read the long columns behind it.
"""

from typing import Final

_FIRST: Final = """
CREATE TABLE calls (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,
  call_id TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  idempotency_key TEXT,
  tool TEXT NOT NULL,
  route TEXT NOT NULL,
  state TEXT NOT NULL,
  request TEXT NOT NULL,
  response TEXT,
  ttl_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL,
  answered_wall REAL
);
CREATE UNIQUE INDEX calls_by_key ON calls(user_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX calls_open ON calls(seq) WHERE response IS NULL;
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,
  lane TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  body TEXT NOT NULL,
  as_json INTEGER NOT NULL,
  accepted INTEGER NOT NULL DEFAULT 0,
  ttl_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL
);
CREATE UNIQUE INDEX outbox_by_call ON outbox(id) WHERE lane = 'call';
CREATE TABLE inbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  body TEXT,
  reply_to TEXT NOT NULL DEFAULT '',
  as_json INTEGER NOT NULL DEFAULT 0,
  answer TEXT,
  ttl_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL
);
CREATE UNIQUE INDEX inbox_once ON inbox(kind, id) WHERE kind <> 'progress';
CREATE TABLE notes (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
"""

MIGRATIONS: Final = (_FIRST,)
