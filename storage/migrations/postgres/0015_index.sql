-- +goose Up
-- The index of the log: derived from it, and made again from it (pellucid ledger index --rebuild).

-- A group is the records of one kind, server, tool and verdict; wide = 1: of all tools together.
CREATE TABLE decision_groups (
  id bigint PRIMARY KEY,
  wide integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  UNIQUE (wide, kind, server, tool, verdict)
);

-- at: microseconds since 1970.
CREATE TABLE decisions (
  idx bigint PRIMARY KEY,
  at bigint NOT NULL,
  grp bigint NOT NULL,
  id bytea NOT NULL,
  about bytea NOT NULL,
  reason text COLLATE "C" NOT NULL,
  codes text COLLATE "C" NOT NULL
);
CREATE INDEX decisions_at ON decisions (at, idx, grp);
CREATE INDEX decisions_group ON decisions (grp, at, idx);

-- By what a record is found: a code, a record that it is about, a content or a person.
CREATE TABLE decision_keys (
  key bigint NOT NULL,
  at bigint NOT NULL,
  idx bigint NOT NULL,
  grp bigint NOT NULL,
  PRIMARY KEY (key, at, idx) INCLUDE (grp)
);

-- How many records of a group were recorded in a span of time; code '': with any code or none.
CREATE TABLE decision_sums (
  level integer NOT NULL,
  slot bigint NOT NULL,
  code text COLLATE "C" NOT NULL,
  grp bigint NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (level, slot, code, grp)
);
-- For a few groups, as of a tool: to read the others' sums costs Postgres more than this index does.
CREATE INDEX decision_sums_group ON decision_sums (grp, level, code, slot);

-- One row: how many records of the log the index has, and under which keys.
CREATE TABLE decision_index (
  one integer PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  keys text COLLATE "C" NOT NULL
);
INSERT INTO decision_index (one, size, keys) VALUES (1, 0, '');

INSERT INTO schema_steps (version, oldest) VALUES (15, 12);
