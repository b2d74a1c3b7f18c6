-- +goose Up
CREATE TABLE sessions (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  fence BIGINT NOT NULL,
  principal BYTEA NOT NULL,
  state BYTEA NOT NULL,
  ended BIGINT NOT NULL,
  seen text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);
CREATE INDEX sessions_until ON sessions (until);
CREATE INDEX sessions_principal ON sessions (principal);
