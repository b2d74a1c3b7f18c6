-- +goose Up
CREATE TABLE held (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  principal TEXT NOT NULL,
  rule TEXT NOT NULL,
  code TEXT NOT NULL,
  call BLOB NOT NULL,
  digest BLOB NOT NULL,
  octets INTEGER NOT NULL,
  body BLOB,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  state TEXT NOT NULL,
  decided TEXT NOT NULL,
  decider TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX held_at ON held (at);
CREATE INDEX held_state ON held (state, server);
CREATE INDEX held_call ON held (call, at) WHERE state = 'released';
