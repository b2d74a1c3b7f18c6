-- +goose Up
CREATE TABLE held (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  rule text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  call BYTEA NOT NULL,
  digest BYTEA NOT NULL,
  octets BIGINT NOT NULL,
  body BYTEA,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  decided text COLLATE "C" NOT NULL,
  decider text COLLATE "C" NOT NULL
);
CREATE INDEX held_at ON held (at);
CREATE INDEX held_state ON held (state, server);
CREATE INDEX held_call ON held (call, at) WHERE state = 'released';
