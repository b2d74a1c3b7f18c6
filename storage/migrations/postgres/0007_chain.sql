-- +goose Up
-- A record that waits stands in the chain of its writer: the process that acknowledged it.
ALTER TABLE ledger_pending
  ADD COLUMN writer text COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN wseq bigint NOT NULL DEFAULT 0,
  ADD COLUMN prev bytea NOT NULL DEFAULT '',
  ADD COLUMN mac bytea NOT NULL DEFAULT '';

-- The last link of each chain.
CREATE TABLE ledger_writers (
  writer text COLLATE "C" PRIMARY KEY,
  wseq bigint NOT NULL,
  tag bytea NOT NULL
);

-- The links whose records are in the log.
CREATE TABLE ledger_chain (
  writer text COLLATE "C" NOT NULL,
  wseq bigint NOT NULL,
  idx bigint NOT NULL,
  mac bytea NOT NULL,
  PRIMARY KEY (writer, wseq)
);
