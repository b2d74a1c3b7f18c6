-- +goose Up
-- What the first so many records of the log make of every score, under each set of
-- options. The log gives the same again should a row be lost.
CREATE TABLE trust_scores (
  options TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  snapshot BLOB NOT NULL
);
