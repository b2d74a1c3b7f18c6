-- +goose Up
-- A record that waits stands in the chain of its writer: the process that acknowledged it.
ALTER TABLE ledger_pending ADD COLUMN writer TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_pending ADD COLUMN wseq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_pending ADD COLUMN prev BLOB NOT NULL DEFAULT x'';
ALTER TABLE ledger_pending ADD COLUMN mac BLOB NOT NULL DEFAULT x'';

-- The last link of each chain.
CREATE TABLE ledger_writers (
  writer TEXT NOT NULL PRIMARY KEY,
  wseq INTEGER NOT NULL,
  tag BLOB NOT NULL
) WITHOUT ROWID;

-- The links whose records are in the log.
CREATE TABLE ledger_chain (
  writer TEXT NOT NULL,
  wseq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  mac BLOB NOT NULL,
  PRIMARY KEY (writer, wseq)
) WITHOUT ROWID;
