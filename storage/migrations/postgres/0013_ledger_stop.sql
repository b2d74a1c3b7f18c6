-- +goose Up
-- At most one row: why no record is added to the log.
CREATE TABLE ledger_stop (
  one integer PRIMARY KEY CHECK (one = 1),
  reason text COLLATE "C" NOT NULL,
  size bigint NOT NULL,
  checkpoint bytea NOT NULL,
  at text COLLATE "C" NOT NULL
);

-- At most one row: the latest checkpoint that enough witnesses have cosigned.
CREATE TABLE ledger_cosigned (
  one integer PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  checkpoint bytea NOT NULL,
  at text COLLATE "C" NOT NULL
);

-- The keys of a log are few among its records.
CREATE INDEX ledger_entries_keys ON ledger_entries (idx) WHERE kind = 'key-installed';

INSERT INTO schema_steps (version, oldest) VALUES (13, 12);
