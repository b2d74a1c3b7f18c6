-- +goose Up
-- What was found in an item, the messages that it hides, and what was asked.
ALTER TABLE held ADD COLUMN found TEXT DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN hidden TEXT DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN question BLOB;
-- What passed of calls, where the operator asks for it.
CREATE TABLE captures (
  id TEXT NOT NULL PRIMARY KEY,
  principal BLOB NOT NULL,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  size INTEGER NOT NULL,
  sealed BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX captures_at ON captures (at, id, size);
CREATE INDEX captures_until ON captures (until);
CREATE INDEX captures_principal ON captures (principal);
INSERT INTO schema_steps (version, oldest) VALUES (16, 12);
