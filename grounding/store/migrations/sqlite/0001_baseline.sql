-- +goose Up

CREATE TABLE claims (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  text TEXT NOT NULL,
  language TEXT NOT NULL,
  group_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  live INTEGER NOT NULL,
  total INTEGER NOT NULL
);

CREATE TABLE claim_domains (
  claim INTEGER NOT NULL REFERENCES claims,
  domain TEXT NOT NULL,
  PRIMARY KEY (claim, domain)
) WITHOUT ROWID;

-- postings: claims of a block that have a token (postings.go); tokens: how many
-- claims have it at all.
CREATE TABLE postings (
  token TEXT NOT NULL,
  block INTEGER NOT NULL,
  claims BLOB NOT NULL,
  PRIMARY KEY (token, block)
) WITHOUT ROWID;

CREATE TABLE tokens (
  token TEXT NOT NULL PRIMARY KEY,
  claims INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE attestations (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  version TEXT NOT NULL,
  dedup BLOB NOT NULL,
  skeleton BLOB NOT NULL,
  iri TEXT NOT NULL,
  iri_key BLOB NOT NULL,
  validator TEXT NOT NULL,
  claim INTEGER NOT NULL REFERENCES claims,
  domain TEXT NOT NULL,
  verdict TEXT NOT NULL,
  issued TEXT NOT NULL,
  expires TEXT NOT NULL,
  status INTEGER NOT NULL,
  superseded_by BLOB,
  depends INTEGER NOT NULL,
  projection BLOB NOT NULL
);
CREATE UNIQUE INDEX attestations_dedup ON attestations (dedup) WHERE superseded_by IS NULL;
CREATE INDEX attestations_skeleton ON attestations (skeleton);
CREATE INDEX attestations_iri ON attestations (iri_key);
CREATE INDEX attestations_claim ON attestations (claim, superseded_by, status, issued DESC, hash);

-- Apart, so that a search does not step over them.
CREATE TABLE originals (
  attestation INTEGER PRIMARY KEY REFERENCES attestations,
  original BLOB NOT NULL
);

CREATE TABLE dependencies (
  attestation INTEGER NOT NULL REFERENCES attestations,
  position INTEGER NOT NULL,
  target BLOB NOT NULL,
  iri TEXT NOT NULL,
  PRIMARY KEY (attestation, position)
) WITHOUT ROWID;
CREATE INDEX dependencies_target ON dependencies (target);

CREATE TABLE events (
  hash BLOB NOT NULL PRIMARY KEY,
  kind INTEGER NOT NULL,
  target BLOB NOT NULL,
  iri TEXT NOT NULL,
  at TEXT NOT NULL,
  projection BLOB NOT NULL,
  original BLOB NOT NULL
);
CREATE INDEX events_target ON events (target, at, hash);

-- Targets whose latest event is a retraction.
CREATE TABLE retractions (target BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE feed (
  seq INTEGER PRIMARY KEY,
  event INTEGER NOT NULL,
  hash BLOB NOT NULL
);
