-- +goose Up
-- Who has signed in to the console. The ids are digests of secrets.
CREATE TABLE signin_links (
  id BLOB NOT NULL PRIMARY KEY,
  person TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE signins (
  id BLOB NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  person TEXT NOT NULL,
  scopes TEXT NOT NULL,
  how TEXT NOT NULL,
  began TEXT NOT NULL,
  seen TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX signins_person ON signins (person);
CREATE INDEX signins_seen ON signins (seen, id);
INSERT INTO schema_steps (version, oldest) VALUES (17, 12);
