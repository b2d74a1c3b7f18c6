-- +goose Up
-- Which binaries can work with which schema. Each later migration adds its row: oldest is the
-- schema of the oldest binary that can go on using the store.
CREATE TABLE schema_steps (
  version BIGINT NOT NULL PRIMARY KEY,
  oldest BIGINT NOT NULL
);
INSERT INTO schema_steps (version, oldest) VALUES (9, 8), (10, 8), (11, 8), (12, 8);

-- Messages to receivers of webhooks, which are deleted when they have arrived.
CREATE TABLE webhooks (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  receiver text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  body BYTEA,
  at text COLLATE "C" NOT NULL,
  due text COLLATE "C" NOT NULL,
  tries BIGINT NOT NULL,
  failure text COLLATE "C" NOT NULL,
  given_up text COLLATE "C" NOT NULL
);
CREATE INDEX webhooks_due ON webhooks (receiver, due) WHERE given_up = '';
CREATE INDEX webhooks_given_up ON webhooks (given_up) WHERE given_up <> '';
