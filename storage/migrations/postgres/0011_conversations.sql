-- +goose Up
CREATE TABLE conversations (
  id BYTEA NOT NULL PRIMARY KEY,
  principal BYTEA NOT NULL,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  sealed BYTEA NOT NULL
);
CREATE INDEX conversations_size ON conversations (principal, at, size);
CREATE INDEX conversations_until ON conversations (until);
