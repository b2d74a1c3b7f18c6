-- +goose Up
-- The index of the log: derived from it, and made again from it (pellucid ledger index --rebuild).

-- A group is the records of one kind, server, tool and verdict; wide = 1: of all tools together.
CREATE TABLE decision_groups (
  id INTEGER PRIMARY KEY,
  wide INTEGER NOT NULL,
  kind TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  verdict TEXT NOT NULL,
  UNIQUE (wide, kind, server, tool, verdict)
);

-- at: microseconds since 1970.
CREATE TABLE decisions (
  idx INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  id BLOB NOT NULL,
  about BLOB NOT NULL,
  reason TEXT NOT NULL,
  codes TEXT NOT NULL
);
CREATE INDEX decisions_at ON decisions (at, idx, grp);
CREATE INDEX decisions_group ON decisions (grp, at, idx);

-- By what a record is found: a code, a record that it is about, a content or a person.
CREATE TABLE decision_keys (
  key INTEGER NOT NULL,
  at INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  PRIMARY KEY (key, at, idx)
) WITHOUT ROWID;

-- How many records of a group were recorded in a span of time; code '': with any code or none.
CREATE TABLE decision_sums (
  level INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  code TEXT NOT NULL,
  grp INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (level, slot, code, grp)
) WITHOUT ROWID;

-- One row: how many records of the log the index has, and under which keys.
CREATE TABLE decision_index (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  size INTEGER NOT NULL,
  keys TEXT NOT NULL
);
INSERT INTO decision_index (one, size, keys) VALUES (1, 0, '');

INSERT INTO schema_steps (version, oldest) VALUES (15, 12);
