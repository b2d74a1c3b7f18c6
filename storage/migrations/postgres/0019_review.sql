-- +goose Up
-- A release by two persons, and exceptions that a reviewer grants for a time.
ALTER TABLE held ADD COLUMN people BIGINT DEFAULT 1 NOT NULL;
ALTER TABLE held ADD COLUMN proposed text COLLATE "C" DEFAULT '' NOT NULL;
ALTER TABLE held ADD COLUMN proposer text COLLATE "C" DEFAULT '' NOT NULL;
CREATE TABLE exceptions (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  digest BYTEA NOT NULL,
  since text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  why text COLLATE "C" NOT NULL,
  granter text COLLATE "C" NOT NULL,
  revoked text COLLATE "C" NOT NULL,
  revoker text COLLATE "C" NOT NULL
);
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
