-- +goose Up
CREATE TABLE blocks (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  text BYTEA NOT NULL,
  evidence text COLLATE "C" NOT NULL,
  severity BIGINT NOT NULL,
  since text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  lifted text COLLATE "C" NOT NULL,
  lifter text COLLATE "C" NOT NULL
);
CREATE INDEX blocks_until ON blocks (until) WHERE lifted = '';
-- Runs that wait for a worker: what is to be run, and the records of those under way
-- (id/N for the rounds after the first). River's own tables stand beside it.
CREATE TABLE runs (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  work BYTEA,
  record BYTEA,
  at timestamptz NOT NULL DEFAULT now()
);
