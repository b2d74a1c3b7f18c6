-- +goose Up
-- How far each export of the log is, and which process sends it.
CREATE TABLE exports (
  name TEXT NOT NULL PRIMARY KEY,
  position INTEGER NOT NULL,
  holder TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO schema_steps (version, oldest) VALUES (18, 12);
