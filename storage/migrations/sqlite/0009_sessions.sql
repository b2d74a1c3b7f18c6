-- +goose Up
CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  principal BLOB NOT NULL,
  state BLOB NOT NULL,
  ended INTEGER NOT NULL,
  seen TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_until ON sessions (until);
CREATE INDEX sessions_principal ON sessions (principal);
