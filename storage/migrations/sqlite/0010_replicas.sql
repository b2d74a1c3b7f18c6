-- +goose Up
-- The processes that share this database, each with its sign of life.
CREATE TABLE replicas (
  id TEXT NOT NULL PRIMARY KEY,
  address TEXT NOT NULL,
  install_key TEXT NOT NULL,
  release TEXT NOT NULL,
  rules TEXT NOT NULL,
  started TEXT NOT NULL,
  spent BLOB NOT NULL,
  beat INTEGER NOT NULL
);
-- The versions of the rules, in the order in which a replica first used them.
CREATE TABLE rules_versions (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  version TEXT NOT NULL UNIQUE
);
