-- +goose Up
-- Which binaries can work with which schema. Each later migration adds its row: oldest is the
-- schema of the oldest binary that can go on using the store.
CREATE TABLE schema_steps (
  version INTEGER NOT NULL PRIMARY KEY,
  oldest INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO schema_steps (version, oldest) VALUES (9, 8), (10, 8), (11, 8), (12, 8);

-- Messages to receivers of webhooks, which are deleted when they have arrived.
CREATE TABLE webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  receiver TEXT NOT NULL,
  event TEXT NOT NULL,
  body BLOB,
  at TEXT NOT NULL,
  due TEXT NOT NULL,
  tries INTEGER NOT NULL,
  failure TEXT NOT NULL,
  given_up TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX webhooks_due ON webhooks (receiver, due) WHERE given_up = '';
CREATE INDEX webhooks_given_up ON webhooks (given_up) WHERE given_up <> '';
