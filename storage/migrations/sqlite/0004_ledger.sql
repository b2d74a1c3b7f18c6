-- +goose Up
-- Records that wait to be signed and numbered, in the order of their coming.
-- AUTOINCREMENT: whoever has read a number must never remove another record by it.
CREATE TABLE ledger_pending (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  record BLOB NOT NULL
);

CREATE TABLE ledger_entries (
  idx INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  at TEXT NOT NULL,
  server TEXT NOT NULL,
  kind TEXT NOT NULL,
  opening BLOB NOT NULL
);
CREATE INDEX ledger_entries_at ON ledger_entries (at);

-- Apart, so that a listing does not step over them.
CREATE TABLE ledger_leaves (
  idx INTEGER PRIMARY KEY,
  envelope BLOB NOT NULL
);

-- The widest tile of each place; a narrower one is the beginning of it.
CREATE TABLE ledger_tiles (
  level INTEGER NOT NULL,
  n INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (level, n)
);

-- One row: how far the log has come, and who may carry it on.
CREATE TABLE ledger_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  origin TEXT NOT NULL,
  signer TEXT NOT NULL,
  size INTEGER NOT NULL,
  checkpoint BLOB NOT NULL,
  holder TEXT NOT NULL,
  fence INTEGER NOT NULL,
  beat INTEGER NOT NULL
);
