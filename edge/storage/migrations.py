"""The daemon's schema as numbered steps; a published step never changes.

`size` stands first: summing it must not read the long columns behind it.
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
"""  # noqa: E501

_SECOND: Final = """
ALTER TABLE calls ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN repeatable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN delivery TEXT;
CREATE TABLE call_steps (
  call INTEGER NOT NULL REFERENCES calls(seq) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  state TEXT NOT NULL,
  note TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL,
  PRIMARY KEY (call, n)
) WITHOUT ROWID;
CREATE TABLE call_keys (
  user_id TEXT NOT NULL,
  session TEXT NOT NULL,
  key TEXT NOT NULL,
  call INTEGER NOT NULL REFERENCES calls(seq) ON DELETE CASCADE,
  answered INTEGER NOT NULL,
  hit INTEGER NOT NULL,
  life_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL,
  PRIMARY KEY (user_id, session, key)
) WITHOUT ROWID;
CREATE INDEX call_keys_by_call ON call_keys(call);
CREATE INDEX call_keys_by_hit ON call_keys(user_id, session, hit);
INSERT INTO call_steps SELECT seq, 1, 'ADMITTED', '', boot_id, boot_at, wall_at, synced FROM calls;
UPDATE calls SET attempts = 1 WHERE response IS NULL AND state = 'RUNNING';
INSERT OR REPLACE INTO call_keys
  SELECT user_id, '', 'key:' || CASE instr(idempotency_key, char(31)) WHEN 0 THEN idempotency_key
    ELSE substr(idempotency_key, 1, instr(idempotency_key, char(31)) - 1) END,
    seq, response IS NOT NULL, seq, 86400.0, boot_id, boot_at, wall_at, synced
  FROM calls WHERE idempotency_key IS NOT NULL ORDER BY seq;
DROP INDEX calls_by_key;
CREATE TABLE confirmations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  token_hash TEXT NOT NULL UNIQUE,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session TEXT NOT NULL,
  status TEXT NOT NULL,
  life_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL
);
CREATE INDEX confirmations_by_call ON confirmations(call_id);
CREATE INDEX confirmations_by_status ON confirmations(status);
CREATE TABLE grants (
  user_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  worth TEXT NOT NULL,
  wall_at REAL NOT NULL,
  PRIMARY KEY (user_id, tool)
) WITHOUT ROWID;
CREATE TABLE pending (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,
  call_id TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  session TEXT NOT NULL,
  tool TEXT NOT NULL,
  status TEXT NOT NULL,
  result TEXT,
  ttl_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL
);
CREATE INDEX pending_by_status ON pending(status);
CREATE TABLE results (
  used INTEGER PRIMARY KEY,
  size INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  response TEXT NOT NULL,
  ttl_s REAL NOT NULL,
  boot_id TEXT NOT NULL,
  boot_at REAL NOT NULL,
  wall_at REAL NOT NULL,
  synced INTEGER NOT NULL,
  UNIQUE (user_id, tool, args_hash)
);
CREATE TABLE sessions (
  used INTEGER PRIMARY KEY,
  user_id TEXT NOT NULL,
  session TEXT NOT NULL,
  mode TEXT NOT NULL,
  epoch TEXT NOT NULL,
  UNIQUE (user_id, session)
);
CREATE TABLE transitions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,
  cause TEXT NOT NULL,
  call_id TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL,
  wall_at REAL NOT NULL
);
CREATE INDEX outbox_by_lane ON outbox(lane, size);
CREATE INDEX inbox_open ON inbox(size) WHERE body IS NOT NULL;
"""
"""Keys get sessions. A repeated attempt had its number behind a unit separator: the newest stays.

`calls.idempotency_key` stays, unread: dropping a column rewrites every row, which a nearly full
disk refuses.
"""

_THIRD: Final = """
CREATE TABLE tool_switches (
  user_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  wall_at REAL NOT NULL,
  PRIMARY KEY (user_id, tool)
) WITHOUT ROWID;
CREATE TABLE tool_usage (
  user_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  calls INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  last_wall REAL NOT NULL,
  PRIMARY KEY (user_id, tool)
) WITHOUT ROWID;
"""

_FOURTH: Final = """
ALTER TABLE grants ADD COLUMN definition TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN ended INTEGER;
"""
"""An older “always” has no digest of what was agreed to, so it ends.

`ended` numbers calls in the order of their answers: the clock cannot, because it jumps.
"""

MIGRATIONS: Final = (_FIRST, _SECOND, _THIRD, _FOURTH)
