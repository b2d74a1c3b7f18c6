-- +goose Up
-- What was found in an item, the messages that it hides, and what was asked.
ALTER TABLE held ADD COLUMN found text COLLATE "C" DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN hidden text COLLATE "C" DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN question BYTEA;
-- What passed of calls, where the operator asks for it.
CREATE TABLE captures (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  principal BYTEA NOT NULL,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  sealed BYTEA NOT NULL
);
CREATE INDEX captures_at ON captures (at, id, size);
CREATE INDEX captures_until ON captures (until);
CREATE INDEX captures_principal ON captures (principal);
INSERT INTO schema_steps (version, oldest) VALUES (16, 12);
