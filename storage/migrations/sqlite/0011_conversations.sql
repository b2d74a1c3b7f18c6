-- +goose Up
CREATE TABLE conversations (
  id BLOB NOT NULL PRIMARY KEY,
  principal BLOB NOT NULL,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  size INTEGER NOT NULL,
  sealed BLOB NOT NULL
);
CREATE INDEX conversations_size ON conversations (principal, at, size);
CREATE INDEX conversations_until ON conversations (until);
