-- +goose Up
-- How far each export of the log is, and which process sends it.
CREATE TABLE exports (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  position bigint NOT NULL,
  holder text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);
INSERT INTO schema_steps (version, oldest) VALUES (18, 12);
