-- +goose Up
-- What only one process at a time may do, and which one does it. A replica has its address here.
CREATE TABLE leases (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  holder text COLLATE "C" NOT NULL,
  fence BIGINT NOT NULL,
  beat BIGINT NOT NULL,
  address text COLLATE "C" NOT NULL
);
ALTER TABLE ledger_head DROP COLUMN holder;
ALTER TABLE ledger_head DROP COLUMN fence;
ALTER TABLE ledger_head DROP COLUMN beat;
DROP TABLE replicas;
DROP TABLE rules_versions;
INSERT INTO schema_steps (version, oldest) VALUES (24, 24);
