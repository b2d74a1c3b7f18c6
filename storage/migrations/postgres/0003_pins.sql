-- +goose Up
CREATE TABLE pins (
  server text COLLATE "C" NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  record BYTEA
);
CREATE TABLE verdicts (
  digest BYTEA NOT NULL PRIMARY KEY,
  entry BYTEA NOT NULL
);
