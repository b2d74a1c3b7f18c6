-- +goose Up
-- What the first so many records of the log make of every score, under each set of
-- options. The log gives the same again should a row be lost.
CREATE TABLE trust_scores (
  options text COLLATE "C" PRIMARY KEY,
  size bigint NOT NULL,
  snapshot bytea NOT NULL
);
