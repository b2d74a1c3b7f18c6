-- +goose Up
CREATE TABLE blocks (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  text BLOB NOT NULL,
  evidence TEXT NOT NULL,
  severity INTEGER NOT NULL,
  since TEXT NOT NULL,
  until TEXT NOT NULL,
  lifted TEXT NOT NULL,
  lifter TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX blocks_until ON blocks (until) WHERE lifted = '';
