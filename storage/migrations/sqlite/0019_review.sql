-- +goose Up
-- A release by two persons, and exceptions that a reviewer grants for a time.
ALTER TABLE held ADD COLUMN people INTEGER DEFAULT 1 NOT NULL;
ALTER TABLE held ADD COLUMN proposed TEXT DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN proposer TEXT DEFAULT '' NOT NULL;
CREATE TABLE exceptions (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  code TEXT NOT NULL,
  digest BLOB NOT NULL,
  since TEXT NOT NULL,
  until TEXT NOT NULL,
  why TEXT NOT NULL,
  granter TEXT NOT NULL,
  revoked TEXT NOT NULL,
  revoker TEXT NOT NULL
) WITHOUT ROWID;
-- What a list is filtered by, in its order; and all of it together, so that groups are counted and items are
-- looked through without their rows.
CREATE INDEX held_page_state_tool ON held (state, tool, at, id);
CREATE INDEX held_page_state_code ON held (state, code, at, id);
CREATE INDEX held_page_state_server_code ON held (state, server, code, at, id);
CREATE INDEX held_page_state_rule ON held (state, rule, at, id);
CREATE INDEX held_page_state_principal ON held (state, principal, at, id);
CREATE INDEX held_page_state_digest ON held (state, digest, at, id);
CREATE INDEX held_facts ON held (state, at, id, until, server, tool, code, rule, principal, digest);
INSERT INTO schema_steps (version, oldest) VALUES (19, 12);
