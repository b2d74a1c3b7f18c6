-- +goose Up
-- Records that wait to be signed and numbered, in the order of their coming.
CREATE TABLE ledger_pending (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  record bytea NOT NULL
);

CREATE TABLE ledger_entries (
  idx bigint PRIMARY KEY,
  id bytea NOT NULL UNIQUE,
  at text COLLATE "C" NOT NULL,
  server text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  opening bytea NOT NULL
);
CREATE INDEX ledger_entries_at ON ledger_entries (at);

-- Apart, so that a listing does not step over them.
CREATE TABLE ledger_leaves (
  idx bigint PRIMARY KEY,
  envelope bytea NOT NULL
);

-- The widest tile of each place; a narrower one is the beginning of it.
CREATE TABLE ledger_tiles (
  level integer NOT NULL,
  n bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (level, n)
);

-- One row: how far the log has come, and who may carry it on.
CREATE TABLE ledger_head (
  one integer PRIMARY KEY CHECK (one = 1),
  origin text COLLATE "C" NOT NULL,
  signer text COLLATE "C" NOT NULL,
  size bigint NOT NULL,
  checkpoint bytea NOT NULL,
  holder text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  beat bigint NOT NULL
);
