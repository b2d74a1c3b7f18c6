-- +goose Up
-- Who has signed in to the console. The ids are digests of secrets.
CREATE TABLE signin_links (
  id BYTEA NOT NULL PRIMARY KEY,
  person text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);
CREATE TABLE signins (
  id BYTEA NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  person text COLLATE "C" NOT NULL,
  scopes text COLLATE "C" NOT NULL,
  how text COLLATE "C" NOT NULL,
  began text COLLATE "C" NOT NULL,
  seen text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);
CREATE INDEX signins_person ON signins (person);
CREATE INDEX signins_seen ON signins (seen, id);
INSERT INTO schema_steps (version, oldest) VALUES (17, 12);
